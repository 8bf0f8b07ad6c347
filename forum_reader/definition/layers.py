"""Layers of a site file over its profiles: the merged values, and the file of each. Keys of the release before are read for one
release, with a warning that names the new key.
"""

from __future__ import annotations

import logging
import os
import re
import tomllib
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from forum_reader.errors import SiteError

LIMITS = {
    **{("politeness", f"max_{name}"): name for name in ("rate", "burst", "concurrency", "per_hour", "per_day")},
    ("politeness", "quiet_hours"): "quiet",
    ("politeness", "delay_s"): "rate",
    ("schedule", "requests_per_hour"): "per_hour",
}
"""Key of [politeness] by the old key. The last two were the pace of one crawler, and a plan."""
OF_PAGES = {"wall": "block_page", "more": "has_more", "without": "remove"}
_warned: set[tuple[Path, str]] = set()
log = logging.getLogger(__name__)


def rename(table: dict[str, Any], file: Path) -> None:
    """Give each old key of a file its new name, with one warning in each process. Of two values of a limit the lower counts."""
    for (name, old), new in LIMITS.items():
        if not isinstance(of := table.get(name), dict) or old not in of or (value := _as_limit(old, of[old])) is None:
            continue
        if not isinstance(limits := table.setdefault("politeness", {}), dict):
            continue
        if old == "requests_per_hour":
            of.setdefault("scan_budget_per_hour", of[old])
        del of[old]
        both = [one for one in (limits.get(new), value) if one and isinstance(one, float | int)]
        limits[new] = min(both, default=value)
        plan = "schedule.scan_budget_per_hour and " if old == "requests_per_hour" else ""
        _warn(file, f"{name}.{old}", f"{plan}politeness.{new} = {value}, of all crawlers together")
    if isinstance(pages := table.get("pages"), dict):
        for name, page in pages.items():
            _rename_in(page, f"pages.{name}", file)


def _rename_in(table: Any, place: str, file: Path) -> None:
    """Rename the keys of a page and of the fields in it; the names of fields stay, and a request's headers and body."""
    if not isinstance(table, dict) or re.fullmatch(r"pages\.[^.]*\.(headers|body)", place):
        return
    if not place.endswith(".fields"):
        for old, new in OF_PAGES.items():
            if old in table and new not in table:
                table[new] = table.pop(old)
                _warn(file, f"{place}.{old}", new)
    for key, value in table.items():
        _rename_in(value, f"{place}.{key}", file)


def _as_limit(old: str, value: Any) -> Any:
    """Return the value of an old key under its new name; None for a wrong one."""
    if old not in ("delay_s", "requests_per_hour") or value is False:
        return value
    if not isinstance(value, float | int) or not value >= 0:
        return None
    if old == "delay_s":
        return min(max(1 / value, 1e-5), 1e4) if value else 0
    return min(max(int(min(value, 1e9)), 1), 10**9)


def _warn(file: Path, old: str, new: str) -> None:
    if (file, old) not in _warned:
        _warned.add((file, old))
        log.warning("%s: %s is read as %s for one release: rename it", file, old, new)


PROFILES = Path(__file__).parents[1] / "profiles"
_VARIABLE = re.compile(r"\$\{(\w+)(?::-((?:[^}$]|\$(?!\{))*+))?\}")
OWN, DEMO = ("TRAWL_", "FLOWER_", "CELERY_"), "TRAWL_DEMO_URL"
"""Variables that a site file may not use: its author need not have the fleet's passwords. The demo has one exception."""
_TOP_ONLY = frozenset({"recognise"})  # describes the profile itself; a profile built on it is another software

Loc = tuple[str, ...]
Origins = dict[tuple[str | int, ...], Path]


class Layers(msgspec.Struct, frozen=True):
    """`values` of a site and `origins`, the file of each. `written`: the values before variables were filled in."""

    files: tuple[Path, ...]  # the site file first, then its profile, the profile's profile …
    values: dict[str, Any]
    written: dict[str, Any]
    origins: Origins
    variables: dict[str, str | None]


