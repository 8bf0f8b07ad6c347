"""URL templates: a path, or a whole URL, with names in braces to be filled in."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from urllib.parse import quote

_PLACE = re.compile(r"\{(\w+)(:path)?\}")
_LAST_PART = re.compile(r"(?:^|[/?&;}])([^/?&;{}]*)$")  # of an address
_NUMBERED = frozenset({"page", "page0", "offset"})


def check(template: str, known: Collection[str]) -> str:
    """`template`, if it begins like a path or a URL and holds only names of `known`. Raises ValueError."""
    if not template.startswith(("/", "http://", "https://", "{url}")):
        raise ValueError("must start with / (a path behind base_url), or with http:// or https://")
    if unknown := sorted(names(template) - set(known)):
        places = ", ".join(f"{{{name}}}" for name in sorted(known))
        raise ValueError(f"{{{unknown[0]}}} is not known here: may hold {places}")
    if "{" in _PLACE.sub("", template) or "}" in _PLACE.sub("", template):
        raise ValueError("has a brace that belongs to no name: write {name}, or %7B and %7D for braces")
    return template


def names(template: str) -> set[str]:
    """The names that are to be filled in."""
    return {match[1] for match in _PLACE.finditer(template)}


def is_numbered(template: str) -> bool:
    """Whether the URL of page n can be made from n."""
    return not names(template).isdisjoint(_NUMBERED)


def fill(template: str, values: Mapping[str, object]) -> str:
    """The template with its values, each quoted; slashes too, but for `{name:path}`. A URL in `{url}` stays as it is."""

    def value(match: re.Match[str]) -> str:
        text = str(values[match[1]])
        return text if match[1] == "url" else quote(text, safe="/" if match[2] else "")

    return _PLACE.sub(value, template)


def number_in(url: str, template: str, per_page: int | None) -> int:
    """The number of the page at an address, by the part of the template that holds it (`page-{page}`); 1 where it has none."""
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
