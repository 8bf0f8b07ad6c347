"""Elements of the posts of a page, which become the rows of a site file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from forum_reader.definition.selectors import compiled
from forum_reader.readers.block_fields import Fields

from .page_sample import OpenedPage


@dataclass(slots=True)
class PostRows:
    """The rows of a page and the numbers of their blocks; `lead`: the block of an opening post outside the rows."""

    page: OpenedPage
    fields: Fields
    rows: list[Any]
    numbers: list[int]
    lead: int | None

    @property
    def are_alike(self) -> bool:
        """Return True if the rows are all of the same tag and class."""
        blocks, sign = self.fields.found.blocks, self.page.tree.sign
        return len({sign[blocks[number].start] for number in self.numbers}) == 1


def post_rows(page: OpenedPage) -> PostRows | None:
    """Return the elements of the blocks; of a post that is several siblings the one with its date or author."""
    if page.learned is None or not page.posts:
        return None
    fields, tree = page.learned.fields, page.tree
    blocks = fields.found.blocks
    signs = Counter(tree.sign[block.start] for block in blocks)
    is_lead = "lead" in fields.found.how or (len(blocks) > 2 and signs[tree.sign[blocks[0].start]] == 1)
    rows, numbers = [], []
    for number, block in enumerate(blocks):
        if number == 0 and is_lead:
            continue
        place = block.start
        if tree.end[block.start] < block.end:
            mark = fields.dates.elements.get(number, fields.authors.get(number, block.start))
            while tree.parent[mark] != tree.parent[block.start] and tree.parent[mark] > 0:
                mark = tree.parent[mark]
            place = mark
        rows.append(tree.elements[place])
        numbers.append(number)
    return PostRows(page, fields, rows, numbers, 0 if is_lead else None) if rows else None


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


def begins_each_page(found: Sequence[PostRows], following: Mapping[str, OpenedPage], rows: str) -> bool:
    """Return True if second pages (`following`, by the address of the first) begin with the same row as the first pages."""
    pairs = [(one.page.root, page.root) for one in found if (page := following.get(one.page.url)) is not None]
    firsts = [(_first(rows, first), _first(rows, later)) for first, later in pairs]
    return bool(firsts) and all(first and first == later for first, later in firsts)


def _first(rows: str, root: Any) -> list[str]:
    """Return the words of the first row."""
    found = compiled("html", rows)(root)
    return "".join(found[0].itertext()).split() if found else []


def title_selector(roots: Sequence[Any]) -> str:
    """Return a selector of the heading, or of its first element where the window's title is only that: `<h1><b>Pumps</b>
    #4</h1>`.
    """
    headings = [root.find(".//h1") for root in roots]
    if any(heading is None for heading in headings):
        return "title"
    shown = [_line(root.find(".//title")) for root in roots]
    firsts = [_line(next(iter(heading), None)) for heading in headings]
    within = all(first and first in title for first, title in zip(firsts, shown, strict=True))
    whole = any(_line(heading) in title for heading, title in zip(headings, shown, strict=True))
    return "h1 > :first-child" if within and not whole else "h1"


def _line(element: Any) -> str:
    return "" if element is None else " ".join("".join(element.itertext()).split())
