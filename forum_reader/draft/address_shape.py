"""Form of the addresses of threads or boards: the id is found as the part in which they differ."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import dataclass
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from forum_reader.page.page_kind import is_same_thing

_PARTS = re.compile(r"([/?&=;])")
_YEAR = re.compile(r"(?:19|20)\d\d$")
_MONTH_OR_DAY = re.compile(r"\d{1,2}$")
_PART = r"([^/?&=;#]+)"
_ENDING = re.compile(r"(?:\.\w+|/)$")
_SESSION = re.compile(r";jsessionid=[^?#/]*", re.IGNORECASE)
_CODE = re.compile(r"[0-9a-zA-Z_~-]+$")


@dataclass(frozen=True, slots=True)
class AddressShape:
    """Form of the addresses of a group: `template` with `{id}` for the part that differs, `{url}` where more than ids differ;
    `pattern`, whose first group is the id in an address; `inner`, the part of it that begins with the id; the links' `ids`.
    """

    template: str
    pattern: str
    inner: str
    ids: tuple[str, ...]

    def is_of_another(self, url: str, own: str) -> bool:
        """Return True if an address has another thread's id than `own` has: a link to the next thread, not to the next page."""
        found, known = (re.search(self.pattern, unquote(address_of(one))) for one in (url, own))
        path, here = urlsplit(url).path, urlsplit(own).path
        if found is None or known is None or found[1] == known[1] or re.match(rf"{re.escape(_ENDING.sub('', here))}\b", path):
            return False
        return found[1] in self.ids or not is_same_thing(path, here)


def shape_of(urls: list[str], *, besides: frozenset[str] = frozenset(), whole: bool = False) -> AddressShape | None:
    """Find the form of these addresses; None where no part distinguishes them. Parts in `besides` count as differing, even where
    they are equal in these addresses. `whole`: the id is all that differs, with the title that many addresses have.
    """
    split = [_PARTS.split(unquote(address_of(url))) for url in urls]
    length = Counter(map(len, split)).most_common(1)[0][0]
    alike = [parts for parts in split if len(parts) == length]
    if len(alike) < 0.6 * len(split) or len(alike) < 2:
        return None
    varying = [n for n in range(length) if len({parts[n] for parts in alike}) > 1 or alike[0][n] in besides]
    varying = sorted({*varying, *_day_of(alike[0])} if varying else {})
    if whole and len(varying) > 1 and set(alike[0][varying[0] + 1 : varying[-1] : 2]) == {"/"}:
        return _of_path(urls, alike, varying)
    best: tuple[float, int, str] | None = None
    for n in varying:
        for score, pattern in _patterns([parts[n] for parts in alike], whole=whole):
            if best is None or score > best[0]:
                best = (score, n, pattern)
    if best is None:
        return None
    _, n, inner = best
    start = max(0, n - 2)  # links may be relative: the word before the id is enough, where no word before it ends so
    while start > 0 and (
        start in varying or not alike[0][start] or any(word.endswith(alike[0][start]) for word in alike[0][:start:2])
    ):
        start -= 2
    words = (r"[^/?&=;#]+" if m in varying else re.escape(alike[0][m]) for m in range(start, n))
    pattern = f"{''.join(words)}{inner}"
    if start == 0 and not alike[0][0]:
        pattern = f"^(?:(?:https?:)?//[^/]++)?(?:\\.{{0,2}}/)*+{pattern.removeprefix('/')}"
    ids = []
    for url in urls:
        match = re.search(pattern, unquote(address_of(url)))
        ids.append(match[1] if match else "")
    is_all = varying == [n] and inner == _PART and not any("," in one for one in ids)  # which a template would escape
    template = "".join([*alike[0][:n], "{id}", *alike[0][n + 1 :]]) if is_all else "{url}"
    return AddressShape(template, pattern, inner, tuple(ids))


def _day_of(parts: list[str]) -> list[int]:
    """Return the year's index in a path, with month and day behind it: `/2026/11/how-to-prune` differs in other years."""
    years = (n for n in range(2, len(parts) - 2, 2) if _YEAR.match(parts[n]) and parts[n - 1] == "/" == parts[n + 1])
    if (year := next(years, None)) is None:
        return []
    numbers = range(year + 2, min(year + 6, len(parts) - 1), 2)
    return [year, *itertools.takewhile(lambda n: _MONTH_OR_DAY.match(parts[n]), numbers)]


def _of_path(urls: list[str], alike: list[list[str]], varying: list[int]) -> AddressShape:
    """Return the form of paths with several differing parts: together they are the id."""
    first, last = varying[0], varying[-1]
    inner = "".join(r"[^/?&=;#]+" if m in varying else re.escape(alike[0][m]) for m in range(first, last + 1))
    before = "".join(map(re.escape, alike[0][max(0, first - 2) : first]))
    matches = [re.search(f"{before}({inner})", unquote(address_of(url))) for url in urls]
    template = "".join([*alike[0][:first], "{id:path}", *alike[0][last + 1 :]])
    return AddressShape(template, f"{before}({inner})", f"({inner})", tuple(match[1] if match else "" for match in matches))


def _patterns(parts: list[str], *, whole: bool) -> list[tuple[float, str]]:
    """Return patterns that take an id out of a part of the addresses, different for each address, with a score of likeness to
    ids.
    """
    found = []
    for score, pattern in (
        (3.0, r"(\d+)(?=[-._,/?&;#]|$)"), (2.5, r"[^/?&=;#]*[-._](\d+)(?=\.html?|\.php|[/?&;#]|$)"), (2.0, _PART),
    )[2 if whole else 0 :]:  # fmt: skip
        matches = [re.match(pattern, part) for part in parts]
        ids = [match[1] for match in matches if match]
        if len(ids) == len(parts) == len(set(ids)):
            if score < 3 and any(char.isdigit() for char in "".join(ids)) and all(_CODE.match(one) for one in ids):
                score += 0.2
            if score == 3.0 and all(part.isdigit() for part in parts):
                pattern = _PART
            found.append((score, pattern))
    return found


def target_of(base: str, href: str) -> str | None:
    """Return the address that a link leads to, without a session's id; None where it leads to no web page."""
    try:
        target = _SESSION.sub("", urldefrag(urljoin(base, href.strip())).url)
        return target if urlsplit(target).scheme in ("http", "https") else None
    except ValueError:
        return None


def address_of(url: str) -> str:
    """Return the part of an address behind the host."""
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def common_end(urls: list[str]) -> str:
    """Return what the addresses end with, from a mark on: `/l50`, `?view=newest`."""
    ends = [urls[0][n:] for n, char in enumerate(urls[0]) if char in "/?&" and n + 1 < len(urls[0])]
    return next((end for end in ends if all(url.endswith(end) for url in urls)), "")


def bases(urls: list[str]) -> set[str]:
    """Return the addresses without their common end."""
    end = common_end(urls)
    return {url.removesuffix(end).rstrip("/") for url in urls}
