"""`trawl sites list` and `trawl sites show`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from cli.views.output import complain, console, plain_table, print_json, say

_SECRET = ("headers", "cookies")
_DEFAULT_IN_VARIABLE = re.compile(r"(\$\{\w+):-[^}]*(?:\}|\Z)")


def path_of(site: str) -> Path:
    """The file that a user means by a path or by a name. Raises SiteError."""
    from forum_reader.definition.load import site_path

    return Path(site) if site.endswith(".toml") or "/" in site else site_path(site)


def list_all(*, as_json: bool) -> int:
    """A line for each site; what is wrong with the others on standard error."""
    from forums.raw_pages import raw_dir
    from forums.raw_pages.folders import size_of
    from forums.sites import load_all, sites_dir

    sites, wrong = load_all()
    kept = {one.name: size_of(raw_dir(), one.name) for one in sites}
    if as_json:
        rows = [
            {"name": one.name, "profile": one.profile, "base_url": str(one.base_url), "forums": list(one.forums),
             "discover": one.discover is not None, "raw_bytes": kept[one.name]}
            for one in sites
        ]  # fmt: skip
        print_json({"sites": rows, "wrong": [str(error) for error in wrong.values()]})
    elif sites:
        keeping = any(kept.values()) or any(one.raw.keep_days for one in sites)
        table = plain_table("site", "profile", "where", "forums", *(["raw pages here"] if keeping else []))
        for one in sites:
            forums = str(len(one.forums)) if one.discover is None else f"{len(one.forums) or ''} discovered".strip()
            raw = f"{kept[one.name] / 1e6:,.1f} MB, {one.raw.keep_days} days" if kept[one.name] or one.raw.keep_days else ""
            table.add_row(one.name, one.profile or "", str(one.base_url), forums, *([raw] if keeping else []))
        console().print(table)
    elif not wrong:
        say(f"no site file in {sites_dir()}: trawl sites new URL writes one", stderr=True)
    for error in wrong.values() if not as_json else ():
        for line in str(error).splitlines():
            complain(line)
    return 2 if wrong else 0


def show_one(name: str, *, as_json: bool) -> int:
    """The merged values as TOML, the origin of each behind it."""
    from forum_reader.definition import layers
    from forum_reader.definition.load import site_of

    path = path_of(name)
    read = layers.read(path)
    site_of(read)  # only what is right is shown
    values: dict[tuple[str, ...], tuple[Any, str]] = {}
    for loc, value in layers.leaves(read.values):
        values[loc] = _shown(loc, value, read.written), _name(layers.origin(read, loc), path)
    for loc, value in layers.leaves(_defaults()):
        values.setdefault(loc, (value, "default"))
    ordered = sorted(values.items(), key=lambda item: (len(item[0]) > 1, item[0][:-1]))
    if as_json:
        print_json({"file": str(path), "values": [_json(loc, value, origin) for loc, (value, origin) in ordered]})
        return 0
    for table, entries in groupby(ordered, key=lambda item: item[0][:-1]):
        if table:
            say(f"\n[{'.'.join(table)}]")
        lines = [(f"{loc[-1]} = {_toml(value)}", origin) for loc, (value, origin) in entries]
        width = min(max(len(line) for line, _ in lines), 70)
        for line, origin in lines:
            say(f"{line:<{width}}  # {origin}")
    return 0


def _json(loc: tuple[str, ...], value: Any, origin: str) -> dict[str, Any]:
    return {"key": ".".join(loc), "value": value, "from": origin}


def _shown(loc: tuple[Any, ...], value: Any, written: Any) -> Any:
    """Of headers and cookies only what stands in the file, and of that no default of a variable."""
    if loc[0] not in _SECRET:
        return value
    for part in loc:
        written = written[part]
    return _DEFAULT_IN_VARIABLE.sub(r"\1:-…}", written) if "${" in str(written) else written


def _name(file: Path, site_file: Path) -> str:
    return file.name if file == site_file else f"profile {file.stem}"


def _defaults() -> dict[str, Any]:
    """What counts where no file says anything: the tables of numbers and switches."""
    from forum_reader.definition.site import Site

    tables = ("limits", "schedule", "politeness", "raw", "breaker")
    return {name: Site.model_fields[name].default.model_dump(mode="json", exclude_none=True) for name in tables} | {
        "time_zone": Site.model_fields["time_zone"].default
    }


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }" if value else "{}"
    return json.dumps(value, ensure_ascii=False)
