"""Templates: a path, a whole URL or a text in the body of a request, with names in braces to be filled in.

`{thread}` is a value, `{thread.2}` the second part of an id of several parts (`join` of its field).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import quote

_PLACE = re.compile(r"\{(\w+)(?:\.([1-9]))?(:path|:int)?\}")
_LAST_PART = re.compile(r"(?:^|[/?&;}])([^/?&;{}]*)$")  # of an address
_NUMBERED = frozenset({"page", "page0", "offset"})
_NUMBERS = _NUMBERED | {"per_page"}
_ADDRESSES = ("url", "more")


def check(template: str, known: Collection[str]) -> str:
    """Return `template`, if it begins like a path or a URL and holds only names of `known`. Raises ValueError."""
    if not template.startswith(("/", "http://", "https://", *(f"{{{name}}}" for name in _ADDRESSES if name in known))):
        raise ValueError("must start with / (a path behind base_url), or with http:// or https://")
    if unknown := sorted(names(template) - set(known)):
        places = ", ".join(f"{{{name}}}" for name in sorted(known))
        raise ValueError(f"{{{unknown[0]}}} is not known here: may hold {places}")
    if "{" in _PLACE.sub("", template) or "}" in _PLACE.sub("", template):
        raise ValueError("has a brace that belongs to no name: write {name}, or %7B and %7D for braces")
    if any(match[3] == ":int" for match in _PLACE.finditer(template)):
        raise ValueError("{…:int} is for numbers in a body of JSON: leave :int out")
    return template


def check_text(text: str, known: Collection[str]) -> None:
    """Check a text of a body, which may have other braces. Raises ValueError."""
    if unknown := sorted(names(text) - set(known)):
        places = ", ".join(f"{{{name}}}" for name in sorted(known))
        raise ValueError(
            f"{{{unknown[0]}}} is not known here: may hold {places}; write {{ {unknown[0]} }} for a brace of the text"
        )


def names(template: str) -> set[str]:
    """Return the names that are to be filled in."""
    return {match[1] for match in _PLACE.finditer(template)}


def is_numbered(names: Collection[str]) -> bool:
    """Return True if the page n can be made from n, by the names in its address and body."""
    return not _NUMBERED.isdisjoint(names)


def fill(template: str, values: Mapping[str, object], joins: Mapping[str, str] = {}) -> str:
    """Return the template filled with its values, each quoted; slashes too, except in `{name:path}`. An address in `{url}`, and
    in `{more}` at the beginning of the template, stays unquoted. `joins`: separators of the parts of an id, by its name. Raises
    ValueError where an id has fewer parts.
    """

    def value(match: re.Match[str]) -> str:
        text = _value(match, values, joins)
        is_address = match[1] == "url" or (match[1] == "more" and match.start() == 0)
        return text if is_address else quote(text, safe="/" if match[3] == ":path" else "")

    return _PLACE.sub(value, template)


def fill_text(text: str, values: Mapping[str, object], joins: Mapping[str, str] = {}) -> str:
    """Return a text filled with its values, unquoted."""
    return _PLACE.sub(lambda match: _value(match, values, joins), text)


def fill_json(value: Any, values: Mapping[str, object], joins: Mapping[str, str] = {}) -> Any:
    """Return a JSON value filled with its values: a text that is only a page's number, or ends in `:int`, becomes a number, and
    a `{cursor}` without a value null.
    """
    if isinstance(value, Mapping):
        return {key: fill_json(inner, values, joins) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [fill_json(inner, values, joins) for inner in value]
    if not isinstance(value, str):
        return value
    filled, only = fill_text(value, values, joins), _PLACE.fullmatch(value)
    if only is not None and only[1] == "cursor" and not filled:
        return None
    if only is not None and (only[1] in _NUMBERS or only[3] == ":int"):
        return int(filled) if filled.isdecimal() else filled
    return filled


def _value(match: re.Match[str], values: Mapping[str, object], joins: Mapping[str, str]) -> str:
    text = str(values[match[1]])
    if match[2] is None:
        return text
    parts = text.split(joins[match[1]]) if match[1] in joins else [text]
    if len(parts) < int(match[2]):
        raise ValueError(f"{match[0]}: the id {text!r} has {len(parts)} part{'s' if len(parts) > 1 else ''}")
    return parts[int(match[2]) - 1]


def parts_of(template: str) -> set[str]:
    """Return the names of which only a part is filled in."""
    return {match[1] for match in _PLACE.finditer(template) if match[2]}


def number_in(url: str, template: str, per_page: int | None) -> int:
    """Return the number of the page at an address, by the part of the template that holds it (`page-{page}`); 1 where it has
    none.
    """
    for match in _PLACE.finditer(template):
        if match[1] not in _NUMBERED:
            continue
        before = _LAST_PART.search(template[: match.start()])
        found = re.search(rf"(?:^|[/?&;]){re.escape(before[1])}(\d{{1,9}})(?![\w.])", url) if before and before[1] else None
        if found is None:
            return 1
        number = int(found[1])
        if match[1] == "offset":
            return number // (per_page or 1) + 1
        return number + 1 if match[1] == "page0" else max(1, number)
    return 1
