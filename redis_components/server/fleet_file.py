"""`trawl.toml`: the file in which one fleet is declared, next to `scrapy.cfg` or where TRAWL_CONFIG names it.

[fleet]                        variables: the names of docs/reference/settings.md without TRAWL_, in lower case
[services.NAME]                workers/state/services.py, `ServiceRecord`
[groups.NAME], [quotas.NAME]   fleet_operations/jobs/groups.py
[rules.NAME], [outputs.NAME]   forums/events/rules.py
[limits.SITE]                  workers/fleet/sizes.py
[schedule.NAME]                workers/state/beats.py

For one release the tables may also stand in the files of the release before, `OLD_FILES`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from redis_components.errors import ConfigError, did_you_mean

from .variables import project_dir, variable

FILE = "trawl.toml"
VARIABLE = "TRAWL_CONFIG"
TABLES = ("fleet", "services", "groups", "quotas", "rules", "outputs", "limits", "schedule")
_LARGEST = 1 << 20  # bytes
_known: dict[Path, tuple[tuple[int, int], dict[str, Any]]] = {}
_warned: set[Path] = set()
log = logging.getLogger(__name__)
T = TypeVar("T")


class OldFile(NamedTuple):
    """A file of the release before."""

    name: str
    variable: str
    tables: tuple[str, ...]
    must_exist: bool = True

    def path(self) -> Path | None:
        """Return its path; None where there is none. Raises ConfigError where a named one is missing that has to exist."""
        return _path(self.variable, self.name, must_exist=self.must_exist)


OLD_FILES = (
    OldFile("services.toml", "TRAWL_SERVICES", ("services",)),
    OldFile("events.toml", "TRAWL_EVENTS_FILE", ("rules", "outputs"), must_exist=False),
)


class Declared(NamedTuple):
    """Tables, and the file that has them."""

    file: Path
    tables: dict[str, Any]


def config_file() -> Path | None:
    """Return the path of `trawl.toml`; None where there is none. Raises ConfigError where a named one is missing."""
    return _path(VARIABLE, FILE)


def fleet_files() -> dict[str, Path | None]:
    """Return the files that all nodes must have alike, by name: `trawl.toml`, and the old ones that exist."""
    return {FILE: config_file(), **{old.name: path for old in OLD_FILES if (path := old.path())}}


def declared(*names: str) -> Declared | None:
    """Return the tables with these names; None where no file has one. Raises ConfigError with the file and the fault."""
    current = config_file()
    whole = document(current, TABLES) if current else {}
    found = {name: _table(current, name, whole[name]) for name in names if current and name in whole}
    for old in OLD_FILES:
        if not set(names) & set(old.tables) or not (path := old.path()):
            continue
        if found:
            raise ConfigError(f"{current} and {path} both declare {' and '.join(found)}: keep them in {FILE} and remove {path}")
        if path not in _warned:
            _warned.add(path)
            log.warning("%s is read for one more release: `trawl upgrade` moves it into %s", path, FILE)
        return Declared(path, {name: _table(path, name, value) for name, value in document(path, old.tables).items()})
    return Declared(current, found) if current and found else None


def document(path: Path, tables: Sequence[str]) -> dict[str, Any]:
    """Return the content of a file, which may have these tables. It is read again when it changes. Raises ConfigError."""
    try:
        look = path.stat()
        stamp = look.st_mtime_ns, look.st_size
        if path not in _known or _known[path][0] != stamp:
            if look.st_size > _LARGEST:
                raise ConfigError(f"{path} has over 1 MiB: this cannot be a file of Trawl")
            from .untrusted_values import toml_table  # loads redis-py, which few commands need

            _known[path] = stamp, toml_table(path.read_text("utf-8"))
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: cannot be read: it is not UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path}: is not TOML: {error}") from None
    whole = _known[path][1]
    if wrong := [name for name in whole if name not in tables]:
        known = ", ".join(f"[{name}]" for name in tables)
        raise faulty(path, (f"{name}: unknown; there are {known}{did_you_mean(name, tables)}" for name in wrong))
    return whole


def record_of(values: Mapping[str, Any], kind: type[T], where: str, known: Sequence[str]) -> tuple[T | None, list[str]]:
    """Return the record with these values, of which each has a default; None where there are faults, one a line after `where`."""
    faults = []
    for key, value in values.items():
        if key not in known:
            faults.append(f"{where}.{key}: unknown; there are {', '.join(known)}{did_you_mean(key, known)}")
            continue
        try:
            msgspec.convert({key: value}, kind)
        except msgspec.ValidationError as error:
            message, _, place = str(error).partition(" - at `$")
            faults.append(f"{where}{place.rstrip('`')}: {message[:1].lower()}{message[1:]}")
    return (None if faults else msgspec.convert(dict(values), kind)), faults


def faulty(path: Path, faults: Iterable[str]) -> ConfigError:
    """Return the error for these faults of a file, each as `TABLE.NAME.KEY: fault`: a line for each."""
    return ConfigError("\n".join(f"{path}: {fault}" for fault in faults))


def _table(path: Path, name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise faulty(path, [f"{name}: must be a table, as [{name}{'' if name == 'fleet' else '.NAME'}]"])
    for key, inner in () if name == "fleet" else value.items():
        if not isinstance(inner, dict):
            raise faulty(path, [f"{name}.{key}: must be a table, as [{name}.NAME]"])
    return value


def _path(of: str, name: str, *, must_exist: bool = True) -> Path | None:
    named = variable(of)
    path = Path(named).expanduser() if named else project_dir() / name
    if named and must_exist and not path.is_file():
        raise ConfigError(f"{of}={named!r}: there is no such file: correct the path, or unset the variable")
    return path if path.is_file() else None
