"""An opened page: rows, values of fields, with a count of empty values, and the address of the next page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag

import msgspec
from lxml import etree

from forum_reader.definition import page_requests
from forum_reader.definition.fields import FieldSpec, Kind, Select
from forum_reader.definition.page_requests import apart, with_body
from forum_reader.definition.pages import Page, RowsPage
from forum_reader.definition.selectors import Finder, Found, HtmlFinder, class_names, compiled
from forum_reader.errors import PageGone, UnreadablePage
from forum_reader.reading.parse_body import is_text

from . import found_values, parse_body
from .found_values import FoundValues
from .html_text import cut, inner_rows, left_out, outermost
from .page_records import Asked, FieldCount
from .parse_body import content_type, html_of, json_of, json_text, tree_of
from .xml_body import xml_of

if TYPE_CHECKING:
    from forum_reader.definition.site import Site
    from forum_reader.page.response import Response

_ROOTS: dict[str, Callable[[Any], Any]] = {"json": json_of, "html": html_of, "xml": xml_of}
_MOST_ROWS = 10_000  # of a page; an API's page of a whole long thread has 5,000


class Document:
    """One page; `root` and `classes`: its tree and its classes, where these are known; `thread`: its thread;
    `with_html` = False: the HTML of texts is left out. Raises UnreadablePage where the page does not match `page`, PageGone where
    it is a page of something that does not exist.
    """

    def __init__(
        self,
        site: Site,
        page: Page,
        response: Response,
        root: Any = None,
        *,
        thread: str = "",
        classes: frozenset[str] | None = None,
        with_html: bool = True,
    ) -> None:
        self.site = site
        self.page = page
        self.url = response.url
        self._budget = parse_body.begin(len(response.body))
        self._inner: dict[Any, list[Any]] = {}  # the rows within each row of HTML
        self.moving: set[str] = set()
        self._filled: dict[str, list[int]] = {}
        self._finders: dict[Finder, Finder | None] = {}
        self._classes = classes
        self._lookups: dict[tuple[str, str], dict[str, Any]] = {}
        if not is_text(response) and page.format != "xml":  # a sitemap may be compressed
            raise UnreadablePage(f"no text: {content_type(response)}, {len(response.body)} bytes")
        self.root = _ROOTS[page.answer](response) if root is None else root
        if page.json_at is not None:
            self.root = _json_in(page.json_at, self.root)
        self._around = self.root  # holds the way to the next page
        if page.html_at is not None:
            self.root = _html_in(page.html_at, self.root)
        if (shape := getattr(page, "shape", None)) is not None:
            from forum_reader.page.arranged import arranged

            self.root, self._classes = arranged(self.root, shape), None
        self._values = FoundValues(site, page, response, self.root, {"thread": thread}, with_html=with_html)
        if page.gone and self._is_on_page(page.gone) and not (isinstance(page, RowsPage) and self.find(page.rows)):
            raise PageGone(f"a page of something that does not exist: it has {' or '.join(page.gone.select)}")
        if page.gone_at and urldefrag(response.url).url == f"{site.base_url}".rstrip("/") + page.gone_at:
            raise PageGone(f"leads to {page.gone_at}, as requests for something that does not exist")
        if page.block_page and self._is_on_page(page.block_page):
            raise UnreadablePage(f"a wall: it has {' or '.join(page.block_page.select)}")
        if page.container and not self._is_on_page(page.container):
            raise UnreadablePage(f"has no {' or '.join(page.container.select)}, as each such page has")

    @property
    def has_numeric_dates(self) -> bool:
        """Return True if the day and the month of a date were numbers, in an order that the site's language decided."""
        return self._values.has_numeric_dates

    def find(self, select: Select, node: Any = None) -> Found:
        """Return the matches of the first selector with any in `node`, or in the whole page."""
        node = self.root if node is None else node
        return next((found for finder in select.finders if (found := self._search(finder, node))), [])

    def _search(self, finder: Finder, node: Any) -> Found:
        fitting = self._fitting(finder)
        return _without_blanks(fitting(node)) if fitting else []

    def _is_on_page(self, select: Select) -> bool:
        """Return True if the page has a match of a selector: each search ends at its first one, unless that is blank."""
        for finder in filter(None, map(self._fitting, select.finders)):
            found = finder.first(self.root) if isinstance(finder, HtmlFinder) else finder(self.root)
            if found and (_without_blanks(found) or _without_blanks(finder(self.root))):
                return True
        return False

    def _fitting(self, finder: Finder) -> Finder | None:
        """Return the finder without the parts that need classes which the page has not; None where none is left."""
        if type(finder) is not HtmlFinder:
            return finder
        if finder not in self._finders:
            self._finders[finder] = finder.on_page(self._class_names)
        return self._finders[finder]

    @cached_property
    def _class_names(self) -> frozenset[str]:
        return class_names(self.root) if self._classes is None else self._classes

    def rows(self, page: RowsPage) -> list[Any]:
        """Return the rows in their order, without rows in which `skip` finds something. From now on each is read without the
        rows within it. Raises UnreadablePage for JSON without rows; HTML without rows is an empty page.
        """
        rows = self._all_rows(page)
        return rows if page.skip is None else [row for row in rows if not self._has(page.skip, row)]

    def _has(self, select: Select, row: Any) -> bool:
        """Return True if a row has a match; in JSON false, zero and empty values do not count."""
        found = self.find(select, row)
        return any(found) if select.syntax == "json" else bool(found)

    def _all_rows(self, page: RowsPage) -> list[Any]:
        if page.format != "json":
            rows = not_too_many([row for row in self.find(page.rows) if isinstance(row, etree._Element)])
            self._inner = inner_rows(rows)
            self._values.has_placeholders = bool(self._inner)
            return rows
        for selector in page.rows.select:
            for found in compiled("json", selector)(self.root):
                if isinstance(found, dict):
                    return not_too_many(list(found.values()))
                if isinstance(found, list):
                    return not_too_many([row for row in found if row is not None])
        raise UnreadablePage(f"has no list of rows at {' or '.join(page.rows.select)}")

    def values(self, node: Any, fields: Any) -> dict[str, Any]:
        """Return each field that the site file declares, by name; an `html` field twice: clean text, and the original as
        `<name>_html`.
        """
        (values,) = self.values_of([node], fields)
        return values

    def values_of(self, nodes: Sequence[Any], fields: Any) -> Iterator[dict[str, Any]]:
        """Yield the values of each of the nodes. `moving` has the names of its dates that depend on the time of reading."""
        if not self._inner:
            yield from self._read_columns(nodes, fields)
            return
        for node in nodes:
            with left_out(node, self._inner):
                (values,) = self._read_columns([node], fields)
            yield values

    def _read_columns(self, nodes: Sequence[Any], fields: Any) -> Iterator[dict[str, Any]]:
        """Read field by field: each field is looked up once, and a field without a match in any node is not searched in each."""
        table: list[dict[str, Any]] = [{} for _ in nodes]
        moving: list[set[str]] = [set() for _ in nodes]
        known: dict[Finder, dict[int, Found]] = {}  # id, address and title often have the same selector
        for name, field in fields.declared:
            kind = self._values.kind_of(name, field)
            empty = 0
            for place, found in enumerate(self._found_in(field, nodes, known)):
                if kind == "html":
                    value, markup = self._values.html(name, field, found)
                    if markup is not None:
                        table[place][f"{name}_html"] = markup
                        self._budget.row(len(markup))
                else:
                    value, is_fixed = self._values.read(name, kind, field, found)
                    if not is_fixed:
                        moving[place].add(name)
                table[place][name] = value
                self._budget.row(len(value) if type(value) is str else 0)
                empty += value is None or value == ""
            count = self._filled.setdefault(name, [0, 0])
            count[0] += len(nodes)
            count[1] += empty
        for values, self.moving in zip(table, moving, strict=True):
            yield values

    def value(self, field: FieldSpec | None, kind: Kind) -> Any:
        """Return a value of the whole page; None where the site file has no such field."""
        return self._value_of("", field, self._around, kind) if field else None

    def addresses(self, field: FieldSpec | None) -> list[str]:
        """Return all matches of a field in the whole page, each once: addresses, or texts where the site file defines it so."""
        if field is None:
            return []
        kind = field.as_ or "url"
        found = [
            one for part in self._found_in(field, [self.root], {})[0] for one in (part if isinstance(part, list) else [part])
        ]
        values = (self._values.converted(kind, field, self._values.text(field, one, kind)) for one in found)
        return list(dict.fromkeys(value for value in values if value))

    def peek(self, field: FieldSpec, node: Any) -> str | None:
        """Return the id of a row, without counting it."""
        self._budget.row(0)
        with left_out(node, self._inner):
            value = self._value_of("id", field, node, "id")
        return None if value is None else str(value)

    def counts(self) -> dict[str, FieldCount]:
        """Return how often each field was empty."""
        return {name: FieldCount(rows=rows, empty=empty) for name, (rows, empty) in self._filled.items()}

    def _value_of(self, name: str, field: FieldSpec, node: Any, kind: Kind) -> Any:
        (found,) = self._found_in(field, [node], {})
        return self._values.read(name, field.as_ or kind, field, found)[0]

    def _looked_up(self, field: FieldSpec, found: Found) -> Found:
        if field.lookup is None or field.value is None or not found:
            return found
        row = self._table(field.lookup, field.key).get(found_values.string_of(found[0]) or "")
        return [] if row is None else compiled("json", field.value)(row)

    def _found_in(self, field: FieldSpec, nodes: Sequence[Any], known: dict[Finder, dict[int, Found]]) -> list[Found]:
        """Return a field's matches in each of the nodes; `known`: matches of its selectors for other fields."""
        founds: list[Found] = [[]] * len(nodes)
        left: Sequence[int] = range(len(nodes))
        for finder in filter(None, map(self._fitting, field.finders)):
            in_nodes = known.setdefault(finder, {})
            for place in left:
                if place not in in_nodes:
                    in_nodes[place] = _without_blanks(finder(nodes[place]))
                founds[place] = in_nodes[place]
            left = [place for place in left if not founds[place]]
            if not left:
                break
        if field.remove:
            founds = [[self._cut(one, field.cutters) for one in outermost(found)] for found in founds]
        return founds if field.lookup is None else [self._looked_up(field, found) for found in founds]

    def _cut(self, found: Any, cutters: tuple[Finder, ...]) -> Any:
        """Return a copy of an element without the selectors' matches in it; the text after each stays."""
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
                    table[(found_values.string_of(known[0]) if known else name) or ""] = row
        return table


