"""A page, opened: rows, and values of fields, with a count of those that are empty."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec
from lxml import etree
from scrapy.http import TextResponse
from w3lib.html import get_base_url

from . import converters
from .dates import DateReader
from .errors import PageGone, UnreadablePage
from .fields import FieldSpec, Kind, Select
from .html_text import text_of, text_of_elements
from .opening import content_type, html_of, json_of, read_at
from .pages import Page, RowsPage
from .selectors import Finder, Found, compiled

if TYPE_CHECKING:
    from scrapy.http import Response

    from .model import Site

_KINDS: dict[str, Kind] = {
    "id": "id", "forum_id": "id", "parent_id": "id",
    "url": "url",
    "reply_count": "int", "views": "int", "threads": "int", "position": "int",
    "created_at": "date", "edited_at": "date", "last_activity": "date",
    "sticky": "bool", "deleted": "bool",
}  # fmt: skip
_ATTRIBUTES = {"url": ("href", "src"), "date": ("datetime",)}
_MOST_ROWS = 10_000  # of a page; long threads that an API answers with as a whole have 5,000


class FieldCount(msgspec.Struct, frozen=True, kw_only=True):
    """How often a field was empty on a page: of `rows` rows, `empty` had none."""

    rows: int
    empty: int


class Document:
    """One page. Raises UnreadablePage where it is not what `page` says, PageGone where it says that there is none."""

    def __init__(self, site: Site, page: Page, response: Response) -> None:
        self.site = site
        self.page = page
        self.url = response.url
        self._dates = DateReader(read_at(response), language=site.language, time_zone=site.time_zone)
        self.moving: set[str] = set()
        self._row: Any = None
        self._in_row: dict[Finder, Found] = {}  # what selectors found in it: id, address and title are of one link
        self._filled: dict[str, list[int]] = {}
        self._lookups: dict[tuple[str, str], dict[str, Any]] = {}
        if not isinstance(response, TextResponse):
            raise UnreadablePage(f"no text: {content_type(response)}, {len(response.body)} bytes")
        self.root = json_of(response) if page.format == "json" else html_of(response)
        self.base = self.url if page.format == "json" else get_base_url(response.text, response.url, response.encoding)
        if page.gone and self.find(page.gone):
            raise PageGone(f"it says that this does not exist: it has {' or '.join(page.gone.select)}")
        if page.wall and self.find(page.wall):
            raise UnreadablePage(f"a wall: it has {' or '.join(page.wall.select)}")
        if page.container and not self.find(page.container):
            raise UnreadablePage(f"has no {' or '.join(page.container.select)}, as each such page has")

    def find(self, select: Select, node: Any = None) -> Found:
        """What the first selector that finds something finds in `node`, or in the whole page."""
        node = self.root if node is None else node
        known = self._in_row if node is self._row else {}
        for finder in select.finders:
            found = known.get(finder)
            if found is None:
                found = known[finder] = [one for one in finder(node) if not _is_blank(one)]
            if found:
                return found
        return []

    def rows(self, page: RowsPage) -> list[Any]:
        """The rows in their order. Raises UnreadablePage for JSON without them; HTML without rows is an empty page."""
        if page.format == "html":
            return not_too_many([row for row in self.find(page.rows) if isinstance(row, etree._Element)])
        for selector in page.rows.select:
            for found in compiled("json", selector)(self.root):
                if isinstance(found, dict):
                    return not_too_many(list(found.values()))
                if isinstance(found, list):
                    return not_too_many([row for row in found if row is not None])
        raise UnreadablePage(f"has no list of rows at {' or '.join(page.rows.select)}")

    def values(self, node: Any, fields: Any) -> dict[str, Any]:
        """Each field that the site file declares, by name; an `html` one twice: clean text, and the original as `<name>_html`."""
        values: dict[str, Any] = {}
        self.moving.clear()
        self._row, self._in_row = node, {}
        for name, field in fields.declared:
            value, markup = self._convert(name, field, node)
            values[name] = value
            if markup is not None:
                values[f"{name}_html"] = markup
            count = self._filled.setdefault(name, [0, 0])
            count[0] += 1
            count[1] += value is None or value == ""
        return values

    def value(self, field: FieldSpec | None, kind: Kind) -> Any:
        """A value of the whole page; None where the site file names none."""
        return self._convert("", field, self.root, kind)[0] if field else None

    def peek(self, field: FieldSpec, node: Any) -> str | None:
        """The id of a row, without counting it."""
        value = self._convert("id", field, node)[0]
        return None if value is None else str(value)

    def counts(self) -> dict[str, FieldCount]:
        """How often each field was empty."""
        return {name: FieldCount(rows=rows, empty=empty) for name, (rows, empty) in self._filled.items()}

    def _convert(self, name: str, field: FieldSpec, node: Any, kind: Kind | None = None) -> tuple[Any, str | None]:
        kind = field.as_ or kind or _KINDS.get(name) or self._kind_of_text(name)
        if kind == "html":
            return self._html(name, field, self._found(field, node))
        if kind == "bool" and field.regex is None:
            found = self._found(field, node)
            return (converters.truth(found[0]) if found else bool(field.default)), None
        text = self._text(field, node, kind)
        value = (text or "").strip() or None if name == "body" else self._read(name, kind, field, text)
        return (field.default if value is None else value), None

    def _html(self, name: str, field: FieldSpec, found: Found) -> tuple[Any, str | None]:
        """Clean text, and of a body the original."""
        elements = [one for one in found if isinstance(one, etree._Element)]
        if field.regex is None and len(elements) == len(found):
            text = text_of_elements(elements)
            return text or field.default, converters.source(found) if name == "body" else None
        markup = converters.part(field.regex, converters.source(found))
        return text_of(markup) or field.default, markup if name == "body" else None

    def _kind_of_text(self, name: str) -> Kind:
        return "html" if name == "body" and self.page.format == "html" else "text"

    def _text(self, field: FieldSpec, node: Any, kind: Kind) -> str | None:
        """The field as a string, with what its regular expression takes of it."""
        found = self._found(field, node)
        if not found:
            return None
        one = found[0]
        if not isinstance(one, etree._Element):
            return converters.part(field.regex, converters.string(one))
        attribute = next((name for name in _ATTRIBUTES.get(kind, ()) if one.get(name) is not None), None)
        text = converters.part(field.regex, converters.string(one, attribute))
        if text is None and kind == "id" and field.regex:
            text = converters.part(field.regex, one.get("href"))  # a link was selected: its id is in its address
        return text

    def _read(self, name: str, kind: Kind, field: FieldSpec, text: str | None) -> Any:
        if kind == "int":
            number = converters.number(text)
            return None if number is None else number + field.add
        if kind == "date":
            moment, fixed = self._dates.read(text, field.formats)
            if not fixed:
                self.moving.add(name)
            return moment
        if kind == "url":
            return converters.url(text, self.base, self.site.drop_query)
        if kind == "bool":
            return text is not None and converters.truth(text)
        if kind == "id":
            # in HTML out of an address; it is quoted again when it becomes one
            return converters.identity(unquote(text) if text and self.page.format == "html" else text)
        return converters.text(text)

    def _found(self, field: FieldSpec, node: Any) -> Found:
        found = self.find(field, node)
        if field.without:
            found = [_cut(one, field.without) for one in found]
        if field.lookup is None or field.value is None or not found:
            return found
        row = self._table(field.lookup, field.key).get(converters.string(found[0]) or "")
        return [] if row is None else compiled("json", field.value)(row)

    def _table(self, lookup: str, key: str) -> dict[str, Any]:
        table = self._lookups.get((lookup, key))
        if table is None:
            table = self._lookups[lookup, key] = {}
            for rows in compiled("json", lookup)(self.root):
                for name, row in _items(rows):
                    known = compiled("json", key)(row)
                    table[(converters.string(known[0]) if known else name) or ""] = row
        return table


def not_too_many(rows: list[Any]) -> list[Any]:
    """`rows`. Raises UnreadablePage where they are more than a page of a forum has."""
    if len(rows) > _MOST_ROWS:
        raise UnreadablePage(f"has {len(rows):,} rows: no page of a forum has more than {_MOST_ROWS:,}")
    return rows


def alone(row: Any, rows: frozenset[Any]) -> Any:
    """A copy of an HTML row without the rows within it, so that their fields are not taken for its own. What is left out is not
    copied first: of rows within rows within rows each is copied once.
    """
    top = etree.Element(row.tag, row.attrib)
    top.text = row.text
    waiting = [(row, top)]
    while waiting:
        element, copy = waiting.pop()
        for child in element:
            if child in rows or not isinstance(child.tag, str):
                _add_text(copy, child.tail)
            else:
                inner = etree.SubElement(copy, child.tag, child.attrib)
                inner.text, inner.tail = child.text, child.tail
                waiting.append((child, inner))
    return top


def _cut(found: Any, selectors: tuple[str, ...]) -> Any:
    """A copy of an element without what the selectors find in it; the text after what is cut stays."""
    if not isinstance(found, etree._Element) or not any(compiled("html", selector)(found) for selector in selectors):
        return found
    copy = deepcopy(found)
    copy.tail = None
    for selector in selectors:
        for element in compiled("html", selector)(copy):
            if isinstance(element, etree._Element) and element is not copy and element.getparent() is not None:
                _drop(element)
    return copy


def _drop(element: Any) -> None:
    parent, before = element.getparent(), element.getprevious()
    if before is not None:
        before.tail = (before.tail or "") + (element.tail or "")
    else:
        parent.text = (parent.text or "") + (element.tail or "")
    parent.remove(element)


def _add_text(element: Any, text: str | None) -> None:
    """Behind all that is in it."""
    if text and len(element):
        element[-1].tail = (element[-1].tail or "") + text
    elif text:
        element.text = (element.text or "") + text


def _items(rows: Any) -> list[tuple[str, Any]]:
    if isinstance(rows, dict):
        return list(rows.items())
    return [("", row) for row in rows] if isinstance(rows, list) else []


def _is_blank(found: Any) -> bool:
    return found is None or (isinstance(found, str) and not found.strip())
