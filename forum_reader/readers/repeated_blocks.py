"""Sets of blocks that may be the posts of a page: elements around things that each post has once.

A post has one date, one author, one id, each at the same place in its markup, and one text, which a class may mark. Elements
that stand at the same place (same tags and classes up to the third ancestor) are a group; around the members of a group the
blocks are

- the largest elements with one member each,
- or, where a post is several siblings (rows of a table, `dt` and `dd`), the siblings from one member to the next,
- or the ancestors a number of levels up, where answers stand within the posts that they answer.

Each set of blocks is weighed by its share of the page's text and its number of blocks with exactly one date and one author;
`block_fields` reads the best in detail. The number of groups and of sets that are read is bounded.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from forum_reader.fields.post_marks import Marks
from forum_reader.page.page_tree import PageTree, Range

_MOST_GROUPS = 60
_MOST_MEMBERS = 5000
_MOST_BODIES = 6
_LEAST_TEXT = 15  # characters of a post
_MOST_LEVELS = 12


@dataclass(slots=True)
class Block:
    """Elements `[start, end)` and their texts, without those of `inner` blocks (text ranges in order)."""

    start: int
    end: int
    texts: Range
    inner: list[Range] = field(default_factory=list)
    inner_elements: list[Range] = field(default_factory=list)
    around: int | None = None
    """Index in the set of the block around this one."""


@dataclass(slots=True)
class BlockSet:
    """Blocks in the order of the page. `score` orders sets; it has no unit."""

    blocks: list[Block]
    score: float
    alone: float
    """The share of dates and authors in the blocks that are alone in their block."""
    alike: float
    """The share of blocks of the same tag and class."""
    has_lead: bool = False
    """The first block is the opening post, in other markup than the others, or around them."""


def block_sets(tree: PageTree, marks: Marks, most: int = 3) -> list[BlockSet]:
    """Return the likeliest sets, the best first."""
    groups = _groups(tree, marks)
    words = max(1, tree.chars[-1] - tree.link_chars[-1])
    seen: set[tuple[Range, ...]] = set()
    found: list[BlockSet] = []
    dates = [members for kind, members in groups if kind == "date"][:8]
    authors = [members for kind, members in groups if kind == "author"][:8]
    for _, members in groups:
        for ranges in _sets_of(tree, members):
            key = tuple(ranges)
            if key in seen or len(ranges) < 2:
                continue
            seen.add(key)
            blocks = blocks_of(tree, ranges)
            if _is_around(tree, blocks) or _begins_with_form(tree, marks, blocks):
                continue
            filled, alike = _filled(tree, blocks, words)
            if filled > (found[-1].score if len(found) == most else 0.0):  # the score is no more
                complete, alone = _complete(blocks, dates, authors)
                found.append(BlockSet(blocks, filled * complete * (0.2 + 0.8 * alone), alone, alike))
                found.sort(key=lambda one: -one.score)
                del found[most:]
    return [one for one in found if one.score > 0]


def _is_around(tree: PageTree, blocks: list[Block]) -> bool:
    """Return True if most blocks around others have no words before them: an answer stands below the text of its post."""
    outer = [block for block in blocks if block.inner]
    bare = sum(tree.chars[block.inner[0][0]] - tree.chars[block.texts[0]] < _LEAST_TEXT for block in outer)
    return 2 * bare > len(outer)


def _begins_with_form(tree: PageTree, marks: Marks, blocks: list[Block]) -> bool:
    """Return True if a field for a new post stands in the first block before its date: the block is the page, not a post."""
    first = blocks[0]
    fields = [i for i in tree.writing_in if first.start <= i < first.end] if first.inner else []
    return bool(fields) and fields[0] < min((i for i in marks.dates if i >= first.start), default=0)


def _groups(tree: PageTree, marks: Marks) -> list[tuple[str, list[int]]]:
    """Return elements at the same place in their posts, grouped by kind; the largest groups first."""
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    parent, sign = tree.parent, tree.sign
    for kind, members in (("date", sorted(marks.dates)), ("author", marks.authors), ("id", marks.ids)):
        for i in members:
            up = parent[i]
            above = parent[up] if up >= 0 else -1
            if kind == "id":
                groups[kind, tree.tag[i], tree.attributes[i]["id"].rstrip("0123456789")].append(i)
                continue
            groups[kind, sign[i], sign[up] if up >= 0 else -1, sign[above] if above >= 0 else -1].append(i)
            groups[kind, sign[i]].append(i)
    if 2 <= len(marks.bodies) <= _MOST_BODIES and len({(sign[i], sign[parent[i]]) for i in marks.bodies}) > 1:
        groups["body",] = marks.bodies  # a question and its answer, each with other markup: nothing else may repeat
    seen: set[tuple[str, tuple[int, ...]]] = set()
    found = []
    for key, members in groups.items():
        kind = str(key[0])
        if 2 <= len(members) <= _MOST_MEMBERS and (kind, tuple(members)) not in seen:
            seen.add((kind, tuple(members)))
            found.append((kind, members))
    found.sort(key=lambda one: -len(one[1]))
    return found[:_MOST_GROUPS]


def _sets_of(tree: PageTree, members: Sequence[int]) -> Iterable[list[Range]]:
    tops = alone(tree, members)
    yield [(i, tree.end[i]) for i in tops]
    yield from _runs(tree, tops)
    yield from _levels(tree, members)


def alone(tree: PageTree, members: Sequence[int]) -> list[int]:
    """Return the largest elements that hold one member each."""
    found = []
    for place, member in enumerate(members):
        before = members[place - 1] if place else -1
        after = members[place + 1] if place + 1 < len(members) else len(tree)
        top = member
        while (up := tree.parent[top]) > before and tree.end[up] <= after and up > 0:
            top = up
        found.append(top)
    return found


def _runs(tree: PageTree, tops: Sequence[int]) -> Iterable[list[Range]]:
    """Siblings from one member to the next, before or behind it."""
    by_parent: dict[int, list[int]] = defaultdict(list)
    for i in tops:
        by_parent[tree.parent[i]].append(i)
    parent, starts = max(by_parent.items(), key=lambda one: len(one[1]))
    if len(starts) < 2 or len(starts) < 0.7 * len(tops) or parent < 0:
        return
    if all(tree.end[one] == after for one, after in itertools.pairwise(starts)):
        return
    longest = max(after - one for one, after in itertools.pairwise(starts))
    last = _sibling_end(tree, starts[-1], starts[-1] + 2 * longest, tree.end[parent])
    yield [*itertools.pairwise(starts), (starts[-1], last)]
    after = tree.chars[tree.text_range((tree.end[starts[-1]], last))[1]] - tree.chars[tree.last_text[starts[-1]]]
    if after > _LEAST_TEXT:
        return  # text after the last mark belongs to it: marks stand at the head of their posts
    ends = [tree.end[one] for one in starts]
    first = _first_sibling(tree, parent, starts[0], ends[0] - 2 * longest)
    yield [(first, ends[0]), *itertools.pairwise(ends)]


def _sibling_end(tree: PageTree, start: int, most: int, limit: int) -> int:
    end = tree.end[start]
    while end < limit and tree.end[end] <= most:
        end = tree.end[end]
    return end


def _first_sibling(tree: PageTree, parent: int, before: int, least: int) -> int:
    child, first = parent + 1, before
    while child < before:
        if child >= least:
            first = child
            break
        child = tree.end[child]
    return first


def _levels(tree: PageTree, members: Sequence[int]) -> Iterable[list[Range]]:
    """Yield ancestors at each level where the next level has fewer."""
    level = list(members)
    for _ in range(_MOST_LEVELS):
        up = list(dict.fromkeys(tree.parent[i] for i in level if tree.parent[i] > 0))
        if len(up) < len(level) and len(level) >= 2:
            ordered = sorted(level)
            yield [(i, tree.end[i]) for i in ordered]
        if len(up) < 2:
            return
        level = up


def blocks_of(tree: PageTree, ranges: list[Range]) -> list[Block]:
    """Return the blocks of element ranges, each with the blocks inside it."""
    blocks: list[Block] = []
    open_: list[int] = []
    for place, (start, end) in enumerate(ranges):
        texts = tree.text_range((start, end)) if end > tree.end[start] else (tree.first_text[start], tree.last_text[start])
        block = Block(start, end, texts)
        while open_ and blocks[open_[-1]].end <= start:
            open_.pop()
        if open_:
            block.around = open_[-1]
            blocks[open_[-1]].inner.append(texts)
            blocks[open_[-1]].inner_elements.append((start, end))
        open_.append(place)
        blocks.append(block)
    return blocks


def without(tree: PageTree, found: BlockSet, out: set[int]) -> BlockSet:
    """Return the set without the blocks of some numbers; blocks inside these stand alone."""
    ranges = [(block.start, block.end) for number, block in enumerate(found.blocks) if number not in out]
    signs = Counter(tree.sign[start] for start, _ in ranges)
    return BlockSet(blocks_of(tree, ranges), found.score, found.alone, max(signs.values()) / len(ranges), found.has_lead)


def _own(sums: Sequence[int], block: Block) -> int:
    return sums[block.texts[1]] - sums[block.texts[0]] - sum(sums[end] - sums[start] for start, end in block.inner)


def _filled(tree: PageTree, blocks: list[Block], words: int) -> tuple[float, float]:
    """Score blocks by their texts; return the share of blocks of one class, too."""
    texts = [_own(tree.chars, block) for block in blocks]
    unlinked = [chars - _own(tree.link_chars, block) for chars, block in zip(texts, blocks, strict=True)]
    held = sum(unlinked)
    if held <= 0:
        return 0.0, 0.0
    share = min(1.0, held / words)
    filled = sum(chars > _LEAST_TEXT for chars in unlinked) / len(blocks)
    prose = held / max(1, sum(texts))
    signs = Counter(tree.sign[block.start] for block in blocks)
    alike = max(signs.values()) / len(blocks)
    return share**0.7 * filled * (0.3 + 0.7 * prose) * (0.5 + 0.5 * alike), alike


def _complete(blocks: list[Block], dates: list[list[int]], authors: list[list[int]]) -> tuple[float, float]:
    """Score blocks by their dates and authors; return the share of these that are alone in their block, too."""
    date, author = _Ones(len(blocks)), _Ones(len(blocks))
    for kind, groups in ((date, dates), (author, authors)):
        for members in groups:
            kind.count(members, blocks)
    alone = (date.alone + author.alone) / max(1, date.inside + author.inside)
    return (0.3 + 0.7 * date.best) * (0.4 + 0.6 * author.best), alone


class _Ones:
    """Counts blocks that have exactly one member of a group. `alone` of `inside` members of all groups are as many as in most
    blocks; the share is low where blocks hold several posts each.
    """

    def __init__(self, blocks: int) -> None:
        self.best = 0.0
        self.alone = self.inside = 0
        self._blocks = blocks

    def count(self, members: list[int], blocks: list[Block]) -> None:
        counts: Counter[int] = Counter()
        inside = 0
        for block in blocks:
            count = _between(members, block.start, block.end)
            for inner in block.inner_elements:
                count -= _between(members, *inner)
            counts[count] += 1
            inside += count
        self.inside += inside
        self.alone += counts[1]
        for few in (2, 3) if self._blocks > 2 else ():
            if counts[few] > 0.6 * self._blocks:  # for example a picture and a name
                self.alone += few * counts[few]
        self.best = max(self.best, counts[1] / len(blocks) * (0.6 + 0.4 * min(1.0, inside / len(members))))


def _between(members: list[int], start: int, end: int) -> int:
    return bisect_left(members, end) - bisect_left(members, start)
