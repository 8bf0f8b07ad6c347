"""Which page comes next."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag

import msgspec

from forums.sites.definition import url_templates
from forums.sites.definition.pages import PageKind, RowsPage

if TYPE_CHECKING:
    from .document import Document


class PagePosition(msgspec.Struct, frozen=True, kw_only=True):
    """Where in a chain of pages a page is."""

    kind: PageKind
    forum: str = ""
    thread: str = ""
    number: int = 1
    url: str | None = None


class Ahead(msgspec.Struct, frozen=True, kw_only=True):
    """What a page says of the pages after it."""

    next: str | None
    pages: int | None
    total: int | None


def is_behind_the_end(doc: Document, page: RowsPage, place: PagePosition) -> bool:
    """Whether the site answered with another page than was asked for, as some do behind the last one."""
    shown = doc.value(page.current, "int")
    return shown is not None and shown != place.number


def own_number(doc: Document, page: RowsPage) -> int:
    """Which page it is, as it says, else as its address says; 1 where neither does."""
    shown = doc.value(page.current, "int")
    return shown if shown is not None and shown > 0 else url_templates.number_in(doc.url, page.url, page.per_page)


def ahead(doc: Document, page: RowsPage, place: PagePosition, rows: int) -> Ahead:
    """The next page of a page with so many rows, as the site file says: by link, cursor, number of pages, total, or until one
    is empty.
    """
    total = doc.value(page.total, "int")
    pages = doc.value(page.pages, "int")
    if pages is None and total is not None and page.per_page:
        pages = max(1, math.ceil(total / page.per_page))
    return Ahead(next=_next(doc, page, place, rows, pages), pages=pages, total=total)


def _next(doc: Document, page: RowsPage, place: PagePosition, rows: int, pages: int | None) -> str | None:
    if page.next is not None:
        link = doc.value(page.next, "url")
        link = urldefrag(link).url if link else None
        return link if link != urldefrag(doc.url).url else None  # on the last page some link to where they are
    if page.cursor is not None:
        cursor = doc.value(page.cursor, "text")
        return _url(doc, place, cursor) if cursor and rows else None
    if not url_templates.is_numbered(page.url):
        return None
    return _url(doc, place) if _goes_on(doc, page, place, rows, pages) else None


def _goes_on(doc: Document, page: RowsPage, place: PagePosition, rows: int, pages: int | None) -> bool:
    if page.more is not None:
        return bool(doc.value(page.more, "bool"))
    if page.pages is not None or page.total is not None:
        return pages is not None and place.number < pages
    if page.ends == "short" and page.per_page:
        return rows >= page.per_page
    return rows > 0


def _url(doc: Document, place: PagePosition, cursor: str | None = None) -> str:
    given: dict[str, Any] = msgspec.structs.asdict(place)
    kind, number = given.pop("kind"), given.pop("number")
    return doc.site.url(kind, number=number + 1, cursor=cursor, **given)
