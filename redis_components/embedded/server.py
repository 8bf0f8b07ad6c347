"""The two commands that the keeper sends to its server, without the client library: a keeper should stay small and start fast."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from redis_components.errors import RedisUnavailable

from . import private_files
from .binary import ServerBinary
from .die_with_parent import tied


class Answer(Enum):
    """The kinds of answer on a port."""

    READY = "ready"  # our server: it knows the password and answers
    LOADING = "loading"  # our server, still reading its data
    FOREIGN = "foreign"  # something listens there that does not know the password
    SILENT = "silent"  # nothing listens, or it does not answer in time


def ping(url: str, *, timeout_s: float = 1.0) -> Answer:
    """Return the kind of server at this `redis://:password@host:port`."""
    try:
        auth, pong = _ask(url, timeout_s, "PING")
    except OSError:
        return Answer.SILENT
    if auth != b"+OK":
        return Answer.FOREIGN
    return {b"+PONG": Answer.READY, b"-LOADIN": Answer.LOADING}.get(pong[:7], Answer.FOREIGN)


def shutdown(url: str, *, timeout_s: float = 1.0) -> None:
    """Ask the server to stop, if it is ours; a foreign one refuses the password and goes on."""
    with contextlib.suppress(OSError):
        _ask(url, timeout_s, "SHUTDOWN")


def _ask(url: str, timeout_s: float, command: str) -> tuple[bytes, bytes]:
    """Log in, send the command, and return the first line of both replies; b"" where the connection ended."""
    parts = urlsplit(url)
    password = unquote(parts.password or "").encode()
    with socket.create_connection((parts.hostname, parts.port), timeout_s) as sock, sock.makefile("rb") as replies:
        sock.sendall(b"*2\r\n$4\r\nAUTH\r\n$%d\r\n%b\r\n%b\r\n" % (len(password), password, command.encode()))
        return replies.readline(1024).rstrip(), replies.readline(1024).rstrip()


# Below the ports that the kernel hands to outgoing connections: otherwise a client that reconnects while the server
# is down may be given the server's own port, connect to itself, and keep the port taken.
PORTS = range(16_400, 32_000)
LOG_LINES = 4
STOP_TIMEOUT_S = 10.0


class PortTaken(RedisUnavailable):
    """The port is in use by another program; try another port."""


@dataclass(frozen=True, kw_only=True)
class ServerConfig:
    """Address and persistence of a server."""

    directory: Path
    port: int
    password: str
    aof: bool = True  # append-only file, synced every second; without it nothing survives the process

    @property
    def url(self) -> str:
        return f"redis://:{quote(self.password, safe='')}@127.0.0.1:{self.port}/0"

    @property
    def log(self) -> Path:
        return self.directory / "server.log"

    def write(self) -> Path:
        """Write `server.conf` (0600: it holds the password, which must not stand in the process list) and return its path."""
        path = self.directory / "server.conf"
        lines = [
            "bind 127.0.0.1",
            f"port {self.port}",
            f"requirepass {self.password}",
            "dir .",  # the process is started in its directory: no path to quote
            'save ""',
            f"appendonly {'yes' if self.aof else 'no'}",
            "appendfsync everysec",
            "maxmemory-policy noeviction",  # a queue must never drop entries silently
        ]
        write_private(path, "\n".join(lines) + "\n")
        return path


class Server:
    """A server that ends with the thread that started it, however that thread ends."""

    def __init__(self, binary: ServerBinary, config: ServerConfig) -> None:
        self.binary = binary
        self.config = config
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.running and self.process else None

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self, *, timeout_s: float | None = 30.0) -> None:
        """Start and wait until the server answers; `timeout_s=None` waits as long as it loads its data.

        Raises PortTaken, or RedisUnavailable with the last lines of its log.
        """
        log_start = self._launch()
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while self.running:
            answer = ping(self.config.url)
            if answer is Answer.READY:
                return
            if deadline and time.monotonic() > deadline:
                self.kill()
                raise RedisUnavailable(
                    f"{self.binary} did not answer within {timeout_s:g} s ({answer.value}): see {self.config.log}"
                )
            time.sleep(0.01)
        raise self._failure(log_start)

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Stop by SIGTERM, so that the append-only file is written to its end; by SIGKILL if that takes longer than
        `timeout_s`.
        """
        if self.process and self.running:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout_s)
        self.kill()

    def kill(self) -> None:
        """Kill the server at once, by SIGKILL."""
        if self.process:
            self.process.kill()
            self.process.wait()

    def _launch(self) -> int:
        """Start the process and return where in the log its words begin."""
        conf = self.config.write()
        with self._alone() as lock, self.config.log.open("ab") as log:
            log_start = log.tell()
            self.process = subprocess.Popen(
                tied(str(self.binary.path), conf.name),
                cwd=self.config.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(lock,),
                start_new_session=True,  # Ctrl-C in the terminal is not for the server
            )
        return log_start

    @contextlib.contextmanager
    def _alone(self) -> Iterator[int]:
        """Hold the lock of the data folder, which is handed to the server: two servers that write one file would ruin it.

        An earlier server may still be writing its last words, or live on after its parent where the kernel cannot end it.
        """
        path = self.config.directory / "server.lock"
        if private_files.is_held(path):
            shutdown(self.config.url)
        with private_files.held(path, timeout_s=STOP_TIMEOUT_S) as lock:
            if lock is None:
                raise RedisUnavailable(
                    f"another server still uses {self.config.directory} after {STOP_TIMEOUT_S:g} s: end it first"
                )
            yield lock

    def _failure(self, log_start: int) -> RedisUnavailable:
        """Return the reason why the server ended while it started, from its log since then."""
        with self.config.log.open("rb") as log:
            log.seek(log_start)
            lines = log.read().decode(errors="replace").splitlines()
        text = "\n".join(lines)
        if "Address already in use" in text:
            return PortTaken(f"port {self.config.port} is in use by another program: free it, or choose another port")
        where = self.config.directory
        if "Bad file format" in text or "Can't handle RDB format" in text:
            return RedisUnavailable(
                f"{self.binary} cannot read the data in {where}: another server wrote them, or they are damaged;"
                f" set TRAWL_REDIS_BIN to that server, or move the folder away to start empty (details: {self.config.log})"
            )
        tail = " | ".join(line.strip() for line in lines[-LOG_LINES:]) or "it logged nothing"
        return RedisUnavailable(f"{self.binary} ({self.binary.path}) does not start in {where}: {tail}")


def free_port() -> int:
    """Return a loopback port that is not in use. Another program may still be faster: be ready for PortTaken."""
    for port in random.sample(PORTS, 200):
        if is_free(port):
            return port
    raise RedisUnavailable(f"found no free port on 127.0.0.1 between {PORTS.start} and {PORTS.stop}: end some programs")


def is_free(port: int) -> bool:
    """Return True if a server could listen on this loopback port now."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does: a port in TIME_WAIT is free
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def write_private(path: Path, text: str) -> None:
    """Replace the file in one step by one that only its owner may read, so that no reader sees half of it."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
        draft.replace(path)
    except OSError:  # the disk is full
        draft.unlink(missing_ok=True)
        raise