def _without_blanks(found: Found) -> Found:
    """Return the matches without strings of white space."""
    return [one for one in found if one is not None and (not isinstance(one, str) or one.strip())]


def _html_in(at: Select, answer: Any) -> Any:
    """Return the tree of the HTML in a JSON response; several texts are joined. Raises UnreadablePage where there is none."""
    for finder in at.finders:
        for found in finder(answer):
            parts = found if isinstance(found, list) else [found]
            if all(isinstance(part, str) for part in parts):
                return tree_of("\n".join(parts))
    raise UnreadablePage(f"has no HTML at {' or '.join(at.select)}")


def _json_in(at: Select, root: Any) -> Any:
    """Return the value of the JSON in an HTML page, as in a script: the first that is JSON. Raises UnreadablePage
    where none is.
    """
    for found in (one for finder in at.finders for one in finder(root)):
        try:
            return json_text(found_values.string_of(found) or "")
        except ValueError:
            continue
    raise UnreadablePage(f"has no JSON at {' or '.join(at.select)}")


class Ahead(msgspec.Struct, frozen=True, kw_only=True):
    """Pages after a page, as the page shows them."""

    next: str | None = None
    pages: int | None = None
    total: int | None = None


def is_behind_the_end(doc: Document, page: RowsPage, number: int) -> bool:
    """Return True if the site sent another page than was requested, as some do behind the last one."""
    shown = doc.value(page.current, "int")
    return shown is not None and shown != number


