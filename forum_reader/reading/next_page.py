"""Address of the next page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING
from urllib.parse import urldefrag

import msgspec

from forum_reader.definition import url_templates
from forum_reader.definition.page_body import apart, with_body
from forum_reader.definition.pages import PageKind, RowsPage

if TYPE_CHECKING:
    from .page_values import Document


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A requested page: its kind, forum and thread; `number` from 1; `url`: the thread's own, where its list gave one. Of
    comments that a page leaves out: `more` from that page, and `comment` that they answer.
    """

    kind: PageKind
    forum: str = ""
    thread: str = ""
    number: int = 1
    url: str | None = None
    comment: str = ""
    more: str = ""


class Ahead(msgspec.Struct, frozen=True, kw_only=True):
    """Pages after a page, as the page shows them."""

    next: str | None
    pages: int | None
    total: int | None


def is_behind_the_end(doc: Document, page: RowsPage, place: Asked) -> bool:
    """Return True if the site sent another page than was requested, as some do behind the last one."""
    shown = doc.value(page.current, "int")
    return shown is not None and shown != place.number


def own_number(doc: Document, page: RowsPage) -> int:
    """Return the page's number from the page, else from its address; 1 where neither has it."""
    shown = doc.value(page.current, "int")
    return shown if shown is not None and shown > 0 else url_templates.number_in(doc.url, page.url, page.per_page)


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
        cursor = doc.value(page.cursor, "text")
        return _address(doc, place, cursor) if cursor and rows else None
    if not page.is_numbered:
        return None
    return _address(doc, place) if _goes_on(doc, page, place, rows, pages) else None


def _goes_on(doc: Document, page: RowsPage, place: Asked, rows: int, pages: int | None) -> bool:
    if page.more is not None:
        return bool(doc.value(page.more, "bool"))
    if page.pages is not None or page.total is not None:
        return pages is not None and place.number < pages
    if page.ends == "short" and page.per_page:
        return rows >= page.per_page
    return rows > 0


def _address(doc: Document, place: Asked, cursor: str | None = None) -> str:
    """Return the address of the page after this one."""
    after = msgspec.structs.replace(place, number=place.number + 1)
    return doc.site.url(**msgspec.structs.asdict(after), cursor=cursor)
