"""Opening post with markup unlike the answers': a question above its answers, an article above its comments."""

from __future__ import annotations

from bisect import bisect_left
from datetime import datetime, timedelta

from .bare_names import is_byline
from .block_fields import Fields
from .page_tree import PageTree
from .post_dates import LONGEST
from .post_marks import Marks
from .repeated_blocks import Block, BlockSet

_LEAST_TEXT = 20  # characters
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "title"})
_A_DAY = 3  # precision of a date: a month and a year are of a title


def with_lead(tree: PageTree, marks: Marks, found: BlockSet) -> BlockSet | None:
    """Return the set with a block before the first one; None where nothing there may be a post."""
    first = min(found.blocks, key=lambda block: block.start)
    outer = [block for block in found.blocks if block.around is None]
    child = first.start
    last = max(block.end for block in outer)
    up = tree.parent[child]
    while up > 0 and tree.end[up] < last:  # the element that has all of them
        child, up = up, tree.parent[up]
    dates = sorted(marks.dates)
    while up >= 0:
        block = _before(tree, marks, dates, up, child)
        if block is not None:
            blocks = [block, *found.blocks]
            for one in blocks[1:]:
                one.around = None if one.around is None else one.around + 1
            return BlockSet(blocks, found.score, found.how + " with lead", found.alone, found.alike)
        child, up = up, tree.parent[up]
    return None


def _before(tree: PageTree, marks: Marks, dates: list[int], up: int, child: int) -> Block | None:
    """Return, of the elements before `child` in `up`, those from the first with a date or an author to the last with text."""
    start = None
    sibling = up + 1
    while sibling < child:
        if start is None and (_has(dates, sibling, tree.end[sibling]) or _has(marks.authors, sibling, tree.end[sibling])):
            start = sibling
        sibling = tree.end[sibling]
    if start is None:
        return None
    texts = (tree.first_text[start], tree.first_text[child])
    chars = tree.written(*texts)
    if chars < _LEAST_TEXT or not _has(dates, start, child):
        return None
    if not _has(marks.authors, start, child) and not _has_byline(tree, dates, start, child):
        return None
    end = child
    single = start
    if tree.end[start] >= child or tree.size(start) > 0.8 * (tree.chars[texts[1]] - tree.chars[texts[0]]):
        end = tree.end[single]
        texts = (tree.first_text[start], tree.last_text[start])
    return Block(start, end, texts)


def _has_byline(tree: PageTree, dates: list[int], start: int, end: int) -> bool:
    return any(
        is_byline(tree.string(i)) for i in dates[bisect_left(dates, start) : bisect_left(dates, end)] if tree.size(i) <= LONGEST
    )


def _has(elements: list[int], start: int, end: int) -> bool:
    place = bisect_left(elements, start)
    return place < len(elements) and elements[place] < end


def _are_one(fields: Fields, date: datetime, after: datetime) -> bool:
    """Return True if the dates of the first two blocks may be the same: on one day, and not in different minutes."""
    spotted = [fields.paths.marks.dates.get(fields.dates.elements.get(number, -1)) for number in (0, 1)]
    exact = all(one is not None and one.hour is not None for one in spotted)
    return date.date() == after.date() and not (exact and abs(date - after) >= timedelta(minutes=1))


def is_post(fields: Fields) -> bool:
    """Return True if the first block is one more post, and not a heading that repeats author and date of the first answer."""
    tree, body = fields.paths.tree, fields.bodies[0]
    author, date = fields.author(0), fields.dates.published[0]
    if (
        not author
        or date is None
        or fields.paths.marks.dates[fields.dates.elements[0]].precision < _A_DAY
        or not tree.joined(*body.texts, body.without)
    ):
        return False
    if body.root is not None and tree.tag[body.root] in _HEADINGS:
        return False
    after = fields.dates.published[1]
    if after is not None and author == fields.author(1) and _are_one(fields, date, after):
        return False
    back = fields.paths.marks.dates[fields.dates.elements[0]].back  # `over a year ago` is up to two
    return after is None or date <= after + max(timedelta(days=1), back or timedelta(0))
