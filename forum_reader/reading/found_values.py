"""Converts a selector's matches to the value of a field: text, int, url, html, bool, id (dates: `forum_reader/dates/`). None: not
convertible.
"""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urljoin, urlsplit

from lxml import etree
from w3lib.html import get_base_url
from w3lib.url import url_query_cleaner

from forum_reader.dates.post_calendar import known_language
from forum_reader.dates.read_date import DateReader, has_numeric_dates
from forum_reader.definition import page_requests
from forum_reader.definition.fields import KINDS, FieldSpec, Kind
from forum_reader.definition.pages import Page
from forum_reader.definition.selectors import Found, compile_pattern
from forum_reader.reading.parse_body import is_text

from . import parse_body, xml_body
from .html_text import PLACEHOLDER, WORDS, outermost, text_of, text_of_elements
from .parse_body import read_at

if TYPE_CHECKING:
    from forum_reader.definition.site import Site
    from forum_reader.page.response import Response


_SPACE = re.compile(r"[\s\u200b\ufeff]+")
_GAP = "[.,'’\\s\u00a0\u202f\u2009]"
_FACTORS = {word: int(factor) for factor, words in WORDS["factors"].items() for word in words.split()}
_UNITS = "|".join(sorted(_FACTORS.keys() - {"w", "к"}, key=lambda word: (-len(word), word)))
_INT = re.compile(
    rf"([-+\u2212]?(?:\d{{1,3}}(?:{_GAP}\d{{3}})+(?!\d)(?:[.,]\d+)?|\d{{1,2}}(?:,\d{{2}})+,\d{{3}}(?!\d)|\d+(?:[.,]\d+)?))"
    rf"(?:\s*({_UNITS})|([wк]))?",
    re.IGNORECASE,
)
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


def string_of(found: Any, attribute: str | None = None) -> str | None:
    """Return a value of JSON, a string or an element as a string; of an element the named attribute, else its text. None:
    nothing.
    """
    if found is None or isinstance(found, dict):
        return None
    if isinstance(found, list):
        return string_of(found[0], attribute) if found else None
    if isinstance(found, etree._Element):
        value = found.get(attribute) if attribute else None
        return value if value is not None else str(_STRING(found))
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, float) and found.is_integer():
        return str(int(found))
    return str(found)


def stripped(value: str | None) -> str | None:
    """Return the text without surrounding space, each stretch of space reduced to one."""
    if not value:
        return None
    return (" ".join(value.split()) if value.isascii() else _SPACE.sub(" ", value).strip()) or None


def identity(value: str | None) -> str | None:
    """Return a text that can be a key; None for one longer than any id."""
    found = stripped(value)
    return found if found and len(found) <= _LONGEST_ID else None


def matched_part(pattern: str | None, value: str | None, join: str | None = None) -> str | None:
    """Return the part of a text that a regular expression matches: the first group that matches, or the whole match; with `join`
    all groups, joined by it. Raises UnreadablePage where it takes too long.
    """
    if pattern is None or value is None:
        return value
    compiled = compile_pattern(pattern)
    match = compiled.search(value) if len(value) <= _QUICK else parse_body.current().search(compiled, pattern, value)
    if not match:
        return None
    if join is not None:
        return None if None in match.groups() else join.join(match.groups())
    return next((group for group in match.groups() if group is not None), None) if match.groups() else match[0]


def whole_number(value: str | None) -> int | None:
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
    if len(parts) == 1 or (all(len(matched_part) == 3 for matched_part in parts[1:]) and (whole or len(parts) > 2)):
        return Decimal("".join(parts))
    if len(parts) > 2 and len(parts[-1]) == 3 and "." not in digits:  # 1,23,456
        return Decimal("".join(parts))
    return Decimal("".join(parts[:-1]) + "." + parts[-1])


def absolute_url(value: str | None, base: str, dropped: tuple[str, ...] = ()) -> str | None:
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
    return (string_of(found) or "").strip().lower() not in _FALSE


def source_of(found: list[Any]) -> str | None:
    """Return the matches as HTML: an element's content, a JSON value's text."""
    parts = [_inner(node) if isinstance(node, etree._Element) else string_of(node) for node in found]
    return "\n".join(matched_part for matched_part in parts if matched_part) or None


def _inner(element: Any) -> str:
    children = (etree.tostring(child, encoding="unicode", method="html") for child in element)
    return "".join([escape(element.text or "", quote=False), *children]).strip()


_ATTRIBUTES = {"url": ("href", "src"), "date": ("datetime",)}


