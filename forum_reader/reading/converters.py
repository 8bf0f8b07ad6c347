"""Converts a selector's matches to values: text, int, url, html, bool, id (dates: `forum_reader/dates/`). None: not
convertible.
"""

from __future__ import annotations

import re
from decimal import Decimal
from html import escape
from typing import Any
from urllib.parse import urljoin, urlsplit

from lxml import etree
from w3lib.url import url_query_cleaner

from forum_reader.definition.selectors import compile_pattern

from . import reading_budget

_SPACE = re.compile(r"[\s\u200b\ufeff]+")
_GAP = "[.,'’\\s\u00a0\u202f\u2009]"
_INT = re.compile(
    rf"([-+\u2212]?(?:\d{{1,3}}(?:{_GAP}\d{{3}})+(?!\d)(?:[.,]\d+)?|\d{{1,2}}(?:,\d{{2}})+,\d{{3}}(?!\d)|\d+(?:[.,]\d+)?))"
    r"(?:\s*(tys|tis|tsd|tusen|tusind|duizend|mille|mila|mii|mil|mln|mld|mio|mrd|bin|ezer|ribu|rb|juta|jt|lakh|crore|"
    r"тыс|тис|хил|χιλ|млн|млрд|"
    r"nghìn|triệu|ألف|آلاف|الف|هزار|مليون|میلیون|พัน|หมื่น|แสน|ล้าน|百万|千万|[kmb百千천만억万萬億亿])|([wк]))?",
    re.IGNORECASE,
)
_FACTORS = {
    "k": 10**3, "m": 10**6, "b": 10**3, "w": 10**4,  # b: Turkish thousands; no forum has billions
    "tusen": 10**3, "tusind": 10**3, "duizend": 10**3, "mille": 10**3, "mila": 10**3, "mii": 10**3, "ezer": 10**3,
    "тис": 10**3, "хил": 10**3, "χιλ": 10**3,
    "tys": 10**3, "tis": 10**3, "tsd": 10**3, "mil": 10**3, "bin": 10**3, "rb": 10**3, "ribu": 10**3, "к": 10**3, "тыс": 10**3,
    "jt": 10**6, "juta": 10**6, "mln": 10**6, "mio": 10**6, "млн": 10**6, "mld": 10**9, "mrd": 10**9, "млрд": 10**9,
    "nghìn": 10**3, "triệu": 10**6, "ألف": 10**3, "آلاف": 10**3, "الف": 10**3, "هزار": 10**3, "مليون": 10**6, "میلیون": 10**6,
    "พัน": 10**3, "หมื่น": 10**4, "แสน": 10**5, "ล้าน": 10**6, "lakh": 10**5, "crore": 10**7,
    "百": 10**2, "千": 10**3, "천": 10**3, "万": 10**4, "萬": 10**4, "만": 10**4,
    "百万": 10**6, "千万": 10**7, "億": 10**8, "亿": 10**8, "억": 10**8,
}  # fmt: skip
_LETTERED = re.compile(r"[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")  # the next letter of a word: the m of "3 members"
_MARKS = str.maketrans("\u066b\u066c\uff0e", ".,.")  # Arabic decimal and thousands separators, and the wide point
_STRING = etree.XPath("string()", smart_strings=False)
_LONGEST_URL = 2083  # characters, as for Scrapy
_LONGEST_ID = 200
_LARGEST = 2**63 - 1  # that a database holds
_LONGEST_PLAIN = len(str(_LARGEST))
_AROUND_NUMBERS = " \t\r\n#"
_QUICK = 8  # characters on which even `(?:a|a|a|a)+$` takes some milliseconds; a time costs 4 µs
_FALSE = frozenset({"", "0", "false", "no", "off", "none", "null", "n"})


