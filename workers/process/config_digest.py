"""A short digest of a node's crawler configuration: code, site files and environment.

Where it differs, something was changed: a slot that was given up is worth another try. It covers the code that crawls (the folder
of Scrapy's settings module, and Trawl's own), the site files, and the environment. What may differ between nodes of one fleet,
such as folders, is left out. Nothing of its sources can be read from it: secrets in them are safe.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import redis_components
from redis_components.embedded import project_dir
from redis_components.errors import ConfigError
from redis_components.server.variables import variable
from workers.application import application

_VARIABLES = ("TRAWL_", "SCRAPY_")
_OF_ONE_NODE = frozenset(
    f"TRAWL_{name}"
    for name in ("DATA_DIR", "ENV", "FLOWER_AUTH", "HEALTH_DIR", "NODE", "NODE_CRAWLERS", "REDIS_BIN", "SITES_DIR")
)
_KINDS = frozenset({".py", ".lua", ".toml", ".cfg"})

_SETTLED_NS = 1_000_000_000  # a folder changed more recently may have changed again within one tick of the file system's clock

_Look = tuple[str, str, int, int]  # name within its folder, place, time of the last change (ns), size
_known: tuple[object, str] = (None, "")  # the state of all files when they were last read, and the digest of that time


@dataclass(frozen=True, slots=True)
class _Listing:
    """Contents of a folder; unchanged until the folder itself is changed, so that a check costs one `stat` a file."""

    changed_ns: int = 0
    folders: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    is_environment: bool = False  # a virtual one


_listings: dict[str, _Listing] = {}


def config_digest(environment: Mapping[str, str] = os.environ) -> str:
    """Return twelve hexadecimal digits. Reads files only when one was touched, and folders only when they were changed, so it
    may be called every second.
    """
    global _known
    names = {name.removesuffix("_FILE") for name in environment if name.startswith(_VARIABLES)} - _OF_ONE_NODE
    variables = tuple((name, _value(name, environment)) for name in sorted(names))
    looks = tuple(_looks(settings_module(environment)))
    if _known[0] != (variables, looks):
        _known = (variables, looks), _digest(variables, looks)
    return _known[1]


def _value(name: str, environment: Mapping[str, str]) -> str:
    try:
        return variable(name, environment) or ""
    except ConfigError as error:  # a missing file; the reader of the value reports it
        return str(error)


def _digest(variables: tuple[tuple[str, str], ...], looks: tuple[_Look, ...]) -> str:
    whole = hashlib.sha256(repr(variables).encode())
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
    waiting = [root]
    while waiting:
        listing = _listing(here := waiting.pop())
        if listing.is_environment and here != root:
            continue
        yield from listing.files
        waiting += reversed(listing.folders)


def _listing(folder: str) -> _Listing:
    """Return the folder's present contents."""
    try:
        changed_ns = os.stat(folder).st_mtime_ns  # noqa: PTH116
        known = _listings.get(folder)
        if known and known.changed_ns == changed_ns:
            return known
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return _Listing()
    listing = _Listing(
        changed_ns=changed_ns,
        folders=tuple(one.path for one in found if one.name[0] not in "._" and one.is_dir(follow_symlinks=False)),
        files=tuple(one.path for one in found if os.path.splitext(one.name)[1] in _KINDS and not one.is_dir()),  # noqa: PTH122
        is_environment=any(one.name == "pyvenv.cfg" for one in found),
    )
    if time.time_ns() - changed_ns > _SETTLED_NS:
        _listings[folder] = listing
    return listing


def settings_module(environment: Mapping[str, str] = os.environ) -> str:
    """Return the settings module of the Scrapy project that this node's crawlers run."""
    return environment.get("SCRAPY_SETTINGS_MODULE") or _named_in_scrapy_cfg()


def has_own_spiders() -> bool:
    """Return True if the project of this folder does not have the application's spiders: its settings take over nothing of
    `workers.settings`. Its spiders are not loaded for that, as each command asks.
    """
    module = settings_module()
    file = project_dir().joinpath(*module.split(".")).with_suffix(".py")
    try:
        text = file.read_bytes()
    except OSError:
        return False
    return module != "workers.settings" and b"workers.settings" not in text and b"forums." not in text


def _named_in_scrapy_cfg() -> str:
    config = ConfigParser()
    with suppress(OSError, ConfigParserError):  # the crawler that uses the file reports its errors
        config.read(project_dir() / "scrapy.cfg")
    return config.get("settings", os.environ.get("SCRAPY_PROJECT", "default"), fallback="workers.settings")


def _folder_of(module: str) -> Path | None:
    with suppress(ImportError, ValueError):
        spec = find_spec(module)
        if spec and spec.origin:
            return Path(spec.origin).parent
    # `celery -A tasks` has the working directory on its path only while it imports the tasks.
    file = project_dir().joinpath(*module.split(".")).with_suffix(".py")
    return file.parent if file.is_file() else None