class FoundValues:
    """Converter for one page with the tree `root`; `names`: values for the names in an id's prefix. `with_html`: the HTML of a
    body is returned next to its text.
    """

    def __init__(
        self, site: Site, page: Page, response: Response, root: Any, names: dict[str, str], *, with_html: bool = True
    ) -> None:
        self._site = site
        self._page = page
        self._response = response
        self._root = root
        self._names = names
        self._with_html = with_html
        self._read_at = read_at(response)
        self._dates = DateReader(self._read_at, language=site.language, time_zone=site.time_zone)
        self.has_numeric_dates = False
        self.has_placeholders = False
        """True where rows were taken out of the rows around them."""

    def kind_of(self, name: str, field: FieldSpec) -> Kind:
        """Return the kind of a field's value."""
        return field.as_ or KINDS.get(name) or ("html" if name == "body" and self._page.format != "json" else "text")

    def read(self, name: str, kind: Kind, field: FieldSpec, found: Found) -> tuple[Any, bool]:
        """Return the value, and True if it is the same at any time of reading."""
        if kind == "html":
            return self.html(name, field, found)[0], True
        if kind == "bool" and field.regex is None:
            return (truth(found[0]) if found else bool(field.default)), True
        if not found:
            return (False if kind == "bool" else field.default), True
        text = self.text(field, found[0], kind)
        if name == "body":
            return (text or "").strip() or field.default, True
        if kind == "date":
            moment, is_fixed = self._moment(text, field)
            return (field.default if moment is None else moment), is_fixed
        value = self.converted(kind, field, text)
        return (field.default if value is None else value), True

    def html(self, name: str, field: FieldSpec, found: Found) -> tuple[Any, str | None]:
        """Return clean text, and of a body the original HTML."""
        if not found:
            return field.default, None
        found = outermost(found)
        elements = [one for one in found if isinstance(one, etree._Element)]
        if self._page.format == "xml":
            found = [xml_body.markup_of(one) if isinstance(one, etree._Element) else one for one in found]
        elif field.regex is None and len(elements) == len(found):
            text = text_of_elements(elements)
            return text or field.default, self._source(found) if name == "body" and self._with_html else None
        markup = matched_part(field.regex, self._source(found))
        if markup and len(elements) == len(found) == 1 and elements[0].tag == "pre" and self._page.format == "html":
            markup = f"<pre>{markup}</pre>"  # the lines of a part of preformatted text are lines, too
        return text_of(markup) or field.default, markup if name == "body" else None

    def text(self, field: FieldSpec, one: Any, kind: Kind) -> str | None:
        """Return a match as a string: the part that the field's regular expression takes."""
        if not isinstance(one, etree._Element):
            return matched_part(field.regex, string_of(one), field.join)
        if self._page.format == "xml" and kind == "text" and xml_body.holds_markup(one):
            return matched_part(field.regex, text_of(xml_body.markup_of(one)))
        if kind == "text" and next(one.iter("br"), None) is not None:
            return matched_part(field.regex, text_of_elements([one]), field.join)
        attribute = next((name for name in _ATTRIBUTES.get(kind, ()) if one.get(name) is not None), None)
        text = matched_part(field.regex, string_of(one, attribute), field.join)
        if text is None and kind == "id" and field.regex:
            text = matched_part(field.regex, one.get("href"), field.join)  # a link was selected: its id is in its address
        return text

    def converted(self, kind: Kind, field: FieldSpec, text: str | None) -> Any:
        """Convert a string to a value of the kind. Not for dates."""
        if kind == "int":
            number = whole_number(text)
            return None if number is None else number + field.add
        if kind == "url":
            return absolute_url(text, self._base, self._site.drop_query)
        if kind == "bool":
            return text is not None and truth(text)
        if kind == "id":
            # in HTML out of an address; it is quoted again when it becomes one
            own = identity(unquote(text) if text and self._page.format != "json" else text)
            return own if own is None or field.prefix is None else page_requests.fill_text(field.prefix, self._names) + own
        return stripped(text)

    def _moment(self, text: str | None, field: FieldSpec) -> tuple[datetime | None, bool]:
        self.has_numeric_dates = self.has_numeric_dates or (text is not None and has_numeric_dates(text))
        moment, is_fixed = self._dates.read(text, field.formats)
        if moment is None and text and self._other_dates:
            moment, is_fixed = self._other_dates.read(text)
        return moment, is_fixed

    @cached_property
    def _other_dates(self) -> DateReader | None:
        """Return a reader for dates in the page's language, where it differs from the site's."""
        given = str(self._root.get("lang") or "") if isinstance(self._root, etree._Element) else ""
        language = known_language(given)
        if language is None or language == self._site.language:
            return None
        return DateReader(self._read_at, language=language, time_zone=self._site.time_zone)

    @cached_property
    def _base(self) -> str:
        """Return the address that relative addresses of the page refer to."""
        response, root = self._response, self._root
        if self._page.format != "html" or not is_text(response):
            return str(response.url)
        has_base = self._page.html_at is not None or next(root.iter("base"), None) is not None  # else its text is not searched
        return str(get_base_url(response.text if has_base else "", response.url, response.encoding))

    def _source(self, found: Found) -> str | None:
        markup = source_of(found)
        return markup.replace(PLACEHOLDER, "") if markup and self.has_placeholders else markup
