"""A real server for tests: private, on its own free port, with a password, in a folder of its own."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import tempfile
from functools import cache
from pathlib import Path
from types import TracebackType

import redis

from redis_components.embedded.files import free_port
from redis_components.embedded.server import PortTaken, Server, ServerBinary, ServerConfig, choose


@cache
def _binary(*_: str | None) -> ServerBinary:
    """What `choose` finds with these variables: it starts a program, for 7 ms of CPU, and some hundred tests have servers."""
    return choose()


class RedisServer:
    """A server that a test may stop, kill, freeze and restart; it keeps port, password and folder for its life.

        with RedisServer(aof=True) as server:
            server.client().set("a", 1)
            server.kill()
            server.start()  # with aof=True what was synced is there again

    Without `aof` it starts empty each time. It ends with the thread that starts it: use it from the main thread. When no
    server binary is found, `RedisUnavailable` says what to install; tests do not skip.
    """

    def __init__(self, *, aof: bool = False, directory: Path | None = None) -> None:
        self.binary = _binary(os.environ.get("TRAWL_REDIS_BIN"), os.environ.get("PATH"))
        self._own: tempfile.TemporaryDirectory[str] | None = None
        if directory is None:
            self._own = tempfile.TemporaryDirectory(prefix="trawl-test-redis-")
            directory = Path(self._own.name)
        self._directory = directory
        self._aof = aof
        self._clients: list[redis.Redis] = []
        self._server = self._new()

    def start(self) -> RedisServer:
        """Start, or start again on the same port, and wait until it answers."""
        if self._server.running:
            return self
        for _ in range(5):
            try:
                self._server.start()
            except PortTaken:
                self._server = self._new()
            else:
                return self
        raise PortTaken("five free ports were taken before the server could listen on them: run the test again")

    def stop(self) -> None:
        """SIGTERM, as an operator's restart does it."""
        self._server.stop()

    def kill(self) -> None:
        """SIGKILL: with AOF at most the last second is lost, without it everything."""
        self._server.kill()

    def remember(self) -> None:
        """Keep a copy of what was written so far, for `kill_and_forget`; with `aof`."""
        shutil.copytree(self.directory / "appendonlydir", self.directory / "remembered")

    def kill_and_forget(self) -> None:
        """SIGKILL, and start again with what was remembered: the server has lost its last seconds."""
        self.kill()
        shutil.rmtree(self.directory / "appendonlydir")
        (self.directory / "remembered").rename(self.directory / "appendonlydir")
        self.start()

    def restart(self) -> None:
        self.stop()
        self.start()

    def pause(self) -> None:
        """SIGSTOP: connections stay open and nobody answers."""
        if self._server.process:
            self._server.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self._server.process:
            self._server.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Stop, and remove the folder unless it was given; the end of the `with` block does it."""
        for client in self._clients:
            client.close()
        self.resume()  # a frozen process does not hear SIGTERM
        self.stop()
        if self._own:
            self._own.cleanup()

    @property
    def url(self) -> str:
        return self._server.config.url

    @property
    def port(self) -> int:
        return self._server.config.port

    @property
    def password(self) -> str:
        return self._server.config.password

    @property
    def directory(self) -> Path:
        return self._directory

    @property
    def pid(self) -> int | None:
        return self._server.pid

    @property
    def running(self) -> bool:
        return self._server.running

    def log(self) -> str:
        """What the server has said since it was first started."""
        return self._server.config.log.read_text(errors="replace")

    def client(self, *, decode_responses: bool = False) -> redis.Redis:
        """A client with a connection pool of its own, closed with the server."""
        client = redis.Redis.from_url(self.url, decode_responses=decode_responses)
        self._clients.append(client)
        return client

    def _new(self) -> Server:
        return Server(self.binary, self._config(free_port()))

    def _config(self, port: int) -> ServerConfig:
        return ServerConfig(directory=self._directory, port=port, password=secrets.token_hex(16), aof=self._aof)

    def __enter__(self) -> RedisServer:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
