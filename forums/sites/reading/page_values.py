"""A page, opened: rows, and values of fields, with a count of those that are empty."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec
from lxml import etree
from scrapy.http import TextResponse
from w3lib.html import get_base_url

from forums.sites.dates.language import known_language
from forums.sites.dates.reader import DateReader
from forums.sites.definition import url_templates
from forums.sites.definition.errors import PageGone, UnreadablePage
from forums.sites.definition.fields import FieldSpec, Kind, Select
from forums.sites.definition.pages import Page, RowsPage
from forums.sites.definition.selectors import Finder, Found, HtmlFinder, compiled
from forums.sites.kinds import KINDS

from . import converters, reading_budget, xml_page
from .element_index import ElementIndex
from .element_trees import PLACEHOLDER, cut, inner_rows, outermost
from .html_text import text_of, text_of_elements
from .parse_body import content_type, html_of, json_of, json_text, read_at, tree_of

if TYPE_CHECKING:
    from scrapy.http import Response

    from forums.sites.definition.site import Site

_ROOTS: dict[str, Callable[[Any], Any]] = {"json": json_of, "html": html_of, "xml": xml_page.xml_of}
_ATTRIBUTES = {"url": ("href", "src"), "date": ("datetime",)}
_MOST_ROWS = 10_000  # of a page; long threads that an API answers with as a whole have 5,000


class FieldCount(msgspec.Struct, frozen=True, kw_only=True):
    """How often a field was empty on a page: of `rows` rows, `empty` had none."""

    rows: int
    empty: int


class Document:
    """One page; `index` is that of its tree, where it was parsed already, `thread` the thread that it is of. Raises
    UnreadablePage where it is not what `page` says, PageGone where it says that there is none.
    """

    def __init__(
        self, site: Site, page: Page, response: Response, index: ElementIndex | None = None, *, thread: str = ""
    ) -> None:
        self.site = site
        self._names = {"thread": thread}
        self.page = page
        self.url = response.url
        self._budget = reading_budget.begin(len(response.body))
        self._inner: dict[Any, list[Any]] = {}  # the rows within each row of HTML
        self._read_at = read_at(response)
        self._dates = DateReader(self._read_at, language=site.language, time_zone=site.time_zone)
        self.moving: set[str] = set()
        self._row: Any = None
        self._in_row: dict[Finder, Found] = {}  # what selectors found in it: id, address and title are of one link
        self._filled: dict[str, list[int]] = {}
        self._lookups: dict[tuple[str, str], dict[str, Any]] = {}
        if not isinstance(response, TextResponse) and page.format != "xml":  # a sitemap may be compressed
            raise UnreadablePage(f"no text: {content_type(response)}, {len(response.body)} bytes")
        if index is not None:
            self._index = index
        self.root = index.root if index else _ROOTS[page.answer](response)
        if page.json_at is not None:
            self.root = _json_in(page.json_at, self.root)
        self._around = self.root  # what says how to go on
        if page.html_at is not None:
            self.root = _html_in(page.html_at, self.root)
        self._response = response
        if page.gone and self.find(page.gone):
            raise PageGone(f"it says that this does not exist: it has {' or '.join(page.gone.select)}")
        if page.wall and self.find(page.wall):
            raise UnreadablePage(f"a wall: it has {' or '.join(page.wall.select)}")
        if page.container and not self.find(page.container):
            raise UnreadablePage(f"has no {' or '.join(page.container.select)}, as each such page has")

    @cached_property
    def _other_dates(self) -> DateReader | None:
        """For dates that are not of the site's language: a profile names one, and the page another."""
        given = str(self.root.get("lang") or "") if isinstance(self.root, etree._Element) else ""
        language = known_language(given)
        if language is None or language == self.site.language:
            return None
        return DateReader(self._read_at, language=language, time_zone=self.site.time_zone)

    def find(self, select: Select, node: Any = None) -> Found:
        """What the first selector that finds something finds in `node`, or in the whole page."""
        node = self.root if node is None else node
        if node is not self._row:
            return next((found for finder in select.finders if (found := self._search(finder, node))), [])
        known = self._in_row
        for finder in select.finders:
            if finder not in known:
                known[finder] = self._search(finder, node)
            if found := known[finder]:
                return found
        return []

    def _search(self, finder: Finder, node: Any) -> Found:
        found = self._index.find(finder, node) if type(finder) is HtmlFinder else None
        if found is None:
            found = finder(node)
        elif not found or type(found[0]) is not str:  # elements
            return found
        return [one for one in found if one is not None and (not isinstance(one, str) or one.strip())]

    @cached_property
    def base(self) -> str:
        """What relative addresses of the page are relative to."""
        response = self._response
        if self.page.format != "html" or not isinstance(response, TextResponse):
            return self.url
        return str(get_base_url(response.text, response.url, response.encoding))

    @cached_property
    def _index(self) -> ElementIndex:
        return ElementIndex(self.root)

    def rows(self, page: RowsPage) -> list[Any]:
        """The rows in their order. Raises UnreadablePage for JSON without them; HTML without rows is an empty page. From now on
        each is read without the rows within it. Those that `skip` finds something in are left out.
        """
        rows = self._all_rows(page)
        return rows if page.skip is None else [row for row in rows if not self._has(page.skip, row)]

    def _has(self, select: Select, row: Any) -> bool:
        """Whether a row has it; in JSON what is false, zero or empty is not there."""
        found = self.find(select, row)
        return any(found) if select.syntax == "json" else bool(found)

    def _all_rows(self, page: RowsPage) -> list[Any]:
        if page.format != "json":
            rows = not_too_many([row for row in self.find(page.rows) if isinstance(row, etree._Element)])
            self._inner = inner_rows(rows)
            if page.format != "xml":
                self._index.search_together(() if self._inner else rows)
            return rows
        for selector in page.rows.select:
            for found in compiled("json", selector)(self.root):
                if isinstance(found, dict):
                    return not_too_many(list(found.values()))
                if isinstance(found, list):
                    return not_too_many([row for row in found if row is not None])
        raise UnreadablePage(f"has no list of rows at {' or '.join(page.rows.select)}")

    def values(self, node: Any, fields: Any) -> dict[str, Any]:
        """Each field that the site file declares, by name; an `html` one twice: clean text, and the original as `<name>_html`."""
        if self._inner:
            with self._index.left_out(node, self._inner):
                return self._values(node, fields)
        return self._values(node, fields)

    def _values(self, node: Any, fields: Any) -> dict[str, Any]:
        values: dict[str, Any] = {}
        self.moving.clear()
        self._row, self._in_row = node, {}
        size = 0
        for name, field in fields.declared:
            value, markup = self._convert(name, field, node)
            values[name] = value
            if type(value) is str:
                size += len(value)
            if markup is not None:
                values[f"{name}_html"] = markup
                size += len(markup)
            count = self._filled.setdefault(name, [0, 0])
            count[0] += 1
            count[1] += value is None or value == ""
        self._budget.row(size)
        return values

    def value(self, field: FieldSpec | None, kind: Kind) -> Any:
        """A value of the whole page; None where the site file names none."""
        return self._convert("", field, self._around, kind)[0] if field else None

    def addresses(self, field: FieldSpec | None) -> list[str]:
        """All that a field finds in the whole page, each once: addresses, or texts where the site file says so."""
        if field is None:
            return []
        kind = field.as_ or "url"
        found = [one for part in self._found(field, self.root) for one in (part if isinstance(part, list) else [part])]
        values = (self._read("", kind, field, self._text_of(field, one, kind)) for one in found)
        return list(dict.fromkeys(value for value in values if value))

    def peek(self, field: FieldSpec, node: Any) -> str | None:
        """The id of a row, without counting it."""
        self._budget.row(0)
        self._row, self._in_row = None, {}
        if self._inner:
            with self._index.left_out(node, self._inner):
                value = self._convert("id", field, node)[0]
        else:
            value = self._convert("id", field, node)[0]
        return None if value is None else str(value)

    def counts(self) -> dict[str, FieldCount]:
        """How often each field was empty."""
        return {name: FieldCount(rows=rows, empty=empty) for name, (rows, empty) in self._filled.items()}

    def _convert(self, name: str, field: FieldSpec, node: Any, kind: Kind | None = None) -> tuple[Any, str | None]:
        kind = field.as_ or kind or KINDS.get(name) or self._kind_of_text(name)
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
        found = outermost(found)
        elements = [one for one in found if isinstance(one, etree._Element)]
        if self.page.format == "xml":
            found = [xml_page.markup_of(one) if isinstance(one, etree._Element) else one for one in found]
        elif field.regex is None and len(elements) == len(found):
            text = text_of_elements(elements)
            return text or field.default, self._source(found) if name == "body" else None
        markup = converters.part(field.regex, self._source(found))
        if markup and len(elements) == len(found) == 1 and elements[0].tag == "pre" and self.page.format == "html":
            markup = f"<pre>{markup}</pre>"  # the lines of a part of preformatted text are lines, too
        return text_of(markup) or field.default, markup if name == "body" else None

    def _source(self, found: Found) -> str | None:
        markup = converters.source(found)
        return markup.replace(PLACEHOLDER, "") if markup and self._inner else markup

    def _kind_of_text(self, name: str) -> Kind:
        return "html" if name == "body" and self.page.format != "json" else "text"

    def _text(self, field: FieldSpec, node: Any, kind: Kind) -> str | None:
        """The field as a string, with what its regular expression takes of it."""
        found = self._found(field, node)
        return self._text_of(field, found[0], kind) if found else None

    def _text_of(self, field: FieldSpec, one: Any, kind: Kind) -> str | None:
        if not isinstance(one, etree._Element):
            return converters.part(field.regex, converters.string(one), field.join)
        if self.page.format == "xml" and kind == "text" and xml_page.holds_markup(one):
            return converters.part(field.regex, text_of(xml_page.markup_of(one)))
        attribute = next((name for name in _ATTRIBUTES.get(kind, ()) if one.get(name) is not None), None)
        text = converters.part(field.regex, converters.string(one, attribute), field.join)
        if text is None and kind == "id" and field.regex:
            text = converters.part(field.regex, one.get("href"), field.join)  # a link was selected: its id is in its address
        return text

    def _read(self, name: str, kind: Kind, field: FieldSpec, text: str | None) -> Any:
        if kind == "int":
            number = converters.number(text)
            return None if number is None else number + field.add
        if kind == "date":
            moment, fixed = self._dates.read(text, field.formats)
            if moment is None and text and self._other_dates:
                moment, fixed = self._other_dates.read(text)
            if not fixed:
                self.moving.add(name)
            return moment
        if kind == "url":
            return converters.url(text, self.base, self.site.drop_query)
        if kind == "bool":
            return text is not None and converters.truth(text)
        if kind == "id":
            # in HTML out of an address; it is quoted again when it becomes one
            own = converters.identity(unquote(text) if text and self.page.format != "json" else text)
            return own if own is None or field.prefix is None else url_templates.fill_text(field.prefix, self._names) + own
        return converters.text(text)

    def _found(self, field: FieldSpec, node: Any) -> Found:
        found = self.find(field, node)
        if field.without and (node is not self._row or any(self._may_be_in(cutter, node) for cutter in field.cutters)):
            found = [self._cut(one, field.cutters) for one in outermost(found)]
        if field.lookup is None or field.value is None or not found:
            return found
        row = self._table(field.lookup, field.key).get(converters.string(found[0]) or "")
        return [] if row is None else compiled("json", field.value)(row)

    def _may_be_in(self, cutter: Finder, row: Any) -> bool:
        """Whether something to be cut may be in a row: a lookup for all rows tells, where it has a plan."""
        plan = cutter.plan if type(cutter) is HtmlFinder else None
        return plan is None or plan.itself or plan.has_siblings or bool(self._search(cutter, row))

    def _cut(self, found: Any, cutters: tuple[Finder, ...]) -> Any:
        """A copy of an element without what the selectors find in it; the text after what is cut stays."""
        if not isinstance(found, etree._Element) or not any(self._search(cutter, found) for cutter in cutters):
            return found
        copy = deepcopy(found)
        copy.tail = None
        for cutter in cutters:
            cut(cutter(copy), copy)
        return copy

    def _table(self, lookup: str, key: str) -> dict[str, Any]:
        table = self._lookups.get((lookup, key))
        if table is None:
            table = self._lookups[lookup, key] = {}
            for rows in compiled("json", lookup)(self.root):
                for name, row in _items(rows):
                    known = compiled("json", key)(row)
                    table[(converters.string(known[0]) if known else name) or ""] = row
        return table