def string(found: Any, attribute: str | None = None) -> str | None:
    """Return a value of JSON, a string or an element as a string; of an element the named attribute, else its text. None:
    nothing.
    """
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
    """Return the text without surrounding space, each stretch of space reduced to one."""
    if not value:
        return None
    return (" ".join(value.split()) if value.isascii() else _SPACE.sub(" ", value).strip()) or None


def identity(value: str | None) -> str | None:
    """Return a text that can be a key; None for one longer than any id."""
    found = text(value)
    return found if found and len(found) <= _LONGEST_ID else None


def part(pattern: str | None, value: str | None, join: str | None = None) -> str | None:
    """Return the part of a text that a regular expression matches: the first group that matches, or the whole match; with `join`
    all groups, joined by it. Raises UnreadablePage where it takes too long.
    """
    if pattern is None or value is None:
        return value
    compiled = compile_pattern(pattern)
    match = compiled.search(value) if len(value) <= _QUICK else reading_budget.current().search(compiled, pattern, value)
    if not match:
        return None
    if join is not None:
        return None if None in match.groups() else join.join(match.groups())
    return next((group for group in match.groups() if group is not None), None) if match.groups() else match[0]


def number(value: str | None) -> int | None:
    """Return the first number of a text as an integer of 64 bits: `1,234`, `1 234`, `1.234`, `1,23,456`, `1.2k`, `3.4M`, `1.2万`,
    `1.2w`, `1,2 tys.`. Digits separated by spaces are one number where they come in threes.
    """
    plain = value.strip(_AROUND_NUMBERS) if value else ""
    if plain.isdecimal() and len(plain) < _LONGEST_PLAIN:
        return int(plain)
    value = (value or "").translate(_MARKS)
    match = _INT.search(value)
    if not match:
        return None
    unit = (match[2] or match[3] or "").lower()
    factor = 1 if _LETTERED.match(value, match.end()) else _FACTORS.get(unit, 1)
    digits = re.sub(r"['’\s]", "", match[1]).replace("\u2212", "-")
    try:
        found = round(_decimal(digits, whole=factor == 1) * factor) if factor != 1 else int(_decimal(digits, whole=True))
    except (ValueError, OverflowError):
        return None
    return found if abs(found) <= _LARGEST else None


def _decimal(digits: str, *, whole: bool) -> Decimal:
    """Return the number in `digits`: a point or comma before three digits separates thousands, where `whole` also a single one;
    the last one before other digits is the decimal separator.
    """
    parts = re.split(r"[.,]", digits)
    if len(parts) == 1 or (all(len(part) == 3 for part in parts[1:]) and (whole or len(parts) > 2)):
        return Decimal("".join(parts))
    if len(parts) > 2 and len(parts[-1]) == 3 and "." not in digits:  # 1,23,456
        return Decimal("".join(parts))
    return Decimal("".join(parts[:-1]) + "." + parts[-1])


def url(value: str | None, base: str, dropped: tuple[str, ...] = ()) -> str | None:
    """Return an absolute URL, without the query parameters `dropped`; None where it leads nowhere (`#`, `javascript:`,
    `mailto:`).
    """
    value = (value or "").strip()
    if not value or value.startswith("#") or len(value) > 4 * _LONGEST_URL:
        return None
    try:
        absolute = urljoin(base, value)
        parts = urlsplit(absolute)
        _ = parts.port  # raises for a bad port
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
    """Return the truth value: of JSON the value's or its text's; of HTML True for an element, else its text's."""
    if isinstance(found, etree._Element):
        return True
    if isinstance(found, list | dict):
        return bool(found)
    return (string(found) or "").strip().lower() not in _FALSE


def source(found: list[Any]) -> str | None:
    """Return the matches as HTML: an element's content, a JSON value's text."""
    parts = [_inner(node) if isinstance(node, etree._Element) else string(node) for node in found]
    return "\n".join(part for part in parts if part) or None


def _inner(element: Any) -> str:
    children = (etree.tostring(child, encoding="unicode", method="html") for child in element)
    return "".join([escape(element.text or "", quote=False), *children]).strip()
