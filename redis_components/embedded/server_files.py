"""Folder and state file of the embedded server."""

from __future__ import annotations

import errno
import json
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from redis_components.errors import RedisUnavailable
from redis_components.server.variables import project_dir, variable

from .private_files import private_folder
from .server import free_port, write_private


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
