"""Child processes that belong together, and the services of one machine, as `trawl up` and the demo start them.

Used from one thread, the main one: the kernel ends a child when the *thread* that started it ends, so it has to be one that
stays. Each child runs in a new session: Ctrl-C in the terminal reaches only us, and we stop the children in order.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from types import FrameType
from typing import IO

from redis_components.embedded.child_process import ChildProcess
from redis_components.embedded.files import free_port, is_free
from redis_components.errors import TrawlError
from workers.environment.variables import Api, Flower
from workers.node.health import Condition, StatusFile
from workers.node.health_check import read_line
from workers.process.exit_kinds import node_s, shutdown_grace
from workers.process.run_module import FOLDER, own_module

MAX_RESTARTS = 3  # of one service within the window; then restarting does not help
WINDOW_S = 60.0
RESTART_WAIT_S = 1.0
STOP_S = 20.0  # from SIGTERM to SIGKILL, where a service has no other time
KILLED_S = 5.0  # longest wait for the end of what was sent SIGKILL
TICK_S = 0.05
LOOK_S = 1.0  # at a service's status file
LAST_LINES = 12

OnLine = Callable[[str, str], None]
"""Called with a service's name and a line of its output, in a thread of that service."""


class ServiceFailed(TrawlError):
    """A service does not stay up; the message holds its exit and its last words."""


