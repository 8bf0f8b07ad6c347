"""The files of a private server: its folder, state and locks. Only their owner may read them, also on a shared machine."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import random
import secrets
import socket
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from redis_components.errors import RedisUnavailable
from redis_components.server.variables import project_dir, variable

FOLDER, FILE = 0o700, 0o600


def private_folder(path: Path) -> Path:
    """Make the folder, and those above it that are missing, each readable by its owner only; one that is there stays as it is.

    Raises OSError.
    """
    missing = []
    for folder in (path, *path.parents):
        if folder.exists():
            break
        missing.append(folder)
    for folder in reversed(missing):
        folder.mkdir(mode=FOLDER, exist_ok=True)  # `parents=True` would make those above it readable by all users
    path.mkdir(exist_ok=True)  # raises where a file has the name
    return path


def private_file(path: Path) -> None:
    """Make an empty file that only its owner may read, unless there is one already, which is not opened. Raises OSError.

    To close a file gives up all POSIX locks that the process has on it: SQLite's, too, by which others know that its log is in
    use.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE))


def acquire(path: Path, *, exclusive: bool, timeout_s: float = 0.0) -> int | None:
    """Lock the file (created 0600 if missing) and return its descriptor, to be closed to let go; None after `timeout_s`."""
    fd = unlocked(path)
    deadline = time.monotonic() + timeout_s
    try:
        while not try_lock(fd, exclusive=exclusive):
            if time.monotonic() >= deadline:
                os.close(fd)
                return None
            time.sleep(0.005)
    except BaseException:
        os.close(fd)
        raise
    return fd


def unlocked(path: Path) -> int:
    """Open the file (created 0600 if missing) and return its descriptor, which holds no lock yet."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_lock(fd: int, *, exclusive: bool) -> bool:
    """Lock an open file, unless another process's lock is in the way."""
    try:
        fcntl.flock(fd, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(fd: int) -> None:
    """Let go, and keep the file open."""
    fcntl.flock(fd, fcntl.LOCK_UN)


@contextlib.contextmanager
def held(path: Path, *, timeout_s: float = 0.0) -> Iterator[int | None]:
    """Hold the exclusive lock for the length of the block; yields None when another has it for longer than `timeout_s`."""
    fd = acquire(path, exclusive=True, timeout_s=timeout_s)
    try:
        yield fd
    finally:
        if fd is not None:
            os.close(fd)


def is_held(path: Path) -> bool:
    """Return True if any process holds the lock, shared or exclusive."""
    with held(path) as fd:
        return fd is None


def data_dir() -> Path:
    """Return the folder for everything that Trawl stores: TRAWL_DATA_DIR, else `data` in `project_dir()`."""
    named = variable("TRAWL_DATA_DIR")
    return Path(named).expanduser().absolute() if named else project_dir() / "data"


@dataclass(frozen=True, kw_only=True)
class ServerState:
    """The server that runs, as its keeper wrote it to `server.json`."""

    url: str
    pid: int  # of the server
    keeper: int  # pid of the keeper
    binary: str
    version: str
    directory: str


@dataclass(frozen=True, kw_only=True)
class Access:
    """Port and password, the same for every server started here, so that clients reconnect after a restart."""

    port: int
    password: str


@dataclass(frozen=True, kw_only=True)
class ServerFolder:
    """The folder `<data>/redis` and the names in it. All of it is readable by its owner only."""

    root: Path

    @classmethod
    def current(cls) -> ServerFolder:
        return cls(root=data_dir() / "redis")

    @property
    def users(self) -> Path:
        """Locked, shared, by each process that uses the server, for its life."""
        return self.root / "users.lock"

    @property
    def keeper(self) -> Path:
        """Locked by the one keeper, from before it is started until it has stopped its server."""
        return self.root / "keeper.lock"

    @property
    def log(self) -> Path:
        return self.root / "keeper.log"

    @property
    def _state(self) -> Path:
        return self.root / "server.json"

    @property
    def _access(self) -> Path:
        return self.root / "access.json"

    def create(self) -> None:
        """Make the folder. Raises RedisUnavailable when it cannot be written."""
        try:
            private_folder(self.root)
            self.users.touch(mode=0o600)
        except OSError as exc:
            raise self.cannot_write(exc) from exc

    def cannot_write(self, error: OSError) -> RedisUnavailable:
        """Return the error for files of the server that cannot be written, with the fix."""
        advice = "set TRAWL_DATA_DIR to a folder that can be written, or TRAWL_REDIS_URL to a server of your own"
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            advice = f"make room there (df), or {advice}"
        return RedisUnavailable(f"cannot write to {self.root} for the embedded Redis ({error.strerror}): {advice}")

    def state(self) -> ServerState | None:
        """Return the content of `server.json`; None when there is none. It may be left over from a killed keeper:
        see `session`.
        """
        try:
            return msgspec.json.decode(self._state.read_bytes(), type=ServerState)
        except (OSError, ValueError):
            return None

    def announce(self, state: ServerState) -> None:
        write_private(self._state, json.dumps(asdict(state), indent=1) + "\n")

    def withdraw(self, *, keeper: int | None = None) -> None:
        """Remove `server.json`; with `keeper`, only if it is that keeper's (the whole folder may have been replaced)."""
        state = self.state()
        if keeper is None or (state and state.keeper == keeper):
            self._state.unlink(missing_ok=True)

    def access(self, *, new_port: bool = False) -> Access:
        """Return port and password of this place; made at the first call, and the port again where another program
        has taken it.
        """
        try:
            stored = msgspec.json.decode(self._access.read_bytes(), type=Access)
        except (OSError, ValueError):
            stored = Access(port=free_port(), password=secrets.token_hex(16))
        else:
            if not new_port:
                return stored
            stored = Access(port=free_port(), password=stored.password)
        write_private(self._access, json.dumps(asdict(stored)) + "\n")
        return stored


PORTS = range(16_400, 32_000)


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
