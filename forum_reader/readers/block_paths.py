"""The elements of repeated blocks by their paths: where the same thing stands in each block.

The path of an element is made of the tags and classes from its block down. What stands at one path in most blocks is a
`Place`; the fields of posts are places. Elements without text are left out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

from forum_reader.fields.post_marks import Marks
from forum_reader.page.page_tree import LETTER, PageTree

from .repeated_blocks import Block

_TOP = 0
_MOST_COLUMNS = 5


@dataclass(slots=True)
class Place:
    """A path: its first element with text in each block, by the block's number, and the number of its elements in all blocks."""

    path: int
    above: int
    first: dict[int, int] = field(default_factory=dict)
    count: int = 0


class BlockPaths:
    """The places of one set of blocks, and lookups for the fields. `own`: the elements of each block, without those of blocks
    inside it; `odd`: blocks whose tag or class differs from most; `dates_of`, `authors_of`: the elements of each block that hold
    dates, or may be its author.
    """

    def __init__(self, tree: PageTree, marks: Marks, blocks: list[Block]) -> None:
        self.tree = tree
        self.string, self.names, self.label = tree.string, tree.names, tree.label
        self.marks = marks
        self.blocks = blocks
        self.count = len(blocks)
        self.places: list[Place] = [Place(_TOP, -1)]
        self.path_of: dict[int, int] = {}
        self.number_of: dict[int, int] = {}
        self.own: list[list[int]] = [[] for _ in blocks]
        self._known: dict[tuple[int, int, int], int] = {}
        self._date_elements = sorted(marks.dates)
        self._empty_dates = self._without_text()
        self._single = 2 * sum(tree.end[block.start] == block.end for block in blocks) > len(blocks)
        signs = Counter(tree.sign[block.start] for block in blocks)
        usual = max(signs, key=lambda sign: signs[sign], default=-1)
        self.odd = {number for number, block in enumerate(blocks) if tree.sign[block.start] != usual}
        for number, block in enumerate(blocks):
            self._index(number, block)
        self.dates_of = self._by_block(self._date_elements)
        self.authors_of = self._by_block(marks.authors)

    def presence(self, place: Place) -> float:
        """Return the share of blocks that have the place."""
        return len(place.first) / self.count

    def children(self, place: Place) -> list[Place]:
        """Return the places directly below a place."""
        return [one for one in self.places if one.above == place.path]

    def has_letters(self, i: int) -> bool:
        """Return True if there is a letter in the text of an element."""
        return bool(LETTER.search(self.string(i)))

    def own_size(self, number: int, i: int) -> int:
        """Return the number of characters of an element of a block, without the blocks inside it."""
        tree = self.tree
        first, last = tree.first_text[i], tree.last_text[i]
        inner = sum(tree.chars[b] - tree.chars[a] for a, b in self.blocks[number].inner if first <= a < last)
        return tree.chars[last] - tree.chars[first] - inner

    def link_size(self, i: int) -> int:
        """Return the number of characters of links in an element."""
        tree = self.tree
        return tree.link_chars[tree.last_text[i]] - tree.link_chars[tree.first_text[i]]

    def has_date(self, start: int, end: int) -> bool:
        """Return True if an element in `[start, end)` holds a date."""
        place = bisect_left(self._date_elements, start)
        return place < len(self._date_elements) and self._date_elements[place] < end

    def _by_block(self, elements: list[int]) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.blocks]
        for i in elements:
            if (number := self.number_of.get(i)) is not None:
                found[number].append(i)
        return found

    def _without_text(self) -> set[int]:
        """Return dates that a script fills in, and the empty elements around them."""
        tree = self.tree
        found: set[int] = set()
        for i in self._date_elements:
            while i >= 0 and i not in found and tree.first_text[i] == tree.last_text[i]:
                found.add(i)
                i = tree.parent[i]
        return found

    def _index(self, number: int, block: Block) -> None:
        tree = self.tree
        parents, ends, signs, first_text, last_text = tree.parent, tree.end, tree.sign, tree.first_text, tree.last_text
        known, places, path_of, number_of = self._known, self.places, self.path_of, self.number_of
        counted, own = tree.counted, self.own[number]
        seen: dict[tuple[int, int], int] = {}
        inner = iter(block.inner_elements)
        skip = next(inner, None)
        i, start, end = block.start, block.start, block.end
        while i < end:
            if skip is not None and i >= skip[0]:
                i = skip[1]
                skip = next(inner, None)
                continue
            if first_text[i] == last_text[i] and i not in self._empty_dates:
                i = ends[i]
                continue
            up = path_of[parents[i]] if parents[i] >= start else _TOP
            # the block's own element may be of another class than its neighbours'
            sign = -1 if i == start and (self._single or ends[i] == end) else signs[i]
            nth = 0
            if sign in counted:  # the columns of a row
                place_in = (parents[i], sign)
                nth = seen[place_in] = seen.get(place_in, -1) + 1
            key = (up, sign, min(nth, _MOST_COLUMNS))
            path = known.get(key)
            if path is None:
                path = known[key] = len(places)
                places.append(Place(path, up))
            path_of[i] = path
            number_of[i] = number
            own.append(i)
            place = places[path]
            place.first.setdefault(number, i)
            place.count += 1
            i += 1