@dataclass(frozen=True, kw_only=True)
class Service:
    """A program to run; `command` begins with an absolute path, `environment` is added to ours."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_s: float = STOP_S
    role: str = ""  # of its status file, where it has one


class Services:
    """Some services, as one. `on_line` gets every line that they print, and ours about them (service name `trawl`)."""

    def __init__(self, services: Sequence[Service], on_line: OnLine) -> None:
        self._on_line = on_line
        self._running = [_Running(service, on_line) for service in services]

    def start(self) -> None:
        """Start all, in order. Raises ServiceFailed; what was started already goes on until `stop`."""
        for one in self._running:
            one.start()

    def tend(self) -> None:
        """Look at each, end what hangs, and start what has died once more. Raises ServiceFailed when it dies again and again."""
        for one in self._running:
            if why := one.hangs():
                self._on_line("trawl", f"{one.service.name} hangs ({why}); it is ended")
                one.kill()
            if one.ended_unasked():
                one.restart_soon()
                self._on_line("trawl", f"{one.service.name} ended ({one.exit}); starting it again")
            one.start_if_due()

    def stop(self, *, hurry: Callable[[], bool] = lambda: False) -> None:
        """Send SIGTERM to all at once, the last started first. Each gets its time to end well, unless `hurry` returns True."""
        stopping = [one for one in reversed(self._running) if one.terminate()]
        now = time.monotonic()
        for one in reversed(self._running):
            one.end(now + one.service.stop_s, hurry)
            if one in stopping:
                self._on_line("trawl", f"{one.service.name} stopped ({one.exit})")

    def pids(self) -> dict[str, int]:
        """Return the running processes by service."""
        return {one.service.name: one.pid for one in self._running if one.pid}


class _StatusLook:
    """Looks at the status file of a process, by the clock of this one alone: what stood still together with us is not blamed."""

    def __init__(self, role: str, pid: int) -> None:
        self._path = str(StatusFile(role, pid=pid).path)
        self._line: tuple[float, float, str, str] | None = None
        self._unchanged_s, self._looked_at = 0.0, time.monotonic()

    def hangs(self) -> str | None:
        """Return why the process hangs; None where it does not, or there is no file yet."""
        if (passed_s := time.monotonic() - self._looked_at) < LOOK_S:
            return None
        self._looked_at += passed_s
        try:
            line = read_line(self._path)
        except (OSError, ValueError):
            return None
        _, limit_s, state, words = line
        self._unchanged_s = self._unchanged_s + min(passed_s, 2 * LOOK_S) if line == self._line else 0.0
        self._line = line
        if state == Condition.HUNG:
            return words
        return f"nothing was heard of it for {limit_s:.0f} s; before: {words}" if self._unchanged_s > limit_s else None


class _Running:
    """The present process of a service, and the thread that reads its output."""

    def __init__(self, service: Service, on_line: OnLine) -> None:
        self.service = service
        self._on_line = on_line
        self._process: ChildProcess | None = None
        self._reader: threading.Thread | None = None
        self._said: deque[str] = deque(maxlen=LAST_LINES)
        self._deaths: deque[float] = deque(maxlen=MAX_RESTARTS + 1)
        self._start_at: float | None = None
        self._look: _StatusLook | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self._process.poll() is None else None

    @property
    def exit(self) -> str:
        """Return the end of its last process in words."""
        code = self._process.returncode if self._process else None
        if code is None:
            return "runs"
        return f"exit code {code}" if code >= 0 else signal.Signals(-code).name

    def start(self) -> None:
        if not which(self.service.command[0]):
            raise ServiceFailed(f"{self.service.name} cannot be started: {self.service.command[0]} is not an executable program")
        self._said.clear()
        try:
            self._process = ChildProcess(
                self.service.command,
                ends_with_us=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env={**os.environ, "PYTHONUNBUFFERED": "1", **self.service.environment},
            )
        except OSError as error:
            raise ServiceFailed(f"{self.service.name} cannot be started: {error}") from error
        assert self._process.stdout
        self._start_at = None
        self._look = _StatusLook(self.service.role, self._process.pid) if self.service.role else None
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,), name=self.service.name, daemon=True)
        self._reader.start()

    def ended_unasked(self) -> bool:
        return self._start_at is None and self._process is not None and self._process.poll() is not None

    def hangs(self) -> str | None:
        """Return why its process hangs; None where it does not, or has no status file."""
        return self._look.hangs() if self._look and self.pid else None

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self._end_group()
        with suppress(subprocess.TimeoutExpired):
            assert self._process
            self._process.wait(KILLED_S)

    def restart_soon(self) -> None:
        self._end_group()
        now = time.monotonic()
        self._deaths.append(now)
        if len(self._deaths) > MAX_RESTARTS and now - self._deaths[0] < WINDOW_S:
            raise ServiceFailed(
                f"{self.service.name} ended {len(self._deaths)} times within {WINDOW_S:.0f} s ({self.exit}): {self._last_words()}"
            )
        self._start_at = now + RESTART_WAIT_S

    def start_if_due(self) -> None:
        if self._start_at is not None and time.monotonic() >= self._start_at:
            self.start()

    def terminate(self) -> bool:
        """SIGTERM; False when it does not run."""
        self._start_at = None
        if self._process is None or self._process.poll() is not None:
            return False
        self._process.terminate()
        return True

    def end(self, deadline: float, hurry: Callable[[], bool]) -> None:
        """Wait for its end, at most until `deadline` (monotonic); then end it, and in any case what it has left behind."""
        if self._process is None:
            return
        while self._process.poll() is None and time.monotonic() < deadline and not hurry():
            time.sleep(TICK_S)
        self.kill()

    def _end_group(self) -> None:
        """SIGKILL, once, for what is left of it and of what it started in its session."""
        if self._process:
            self._process.kill_group()
        if self._reader:
            self._reader.join(KILLED_S)  # its last words; a pipe that a grandchild holds open must not keep us

    def _read(self, pipe: IO[str]) -> None:
        with pipe:
            for line in pipe:
                text = line.rstrip("\n")
                self._said.append(text)
                self._on_line(self.service.name, text)

    def _last_words(self) -> str:
        return " | ".join(line.strip() for line in list(self._said)[-4:] if line.strip()) or "it printed nothing"


class Interrupts:
    """The first asks for the end, the second for a quick one. An exception in the middle of a start would lose a process."""

    def __init__(self) -> None:
        self.count = 0

    def listen(self) -> None:
        """From now on count SIGINT, SIGTERM and SIGHUP (the terminal was closed). From the main thread."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup: the terminal may go
                signal.signal(number, self._hear)

    @property
    def asked(self) -> bool:
        return self.count > 0

    @property
    def impatient(self) -> bool:
        return self.count > 1

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1


def take(port: int) -> int:
    """Return the port, for 0 any free one. Raises TrawlError for one that another program has."""
    if port and not is_free(port):
        raise TrawlError(
            f"port {port} is in use by another program, or this fleet runs here already (trawl status shows it); a second node on"
            " this machine takes other ports: trawl up --port-flower 0 --port-exporter 0"
        )
    return port or free_port()