def _html_in(at: Select, answer: Any) -> Any:
    """The tree of the HTML in an answer of JSON; several texts are one after the other. Raises UnreadablePage where none is."""
    for finder in at.finders:
        for found in finder(answer):
            parts = found if isinstance(found, list) else [found]
            if all(isinstance(part, str) for part in parts):
                return tree_of("\n".join(parts))
    raise UnreadablePage(f"has no HTML at {' or '.join(at.select)}")


def _json_in(at: Select, root: Any) -> Any:
    """What the JSON in a page of HTML says, as in a script; the first that is JSON. Raises UnreadablePage where none is."""
    for found in (one for finder in at.finders for one in finder(root)):
        try:
            return json_text(converters.string(found) or "")
        except ValueError:
            continue
    raise UnreadablePage(f"has no JSON at {' or '.join(at.select)}")


def not_too_many(rows: list[Any]) -> list[Any]:
    """`rows`. Raises UnreadablePage where they are more than a page of a forum has, TooMuchHere where more than a reactor
    reads.
    """
    if len(rows) > _MOST_ROWS:
        raise UnreadablePage(f"has {len(rows):,} rows: no page of a forum has more than {_MOST_ROWS:,}")
    reading_budget.check_rows(len(rows))
    return rows


def _items(rows: Any) -> list[tuple[str, Any]]:
    if isinstance(rows, dict):
        return list(rows.items())
    return [("", row) for row in rows] if isinstance(rows, list) else []
