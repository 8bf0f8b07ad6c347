"""Loads a site file: its layers over its profiles, keys of the release before (read for one release, with a warning that names
the new key), its site, and the messages for its faults, which name the fix.
"""

from __future__ import annotations

import logging
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from copy import deepcopy
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from forum_reader.errors import SiteError

if TYPE_CHECKING:
    from .site import Site

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


NAME_RULE = "a site's name has at most 100 letters, digits, '.', '_', '-' and begins with a letter or digit"
_SELECTOR = 'must be a selector, as in {key} = "a.title", a list of them, or a table {{ select = "a.title", … }}'
_SELECTORS = ("FieldSpec", "Select")
_MOST_SHOWN = 300  # characters of a value


def shortened(text: str) -> str:
    """Shorten a value for an error: a long value ends with `…`."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def message_of(found: ErrorDetails, loc: tuple[str | int, ...]) -> str:
    """Return the message for one of pydantic's errors at `loc`."""
    if loc[-1:] == ("default",):  # each kind that it may have is an error
        return "must be text, a number, true or false"
    if found["type"].startswith("model_"):
        key = next((str(part) for part in reversed(loc) if isinstance(part, str)), "")
        of = str((found.get("ctx") or {}).get("class_name", ""))
        return _SELECTOR.format(key=key) if of in _SELECTORS else f"must be a table, as [{'.'.join(map(str, loc))}]"
    return found["msg"].removeprefix("Value error, ").replace("Input should be ", "must be ")


_SECRET = re.compile(r"(?i)^(authorization|proxy-authorization|cookie|set-cookie)$|token|secret|passw|api[-_]?key|session")
_MOST_LINES = 40  # a list of 1,000 wrong values is 1,000 faults, each of which shows the list
_FROM_ENVIRONMENT = re.compile(r"\$\{\w+\}")


def lines(read: Layers, error: ValidationError) -> list[str]:
    """Return one line for each of pydantic's errors, up to a limit."""
    found = error.errors()
    messages = list(dict.fromkeys(_line(read, one) for one in found[:_MOST_LINES]))
    more = len(found) - _MOST_LINES
    return [*messages, f"{read.files[0]}: {more:,} more faults"] if more > 0 else messages


def secrets(read: Layers) -> list[str]:
    """Return one line for each secret in a file: files are copied, committed and shown."""
    found = []
    for table in ("headers", "cookies"):
        values = read.written.get(table)
        for name, value in values.items() if isinstance(values, dict) else ():
            secret = table == "cookies" or _SECRET.search(name)
            if secret and isinstance(value, str) and value and not _FROM_ENVIRONMENT.search(value):
                file = origin(read, (table, name))
                variable = re.sub(r"\W+", "_", f"{read.files[0].stem}_{name}").upper()
                found.append(
                    f"{file}: {table}.{name} = '…': a secret must not stand in the file: write {name} = \"${{{variable}}}\" and "
                    f"set {variable} in the environment"
                )
    return found


def _line(read: Layers, found: ErrorDetails) -> str:
    loc = tuple(part for part in found["loc"] if part != "function-before")
    if loc[-2:-1] == ("default",):  # a union: the last part is the member that was tried
        loc = loc[:-1]
    key = ".".join(str(part) for part in loc) or "file"
    file = origin(read, loc)
    value = _written(read.written, loc)
    message = message_of(found, loc)
    if found["type"] == "extra_forbidden":
        message = f"there is no such key{_hint(loc)}"
    elif loc == ("name",) and found["type"] == "string_pattern_mismatch":
        return f"{file}: {NAME_RULE}: rename the file"
    elif found["type"] == "missing":
        return f"{read.files[0]}: {key} is missing{_fix(loc)}"
    shown = "" if isinstance(value, dict) else f" = {shortened(repr(value))}"
    if loc[:1] in (("headers",), ("cookies",)):
        shown = " = '…'"
    return f"{file}: {key}{shown}: {message}"


def _fix(loc: tuple[str | int, ...]) -> str:
    if loc[:1] == ("pages",):
        return f': write it, or name the software, as profile = "…" (profiles: {", ".join(profile_names())})'
    return ": write it"


def _hint(loc: tuple[str | int, ...]) -> str:
    """Return a hint: the most similar key, else the known keys."""
    model = _model_at(loc[:-1])
    if model is None:
        return ""
    known = [field.alias or name for name, field in model.model_fields.items() if not field.exclude]
    close = get_close_matches(str(loc[-1]), known, n=1)
    return f": did you mean {close[0]}?" if close else f": known are {', '.join(known)}"


def _model_at(loc: tuple[str | int, ...]) -> type[BaseModel] | None:
    from .site import Site

    model: type[BaseModel] | None = Site
    for part in loc:
        field = model.model_fields.get(str(part)) if model else None
        model = _model_of(field.annotation) if field else None
    return model


def _model_of(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_of(part) for part in getattr(annotation, "__args__", ()))
    return next((model for model in found if model), None)


def _written(values: Any, loc: tuple[str | int, ...]) -> Any:
    for part in loc:
        try:
            values = values[part]
        except (KeyError, IndexError, TypeError):
            return values
    return values


Checks = Mapping[str, Callable[[str], None]]
"""Checks of options that only their user can read (`quiet`, `lane`), by name. Each raises ValueError."""


def site_of(read: Layers, checks: Checks | None = None) -> Site:
    """Return the site that a file and its profiles describe. Raises SiteError with all faults, one line each."""
    from .site import Site  # not above: marks of profiles are read without the models

    path = read.files[0]
    fields: dict[str, Any] = {"name": path.stem, **read.values}
    wrong = secrets(read)
    try:
        site = Site.model_validate(fields, context=checks)
    except ValidationError as exc:
        raise SiteError("\n".join(lines(read, exc) + wrong)) from exc
    if site.name != path.stem:
        wrong.append(f"{path}: name = {site.name!r}: must be {path.stem!r}, as the file is named")
    if wrong:
        raise SiteError("\n".join(wrong))
    return site