def prefer(port: int) -> int:
    """`port` if nothing listens there, else any free one."""
    return port if is_free(port) else free_port()


def answers(port: int) -> bool:
    """Return True if a server of this machine accepts connections at this port."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


FLOWER_PORT = 5555  # Flower's own default
EXPORTER_PORT = 9410  # as `monitoring.exporter`
FLOWER_CONFIG = Path(FOLDER) / "flowerconfig.py"  # by its place: Flower would read a file of that name in the current folder
HELPER_STOP_S = 5.0  # those that only look have nothing to finish


@dataclass(frozen=True, kw_only=True)
class FlowerAccess:
    """Address and login of Flower. Its users may also stop tasks, so it always has a password."""

    port: int
    user: str = "trawl"
    password: str = field(default_factory=lambda: secrets.token_urlsafe(9), repr=False)
    given: bool = False  # by TRAWL_FLOWER_AUTH: who gave it knows it, and it must not get into a journal

    @classmethod
    def on(cls, port: int) -> FlowerAccess:
        """With TRAWL_FLOWER_AUTH (`user:password`), else a new password. Raises ConfigError."""
        given = Flower.read().flower_auth
        if given is None:
            return cls(port=port)
        user, _, password = given.get_secret_value().partition(":")
        return cls(port=port, user=user, password=password, given=True)

    @property
    def how_to_log_in(self) -> str:
        """The new password; of one that was given only where it stands."""
        return "the password of TRAWL_FLOWER_AUTH" if self.given else f"password {self.password}"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True, kw_only=True)
class PageAccess:
    """Address of the status page, and the token that opens it for acting."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(15), repr=False)
    given: bool = False  # by TRAWL_API_ACT_TOKEN, which is not printed

    @classmethod
    def on(cls, port: int) -> PageAccess:
        """With TRAWL_API_ACT_TOKEN, else a new token. Raises ConfigError."""
        given = Api.read().api_act_token
        return cls(port=port) if given is None else cls(port=port, token=given.get_secret_value(), given=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def link(self) -> str:
        """The address that is logged in; of a token that was given the address alone."""
        return f"{self.url}/" if self.given else f"{self.url}/login?token={self.token}"


def node_services(flower: FlowerAccess, page: PageAccess) -> list[Service]:
    """In the order in which they are started; they are stopped the other way round, the worker with its crawlers last.

    Raises ConfigError.
    """
    return [
        # Not celery@host: a worker started by hand on the same machine, or a second `trawl up`, needs another name.
        Service(
            name="worker",
            command=_celery("worker", f"--hostname=up-{os.getpid()}@%h", "--loglevel=INFO"),
            environment=_project(),
            stop_s=node_s(shutdown_grace()),
            role="worker",
        ),
        Service(name="beat", command=_celery("beat", "--loglevel=INFO"), stop_s=HELPER_STOP_S, role="beat"),
        Service(
            name="flower",
            command=_celery("flower", "--address=127.0.0.1", f"--port={flower.port}", f"--conf={FLOWER_CONFIG}"),
            environment={"FLOWER_BASIC_AUTH": f"{flower.user}:{flower.password}"},  # not where `ps` shows it
            stop_s=HELPER_STOP_S,
        ),
        Service(
            name="exporter",
            command=tuple(own_module("monitoring.exporter", f"--port={page.port}")),
            environment={} if page.given else {"TRAWL_API_ACT_TOKEN": page.token},
            stop_s=HELPER_STOP_S,
        ),
    ]


def _project() -> dict[str, str]:
    """Outside of a Scrapy project crawlers would know no spider: there they get Trawl's own."""
    here = Path.cwd()
    if "SCRAPY_SETTINGS_MODULE" in os.environ or any((folder / "scrapy.cfg").is_file() for folder in (here, *here.parents)):
        return {}
    return {"SCRAPY_SETTINGS_MODULE": "workers.settings"}


def _celery(command: str, *options: str) -> tuple[str, ...]:
    return tuple(own_module("tasks", "--quiet", command, *options))
