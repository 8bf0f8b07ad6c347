"""From what a selector found to a value: text, int, date, url, html, bool, id. What cannot be read is None, never an error."""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape
from typing import Any
from urllib.parse import urljoin, urlsplit

import regex
from lxml import etree
from w3lib.url import url_query_cleaner

from .errors import UnreadablePage

_SPACE = re.compile(r"[\s\u200b\ufeff]+")
_INT = re.compile(r"([-+]?\d[\d.,'’\s\u00a0\u202f]*)\s*(k|m|b|tys|mio|тыс|млн|万|萬|千|億|亿)?", re.IGNORECASE)
_FACTORS = {
    "k": 10**3, "m": 10**6, "b": 10**9, "tys": 10**3, "mio": 10**6, "тыс": 10**3, "млн": 10**6,
    "千": 10**3, "万": 10**4, "萬": 10**4, "億": 10**8, "亿": 10**8,
}  # fmt: skip
_STRING = etree.XPath("string()", smart_strings=False)
_LONGEST_URL = 2083  # characters, as for Scrapy
_LONGEST_ID = 200
_LARGEST = 2**63 - 1  # that a database holds
_SHOWN = 60  # characters of a page that an error shows
_QUICK = 16  # characters on which even a bad regular expression is quick
_MOST_S = 1.0
_FALSE = frozenset({"", "0", "false", "no", "off", "none", "null", "n"})


def string(found: Any, attribute: str | None = None) -> str | None:
    """A value of JSON, a string or an element as a string; of an element the named attribute, else its text. None: nothing."""
    if found is None or isinstance(found, dict):
        return None
    if isinstance(found, list):
        return string(found[0], attribute) if found else None
    if isinstance(found, etree._Element):
        value = found.get(attribute) if attribute else None
        return value if value is not None else str(_STRING(found))
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, float) and found.is_integer():
        return str(int(found))
    return str(found)


def text(value: str | None) -> str | None:
    """Without the space around it, and one space for each stretch of it."""
    if not value:
        return None
    return (" ".join(value.split()) if value.isascii() else _SPACE.sub(" ", value).strip()) or None


def identity(value: str | None) -> str | None:
    """Text that can be a key: None for what is longer than any id."""
    found = text(value)
    return found if found and len(found) <= _LONGEST_ID else None


def part(pattern: str | None, value: str | None) -> str | None:
    """What a regular expression takes of a text: its first group that matches, or the whole match. Raises UnreadablePage where
    it takes too long.
    """
    if pattern is None or value is None:
        return value
    try:
        match = _regex(pattern).search(value, timeout=None if len(value) <= _QUICK else _MOST_S)
    except TimeoutError:
        shown = value[:_SHOWN]
        raise UnreadablePage(f"the regular expression {pattern} does not come to an end on {shown!r}: simplify it") from None
    if not match:
        return None
    return next((group for group in match.groups() if group is not None), None) if match.groups() else match[0]


@lru_cache(maxsize=1024)
def _regex(pattern: str) -> Any:
    return regex.compile(pattern)


def number(value: str | None) -> int | None:
    """`1,234`, `1 234`, `1.234`, `1.2k`, `3.4M`, `1.2万`: a whole number of 64 bits."""
    if value and value.isdecimal() and len(value) < len(str(_LARGEST)):
        return int(value)
    match = _INT.search(value or "")
    if not match:
        return None
    digits = re.sub(r"['’\s]", "", match[1]).rstrip(".,")
    unit = (match[2] or "").lower()
    after = value[match.end() : match.end() + 1] if value else ""
    factor = 1 if unit.isascii() and after.isalpha() else _FACTORS.get(unit, 1)  # the m of "3 members" is no million
    try:
        if factor == 1 or re.fullmatch(r"[-+]?\d{1,3}(?:[.,]\d{3}){2,}", digits):
            whole = digits if factor != 1 or re.fullmatch(r"[-+]?\d{1,3}(?:[.,]\d{3})+", digits) else re.split(r"[.,]", digits)[0]
            found = int(re.sub(r"[.,]", "", whole)) * factor
        else:
            found = round(float(digits.replace(",", ".")) * factor)
    except (ValueError, OverflowError):
        return None
    return found if abs(found) <= _LARGEST else None


def url(value: str | None, base: str, dropped: tuple[str, ...] = ()) -> str | None:
    """Absolute, against the page's own, without the query's parameters that are to be dropped; None where it leads nowhere (`#`,
    `javascript:`, `mailto:`).
    """
    value = (value or "").strip()
    if not value or value.startswith("#"):
        return None
    try:
        absolute = urljoin(base, value)
        parts = urlsplit(absolute)
        _ = parts.port  # raises where it is none
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.netloc or len(absolute) > _LONGEST_URL:
        return None
    return (
        url_query_cleaner(absolute, dropped, remove=True, unique=False, keep_fragments=True)
        if dropped and parts.query
        else absolute
    )


def truth(found: Any) -> bool:
    """JSON: what it says; HTML: whether there is such an element, or what its text says."""
    if isinstance(found, etree._Element):
        return True
    if isinstance(found, list | dict):
        return bool(found)
    return (string(found) or "").strip().lower() not in _FALSE


def source(found: list[Any]) -> str | None:
    """The HTML of what was found: of an element what is in it, of JSON its text."""
    parts = [_inner(node) if isinstance(node, etree._Element) else string(node) for node in found]
    return "\n".join(part for part in parts if part) or None


def _inner(element: Any) -> str:
    children = (etree.tostring(child, encoding="unicode", method="html") for child in element)
    return "".join([escape(element.text or "", quote=False), *children]).strip()
