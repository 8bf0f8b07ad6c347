"""The spiders of a project with their modules and attributes, found in a separate process: importing a project may do anything.

`python -m fleet_operations.jobs.spider_list` prints a line of JSON. A project of thousands of modules is imported once, and again
when one of its files has changed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from redis_components.embedded import data_dir
from redis_components.embedded.files import private_folder
from redis_components.errors import ConfigError
from redis_components.server.variables import load_env_file
from workers.process.run_module import own_module

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.settings import BaseSettings

IMPORT_S = 600
"""Within so long a project is imported, on a busy machine."""
_MOST_ATTRIBUTES = 60
_MOST_TEXT = 200
_KEPT = 4
"""Lists of other contents that are kept."""


@dataclass(frozen=True, kw_only=True)
class SpiderEntry:
    """One spider of a project."""

    name: str
    module: str
    attributes: dict[str, str] = field(default_factory=dict)
    """Attributes of its class that are texts, numbers or switches; those in a dictionary as `item_attributes.brand`."""


class SpiderList(msgspec.Struct):
    """The spiders of a project, and the modules that cannot be imported, with the errors."""

    spiders: list[SpiderEntry]
    broken: dict[str, str] = {}


def project_spiders(project: str = "") -> SpiderList:
    """Return the spiders of the project in the current folder, or of a settings module. Raises ConfigError with the reason where
    there is none.
    """
    environment = {**os.environ, **({"SCRAPY_SETTINGS_MODULE": project} if project else {})}
    try:
        done = subprocess.run(
            own_module(__name__), env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=IMPORT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(f"the project's spiders were not imported within {IMPORT_S} s") from None
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no reason was given"]
        raise ConfigError(f"the project's spiders cannot be listed: {last[0]:.300}")
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=SpiderList)


def _listed(settings: BaseSettings) -> bytes:
    """Return the list as JSON: the kept one, where the project has the same content."""
    folder = data_dir() / "spiders"
    file = folder / f"{_digest(settings)}.json"
    try:
        found = file.read_bytes()
        msgspec.json.decode(found, type=SpiderList)
    except (OSError, ValueError):
        found = msgspec.json.encode(_imported(settings))
        private_folder(folder)
        part = file.with_suffix(f".{os.getpid()}")
        part.write_bytes(found)
        part.replace(file)
        for old in sorted(folder.glob("*.json"), key=lambda one: one.stat().st_mtime)[:-_KEPT]:
            old.unlink(missing_ok=True)
    return found


def _digest(settings: BaseSettings) -> str:
    """Return a digest of the source files of the packages of SPIDER_MODULES, and of their names."""
    whole = sha256(repr((sys.version, settings.getlist("SPIDER_MODULES"))).encode())
    for place in sorted({place for module in settings.getlist("SPIDER_MODULES") for place in _places(module)}):
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            whole.update(f"\0{path}\0".encode() + path.read_bytes())
    return whole.hexdigest()[:24]


def _places(module: str) -> Iterator[Path]:
    spec = find_spec(module.partition(".")[0])
    if spec is None:
        raise ConfigError(f"SPIDER_MODULES: there is no module {module!r}")
    if spec.submodule_search_locations:
        yield from map(Path, spec.submodule_search_locations)
    elif spec.origin:
        yield Path(spec.origin)


def _imported(settings: BaseSettings) -> SpiderList:
    from scrapy.utils.spider import iter_spider_classes

    entries: dict[str, SpiderEntry] = {}
    broken: dict[str, str] = {}
    for name in settings.getlist("SPIDER_MODULES"):
        for module in _modules(name, broken):
            for cls in iter_spider_classes(module):
                entries[cls.name] = SpiderEntry(name=cls.name, module=module.__name__, attributes=_attributes(cls))
    return SpiderList(spiders=[entries[name] for name in sorted(entries)], broken=broken)


def _modules(name: str, broken: dict[str, str]) -> Iterator[Any]:
    """Yield a module and those below it; one that raises goes to `broken`, and the others go on."""
    from importlib import import_module
    from pkgutil import iter_modules

    try:
        module = import_module(name)
    except BaseException as error:  # also sys.exit
        if isinstance(error, KeyboardInterrupt):
            raise
        broken[name] = f"{type(error).__name__}: {error}"[:_MOST_TEXT]
        return
    yield module
    for _, below, _ in iter_modules(module.__path__) if hasattr(module, "__path__") else ():
        yield from _modules(f"{name}.{below}", broken)


def _attributes(cls: type[Spider]) -> dict[str, str]:
    found: dict[str, str] = {}
    own = [one for one in cls.__mro__ if not one.__module__.startswith("scrapy.") and one is not object]
    values = {name: value for one in reversed(own) for name, value in vars(one).items() if name[:1] != "_"}
    for name, value in values.items():
        inner = {f"{name}.{key}": one for key, one in value.items()} if isinstance(value, dict) else {name: value}
        plain = {key: str(one) for key, one in inner.items() if isinstance(one, str | int | float)}
        found |= {key: one for key, one in plain.items() if len(key) + len(one) <= _MOST_TEXT}
        if len(found) >= _MOST_ATTRIBUTES:
            break
    return found


def main() -> None:
    """Print the spiders of the project. A module's own output goes to standard error."""
    from scrapy.utils.project import get_project_settings

    load_env_file()
    out, sys.stdout = sys.stdout, sys.stderr
    out.buffer.write(_listed(get_project_settings()) + b"\n")


if __name__ == "__main__":
    main()