def profile_names() -> list[str]:
    """Return the names of the profiles."""
    return _names_in(PROFILES)


@cache
def _names_in(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.toml"))


def profile_table(name: str) -> Mapping[str, Any]:
    """Return the table of a profile's own file, which all callers share."""
    return _table_in(PROFILES / f"{name}.toml")


@cache
def _table_in(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text("utf-8"))


def read(path: Path, table: dict[str, Any]) -> Layers:
    """Merge the content of a site file, which need not exist yet, over its profiles. Raises SiteError: a profile does not exist,
    a variable is not set.
    """
    chain = [path]
    tables = [table]
    while (name := tables[-1].get("profile")) is not None:
        profile = PROFILES / f"{name}.toml"
        if name not in profile_names():
            raise SiteError(f"{chain[-1]}: profile = {name!r}: there is none; profiles are {', '.join(profile_names())}")
        if profile in chain:
            raise SiteError(f"{chain[-1]}: profile = {name!r}: profiles go round in a circle")
        chain.append(profile)
        tables.append(deepcopy(_table_in(profile)))  # keys are renamed in it
    merged: dict[str, Any] = {}
    origins: Origins = {}
    for file, table in reversed(list(zip(chain, tables, strict=True))):
        rename(table, file)
        own = table if file == path else {key: value for key, value in table.items() if file == chain[1] or key not in _TOP_ONLY}
        merged = _merge(merged, own, (), file, origins)
    variables: dict[str, str | None] = {}
    return Layers(tuple(chain), _expand(merged, (), origins, variables), merged, origins, variables)


def origin(layers: Layers, loc: tuple[str | int, ...]) -> Path:
    """Return the file that sets the value at `loc`, or the nearest value above it."""
    for length in range(len(loc), 0, -1):
        if loc[:length] in layers.origins:
            return layers.origins[loc[:length]]
    return layers.files[0]


def _merge(base: Mapping[str, Any], over: Mapping[str, Any], loc: Loc, file: Path, origins: Origins) -> dict[str, Any]:
    """Merge tables key by key; other values replace. `false` removes a profile's value; a table over a selector refines it."""
    merged = dict(base)
    for key, value in over.items():
        place = (*loc, key)
        known = merged.get(key)
        if value is False and known is not None and not isinstance(known, bool):
            del merged[key]
        elif isinstance(value, Mapping):
            if known is not None and not isinstance(known, Mapping):
                known = {"select": known}
                origins[*place, "select"] = origins[place]
            merged[key] = _merge(known or {}, value, place, file, origins)
        else:
            merged[key] = value
        origins[place] = file
    return merged


def _expand(value: Any, loc: Loc, origins: Origins, variables: dict[str, str | None]) -> Any:
    """Fill in `${NAME}` and `${NAME:-default}` from the environment, so that addresses and secrets need not be in the file."""
    if isinstance(value, Mapping):
        return {key: _expand(inner, (*loc, key), origins, variables) for key, inner in value.items()}
    if isinstance(value, list):
        return [_expand(inner, loc, origins, variables) for inner in value]
    if not isinstance(value, str):
        return value

    def from_environment(match: re.Match[str]) -> str:
        name: str = match[1]
        default: str | None = match[2]
        if name.startswith(OWN) and name != DEMO:
            raise SiteError(f"{place()}: {name} is a setting of Trawl, maybe a password, and no site gets it: name another")
        variables[name] = os.environ.get(name)
        found = os.environ.get(name, default)
        if found is None:
            raise SiteError(f"{place()}: {name} is not set: set it in the environment, or write ${{{name}:-default}}")
        return found

    def place() -> str:
        file = next((origins[loc[:n]] for n in range(len(loc), 0, -1) if loc[:n] in origins), None)
        return f"{file}: {'.'.join(str(part) for part in loc)} = {value!r}"

    return _VARIABLE.sub(from_environment, value)
