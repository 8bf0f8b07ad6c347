"""Order of the posts of threads, also over several pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal

from .opened_page import OpenedPage
from .post_rows import PostRows, post_rows

_LEAST = 2  # threads whose order is known, where none was read over two pages

Order = Literal["oldest", "newest", "newest_page"]


def order_of(found: Sequence[PostRows], following: Mapping[str, OpenedPage]) -> Order:
    """Return the `order` of `[pages.comments]`: by the dates of the rows of first pages, and of those of the pages that follow
    (`following`, by the first page's address). Posts within posts do not count.
    """
    after = {one.page.url: post_rows(page) for one in found if (page := following.get(one.page.url)) is not None}
    rows = [goes_back for one in [*found, *filter(None, after.values())] if (goes_back := _goes_back(_dates(one))) is not None]
    pages = {
        goes_back
        for one in found
        if (later := after.get(one.page.url)) is not None and (goes_back := _are_before(_dates(later), _dates(one))) is not None
    }
    are_back = bool(rows) and all(rows)
    if pages == {True}:
        return "newest_page" if rows and not any(rows) else "newest"
    return "newest" if not pages and are_back and len(rows) >= _LEAST else "oldest"


def _dates(one: PostRows) -> list[datetime | None]:
    blocks = one.fields.paths.blocks
    return [one.fields.dates.published[number] for number in one.numbers if blocks[number].around is None]


def _goes_back(dates: list[datetime | None]) -> bool | None:
    """Return True if each post is as old as the one before it, or older; None where that is not known."""
    moments = [moment for moment in dates if moment is not None]
    if len(moments) < len(dates) or len(set(moments)) < 2:
        return None
    return moments == sorted(moments, reverse=True)


def _are_before(later: Iterable[datetime | None], first: Iterable[datetime | None]) -> bool | None:
    """Return True if the posts of the second page are older than those of the first; None where that is not known."""
    behind, ahead = ([moment for moment in dates if moment is not None] for dates in (later, first))
    if not behind or not ahead or max(*behind, *ahead) == min(*behind, *ahead):
        return None
    return max(behind) <= min(ahead)
