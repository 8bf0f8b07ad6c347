"""Processes that use the embedded server, as tests start, ask and end them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import redis

from redis_components.embedded.files import ServerFolder, ServerState
from tests.support import warm_start
from tests.support.processes import arguments, inside, marked, wait_until

MARK = "TRAWL_TEST_PLACE"
# A user: says the URL for each line it reads, and ends when its input does.
USER = """
import json, sys, traceback
from redis_components.embedded import redis_url
from redis_components.errors import TrawlError
for line in sys.stdin:
    try:
        answer = {"url": redis_url()}
    except TrawlError as exc:
        answer = {"error": str(exc)}
    print(json.dumps(answer), flush=True)
"""


class Terminal:
    """One data folder, and an environment in which processes use the embedded server there."""

    def __init__(self, data: Path, **environment: str) -> None:
        self.place = ServerFolder(root=data / "redis")
        clean = {name: value for name, value in os.environ.items() if name != "TRAWL_REDIS_URL"}
        self.environment = {**clean, "TRAWL_DATA_DIR": str(data), MARK: str(data), **environment}
        self.users: list[User] = []

    def user(self, script: str = USER, *, family: str = "cli.main") -> User:
        """A new process that has not asked for the server yet; without a family it starts cold."""
        user = User(self, script, family)
        self.users.append(user)
        return user

    def joined(self) -> User:
        """A new process that uses the server."""
        user = self.user()
        user.url()
        return user

    def run(self, code: str) -> subprocess.CompletedProcess[str]:
        """Python with `embedded` imported, to its end."""
        command = [sys.executable, "-c", f"from redis_components import embedded\n{code}"]
        return warm_start.run(command, family="cli.main", env=self.environment, capture_output=True, text=True, timeout=60)

    def state(self) -> ServerState:
        state = wait_until(self.place.state, "server.json is there")
        assert state
        return state

    def keepers(self) -> list[int]:
        """The pids of all keepers of this place."""
        return [process.pid for process in self._processes() if arguments(process)[1:3] == ["-m", "redis_components.embedded"]]

    def servers(self) -> list[int]:
        """The pids of all servers of this place."""
        return [process.pid for process in inside(self.place.root)]

    def _processes(self) -> list[psutil.Process]:
        return list({*marked(MARK, self.environment[MARK]), *inside(self.place.root)})

    def wait_until_stopped(self) -> None:
        """The last user is gone: server and keeper must be, too, and their announcement."""
        wait_until(lambda: not self._processes(), lambda: f"all is stopped, but: {self._processes()}\n{self.log()}")
        assert self.place.state() is None

    def log(self) -> str:
        return self.place.log.read_text() if self.place.log.exists() else "(no keeper.log)"

    def close(self) -> None:
        """End everything now, without the grace time."""
        for user in self.users:
            user.kill()
        for keeper in self.keepers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(keeper, signal.SIGTERM)


class User:
    """A process that uses the server until it is ended."""

    def __init__(self, terminal: Terminal, script: str, family: str) -> None:
        self.process = warm_start.Popen(
            [sys.executable, "-W", "error", "-c", script],
            family=family,
            env=terminal.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def ask(self) -> None:
        """Have it call `redis_url()`; `answer` is what came of it."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, str]:
        assert self.process.stdout is not None
        answer: dict[str, str] = json.loads(self.process.stdout.readline())
        return answer

    def url(self) -> str:
        self.ask()
        return self.answer()["url"]

    def error(self) -> str:
        self.ask()
        return self.answer()["error"]

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url())

    def leave(self) -> None:
        """End as a command does that is done."""
        self._end()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self._end()

    def _end(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()
