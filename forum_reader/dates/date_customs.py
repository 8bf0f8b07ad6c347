"""Date conventions of a site that differ from its software's defaults: language, order of day and month, time zone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from forum_reader.errors import SiteError
from forum_reader.page.page_kind import language_of
from forum_reader.reading.parse_body import read_at, root_of
from forum_reader.reading.read_page import CommentsPage, read_comments
from forum_reader.reading.reading_budget import strictly

from . import day_first
from .language import known_language, writes_day_first
from .time_zones import zone_of

if TYPE_CHECKING:
    from forum_reader.definition.site import Site
    from forum_reader.page.response import TextResponse


def customs_of(site: Site, pages: Sequence[TextResponse]) -> tuple[str | None, str | None]:
    """Return the language and the time zone for a site's file, from some of its threads' pages; None where the profile's are
    right, or the pages do not show them.
    """
    if site.pages.comments.format != "html" or not pages:
        return None, None
    roots = [root_of(page.text) for page in pages]
    named = (zone_of(page.text, read_at(page), language_of(root)) for page, root in zip(pages, roots, strict=True))
    zone = next((zone.name for zone in named if zone is not None), None)
    return _language(site, pages, roots), zone if zone != site.time_zone else None


def _language(site: Site, pages: Sequence[TextResponse], roots: Sequence[Any]) -> str | None:
    named = next((known for root in roots if (known := known_language(language_of(root) or ""))), None)
    own = site.language or ""
    if named is not None and named.partition("-")[0] != own.partition("-")[0]:
        return named
    numeric = [page for page in pages if day_first.has_numeric_dates(page.text)]
    if not numeric or writes_day_first(own):
        return None
    other = named if named is not None and writes_day_first(named) else day_first.ENGLISH
    found = [(_read(site, page), _read(site.model_copy(update={"language": other}), page), page) for page in numeric]
    now = datetime.now(UTC)
    apart = sum(day_first.disorder_of(two, now) - day_first.disorder_of(one, now) for one, two, _ in found if one and two)
    return other if apart < 0 else None


def _read(site: Site, page: TextResponse) -> CommentsPage | None:
    try:
        with strictly():
            return read_comments(site, page, "0", None)
    except SiteError:
        return None
