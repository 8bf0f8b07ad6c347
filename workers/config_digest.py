"""A short digest of what decides how a crawler of this node is configured.

Where it differs, something was changed: a slot that was given up is worth another try. It covers the code that crawls (the folder
of Scrapy's settings module, and Trawl's own), the site files, and the environment. What may differ between nodes of one fleet,
such as folders, is left out. Nothing of its sources can be read from it: secrets in them are safe.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import redis_components
from redis_components.embedded import project_dir

from .sites_folder import sites_dir

_VARIABLES = ("TRAWL_", "SCRAPY_")
_OF_ONE_NODE = frozenset(
    f"TRAWL_{name}" for name in ("DATA_DIR", "FLOWER_AUTH", "NODE", "NODE_CRAWLERS", "REDIS_BIN", "SITES_DIR")
)
_KINDS = frozenset({".py", ".lua", ".toml", ".cfg"})

_Look = tuple[str, Path, int, int]  # name within its folder, place, time of the last change (ns), size
_known: tuple[object, str] = (None, "")  # what everything looked like when the files were last read, and the digest of then


def config_digest(environment: Mapping[str, str] = os.environ) -> str:
    """Twelve hexadecimal digits. Reads files only when one was touched, so it may be asked every second."""
    global _known
    names = sorted(name for name in environment if name.startswith(_VARIABLES) and name not in _OF_ONE_NODE)
    variables = tuple((name, environment[name]) for name in names)
    looks = tuple(_looks(environment.get("SCRAPY_SETTINGS_MODULE")))
    if _known[0] != (variables, looks):
        _known = (variables, looks), _digest(variables, looks)
    return _known[1]


def _digest(variables: tuple[tuple[str, str], ...], looks: tuple[_Look, ...]) -> str:
    whole = hashlib.sha256(repr(variables).encode())
    for name, path, _, _ in looks:
        with suppress(OSError):  # gone since
            whole.update(f"\0{name}\0".encode() + path.read_bytes())
    return whole.hexdigest()[:12]


def _looks(settings_module: str | None) -> Iterator[_Look]:
    folders = [Path(__file__).parent, Path(redis_components.__file__).parent, sites_dir()]
    if (settings := _folder_of(settings_module or _named_in_scrapy_cfg())) and settings not in folders:
        folders.append(settings)
    for folder in folders:
        for path in _sources(folder):
            with suppress(OSError):
                stat = path.stat()
                yield f"{folder.name}/{path.relative_to(folder)}", path, stat.st_mtime_ns, stat.st_size


def _sources(folder: Path) -> Iterator[Path]:
    """Of a project whose settings module is in its root, too: what is no source is not looked into."""
    for here, inner, names in os.walk(folder):
        inner[:] = sorted(name for name in inner if name[0] not in "._" and not Path(here, name, "pyvenv.cfg").exists())
        yield from (Path(here, name) for name in sorted(names) if Path(name).suffix in _KINDS)


def _named_in_scrapy_cfg() -> str:
    config = ConfigParser()
    with suppress(OSError, ConfigParserError):  # who uses it for crawling says what is wrong with it
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
