"""Digests of a node's configuration: of its crawlers' code, site files and environment; and of the files that all nodes share.

Where the first differs, something was changed: a slot that was given up is worth another try. It covers the code that crawls
(the folder of Scrapy's settings module, and Trawl's own), the site files, and the environment. What may differ between nodes of
one fleet, such as folders, is left out. Nothing of its sources can be read from it: secrets in them are safe.

Site files, and what declares services and outputs of events, must be alike on all nodes. A node sends a digest of each with its
heartbeat, so that nodes that differ are noticed, and `trawl up` does not serve as one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import redis_components
from redis_components.embedded import project_dir
from redis_components.errors import ConfigError
from redis_components.server.fleet_file import fleet_files
from redis_components.server.variables import variable
from workers.application import application
from workers.environment.declaration import settings_module
from workers.state.nodes import NodeRecord

_VARIABLES = ("TRAWL_", "SCRAPY_")
_OF_ONE_NODE = frozenset(
    f"TRAWL_{name}"
    for name in ("DATA_DIR", "ENV", "FLOWER_AUTH", "HEALTH_DIR", "NODE", "NODE_CRAWLERS", "REDIS_BIN", "SITES_DIR")
)
_KINDS = (".py", ".lua", ".toml", ".cfg")

_Look = tuple[str, str, int, int]  # name within its folder, place, time of the last change (ns), size


def config_digest(environment: Mapping[str, str] = os.environ) -> str:
    """Return twelve hexadecimal digits. Reads files only when one was touched; a look at all takes some milliseconds."""
    names = {name.removesuffix("_FILE") for name in environment if name.startswith(_VARIABLES)} - _OF_ONE_NODE
    variables = tuple((name, _value(name, environment)) for name in sorted(names))
    return _digest(tuple(_looks(settings_module(environment))), repr(variables))


def _value(name: str, environment: Mapping[str, str]) -> str:
    try:
        return variable(name, environment) or ""
    except ConfigError as error:  # a missing file; the reader of the value reports it
        return str(error)


@lru_cache(maxsize=8)
def _digest(looks: tuple[_Look, ...], more: str = "") -> str:
    whole = hashlib.sha256(more.encode())
    for name, path, _, _ in looks:
        with suppress(OSError):  # gone since
            whole.update(f"\0{name}\0".encode() + Path(path).read_bytes())
    return whole.hexdigest()[:12]


def _looks(settings: str) -> Iterator[_Look]:
    folders = [Path(__file__).parents[1], Path(redis_components.__file__).parent, *application().config_folders()]
    if (project := _folder_of(settings)) and project not in folders:
        folders.append(project)
    for folder in folders:
        name, start = folder.name, len(str(folder))
        for path in _sources(str(folder)):
            try:
                stat = os.stat(path)  # noqa: PTH116 - a Path for each of 600 files costs more than all else
            except OSError:
                continue
            yield name + path[start:], path, stat.st_mtime_ns, stat.st_size


def _sources(root: str) -> Iterator[str]:
    """Yield the source files below `root`, also in a project's root: hidden folders and virtual environments are skipped."""
    for folder, folders, files in os.walk(root):
        is_environment = "pyvenv.cfg" in files and folder != root  # a virtual one
        folders[:] = [] if is_environment else sorted(one for one in folders if one[0] not in "._")
        if not is_environment:
            yield from (f"{folder}/{one}" for one in sorted(files) if one.endswith(_KINDS))


def _folder_of(module: str) -> Path | None:
    with suppress(ImportError, ValueError):
        spec = find_spec(module)
        if spec and spec.origin:
            return Path(spec.origin).parent
    # `celery -A tasks` has the working directory on its path only while it imports the tasks.
    file = project_dir().joinpath(*module.split(".")).with_suffix(".py")
    return file.parent if file.is_file() else None


def shared_digests() -> tuple[str, ...]:
    """Return `<what>=<digest>` of each kind of files; files are read only when one was touched. Raises ConfigError."""
    places = {**fleet_files(), **application().shared_files()}
    return tuple(f"{what}={_digest(tuple(_shared_looks(place)))}" for what, place in places.items())


def _shared_looks(place: Path | None) -> Iterator[_Look]:
    """Yield name, path, time of the last change and size of the file, or of each TOML file below the folder."""
    if place is None:
        return
    for path in sorted(place.rglob("*.toml")) if place.is_dir() else [place]:
        with suppress(OSError):
            found = path.stat()
            yield os.fspath(path.relative_to(place)), os.fspath(path), found.st_mtime_ns, found.st_size


def differences(nodes: Iterable[NodeRecord]) -> list[str]:
    """Return a sentence for each kind of files that these nodes do not have alike; nodes of an older Trawl send none."""
    found: dict[str, dict[str, list[str]]] = {}
    for node in nodes:
        for what, _, digest in (one.partition("=") for one in node.files):
            found.setdefault(what, {}).setdefault(digest, []).append(node.name)
    return [
        f"nodes have different {what}: " + " and ".join(_named(names) for names in by_digest.values())
        for what, by_digest in found.items()
        if len(by_digest) > 1
    ]


def _named(names: list[str]) -> str:
    more = f" with {len(names) - 1:,} more" if len(names) > 1 else ""
    return f"{min(names)}{more}"