def own_number(doc: Document, page: RowsPage) -> int:
    """Return the page's number from the page, else from its address; 1 where neither has it."""
    shown = doc.value(page.current, "int")
    return shown if shown is not None and shown > 0 else page_requests.number_in(doc.url, page.url, page.per_page)


def ahead(doc: Document, page: RowsPage, place: Asked, rows: int) -> Ahead:
    """Find the next page of a page with `rows` rows, by the site file: by link, cursor, number of pages, total, or until a page
    is empty.
    """
    total = doc.value(page.total, "int")
    pages = doc.value(page.pages, "int")
    if pages is None and total is not None and page.per_page:
        pages = max(1, math.ceil(total / page.per_page))
    return Ahead(next=_next(doc, page, place, rows, pages), pages=pages, total=total)


def _next(doc: Document, page: RowsPage, place: Asked, rows: int, pages: int | None) -> str | None:
    if page.next is not None:
        link = doc.value(page.next, "url")
        link = urldefrag(link).url if link else None
        if link == urldefrag(doc.url).url:  # the last page of some sites links to itself
            return None
        return link if link is None or page.body is None else with_body(link, apart(_address(doc, place))[1])
    if page.cursor is not None:
        cursor = doc.value(page.cursor, "text")  # some have one on the last page, too
        goes_on = rows > 0 and not _is_short(page, rows) and (page.has_more is None or doc.value(page.has_more, "bool"))
        return _address(doc, place, cursor) if cursor and goes_on else None
    if not page.is_numbered:
        return None
    return _address(doc, place) if _goes_on(doc, page, place, rows, pages) else None


def _goes_on(doc: Document, page: RowsPage, place: Asked, rows: int, pages: int | None) -> bool:
    if page.has_more is not None:
        return bool(doc.value(page.has_more, "bool"))
    if page.pages is not None or page.total is not None:
        return pages is not None and place.number < pages
    return rows > 0 and not _is_short(page, rows)


def _is_short(page: RowsPage, rows: int) -> bool:
    return page.ends == "short" and rows < (page.per_page or 0)


def _address(doc: Document, place: Asked, cursor: str | None = None) -> str:
    """Return the address of the page after this one."""
    after = msgspec.structs.replace(place, number=place.number + 1)
    return doc.site.url(**after.names, cursor=cursor)


def not_too_many(rows: list[Any]) -> list[Any]:
    """Return `rows`. Raises UnreadablePage where they are more than a page of a forum has, TooMuchHere where they are more than
    a reactor reads.
    """
    if len(rows) > _MOST_ROWS:
        raise UnreadablePage(f"has {len(rows):,} rows: no page of a forum has more than {_MOST_ROWS:,}")
    parse_body.check_rows(len(rows))
    return rows


def _items(rows: Any) -> list[tuple[str, Any]]:
    if isinstance(rows, dict):
        return list(rows.items())
    return [("", row) for row in rows] if isinstance(rows, list) else []
