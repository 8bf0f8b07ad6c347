"""Thread or board of an address, found by matching the URL templates of the site file."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from forum_reader.definition.origins import place_of
from forums.sites import Site

_LONGEST = 2_000  # characters of a path: two places in it that may hold anything cost the square
_PLACE = re.compile(r"\{(\w+)(:path)?\}")
_NUMBERS = frozenset({"page", "page0", "offset"})


def thread_at(site: Site, url: str) -> str | None:
    """Return the id of the thread as the site's list has it; None if the templates do not show it, as with `{url}`."""
    if place_of(url) not in site.places:
        return None
    for page in (site.pages.thread, site.pages.comments):
        templates = [] if page is None else [page.url, getattr(page, "first_url", None)]
        for template in filter(None, templates):
            found = _pattern(str(template)).fullmatch(_target(url))
            if found and found.groupdict().get("thread"):
                return unquote(found["thread"])
    return None


def board_at(site: Site, url: str) -> str | None:
    """Return the id of the forum whose list is at this address."""
    page = site.pages.list
    for template in filter(None, [page.url, page.first_url]):
        found = _pattern(str(template)).fullmatch(_target(url))
        if found and found.groupdict().get("forum"):
            return unquote(found["forum"])
    return None


def _target(url: str) -> str:
    """Return path and query."""
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return target if len(target) <= _LONGEST else ""


def _pattern(template: str) -> re.Pattern[str]:
    """Compile a pattern for path and query of the addresses that the template makes."""
    if template.startswith(("http://", "https://")):
        template = re.sub(r"^https?://[^/]*", "", template) or "/"
    parts, last, named = [], 0, set[str]()
    for place in _PLACE.finditer(template):
        parts.append(re.escape(template[last : place.start()]))
        name, last = place[1], place.end()
        value = r"\d{1,12}" if name in _NUMBERS else "[^?#]+?" if place[2] else "[^/?&#]+?"
        parts.append(f"(?:{value})" if name in named else f"(?P<{name}>{value})")
        named.add(name)
    parts.append(re.escape(template[last:]))
    return re.compile("".join(parts))
