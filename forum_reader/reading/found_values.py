"""Converts a selector's matches to the value of a field: text, a number, a date, an address."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from lxml import etree
from w3lib.html import get_base_url

from forum_reader.dates.language import known_language
from forum_reader.dates.read_date import DateReader
from forum_reader.definition import page_requests
from forum_reader.definition.fields import KINDS, FieldSpec, Kind
from forum_reader.definition.pages import Page
from forum_reader.definition.selectors import Found
from forum_reader.page.response import is_text

from . import converters, parse_body
from .html_text import PLACEHOLDER, outermost, text_of, text_of_elements
from .parse_body import read_at

if TYPE_CHECKING:
    from forum_reader.definition.site import Site
    from forum_reader.page.response import Response

_ATTRIBUTES = {"url": ("href", "src"), "date": ("datetime",)}


class FoundValues:
    """Converter for one page with the tree `root`; `names`: values for the names in an id's prefix."""

    def __init__(self, site: Site, page: Page, response: Response, root: Any, names: dict[str, str]) -> None:
        self._site = site
        self._page = page
        self._response = response
        self._root = root
        self._names = names
        self._read_at = read_at(response)
        self._dates = DateReader(self._read_at, language=site.language, time_zone=site.time_zone)
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
            return (converters.truth(found[0]) if found else bool(field.default)), True
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
            found = [parse_body.markup_of(one) if isinstance(one, etree._Element) else one for one in found]
        elif field.regex is None and len(elements) == len(found):
            text = text_of_elements(elements)
            return text or field.default, self._source(found) if name == "body" else None
        markup = converters.part(field.regex, self._source(found))
        if markup and len(elements) == len(found) == 1 and elements[0].tag == "pre" and self._page.format == "html":
            markup = f"<pre>{markup}</pre>"  # the lines of a part of preformatted text are lines, too
        return text_of(markup) or field.default, markup if name == "body" else None

    def text(self, field: FieldSpec, one: Any, kind: Kind) -> str | None:
        """Return a match as a string: the part that the field's regular expression takes."""
        if not isinstance(one, etree._Element):
            return converters.part(field.regex, converters.string(one), field.join)
        if self._page.format == "xml" and kind == "text" and parse_body.holds_markup(one):
            return converters.part(field.regex, text_of(parse_body.markup_of(one)))
        attribute = next((name for name in _ATTRIBUTES.get(kind, ()) if one.get(name) is not None), None)
        text = converters.part(field.regex, converters.string(one, attribute), field.join)
        if text is None and kind == "id" and field.regex:
            text = converters.part(field.regex, one.get("href"), field.join)  # a link was selected: its id is in its address
        return text

    def converted(self, kind: Kind, field: FieldSpec, text: str | None) -> Any:
        """Convert a string to a value of the kind. Not for dates."""
        if kind == "int":
            number = converters.number(text)
            return None if number is None else number + field.add
        if kind == "url":
            return converters.url(text, self._base, self._site.drop_query)
        if kind == "bool":
            return text is not None and converters.truth(text)
        if kind == "id":
            # in HTML out of an address; it is quoted again when it becomes one
            own = converters.identity(unquote(text) if text and self._page.format != "json" else text)
            return own if own is None or field.prefix is None else page_requests.fill_text(field.prefix, self._names) + own
        return converters.text(text)

    def _moment(self, text: str | None, field: FieldSpec) -> tuple[datetime | None, bool]:
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
        markup = converters.source(found)
        return markup.replace(PLACEHOLDER, "") if markup and self.has_placeholders else markup
