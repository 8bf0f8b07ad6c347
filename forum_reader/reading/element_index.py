"""Elements within elements: which row is in which, reading a row without the rows in it, cutting parts out. The time is linear
in the page's size, however its elements nest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from itertools import repeat
from typing import Any

from lxml import etree

from forum_reader.definition.css_plan import Key, Listed, Plan
from forum_reader.definition.selectors import HtmlFinder, xml_text

_PLACE = "trawl: a row"
PLACEHOLDER = f"<!--{_PLACE}-->"
"""In the HTML of a row that is read without its inner rows, in place of each."""


def parents_of(rows: Sequence[Any]) -> dict[Any, Any]:
    """Return for each of these elements the innermost other one around it, or None. Each element of the page is visited once."""
    members = frozenset(rows)
    known: dict[Any, Any] = {}
    parents = {}
    for row in rows:
        path, element = [], row.getparent()
        while element is not None and element not in members and element not in known:
            path.append(element)
            element = element.getparent()
        found = element if element is None or element in members else known[element]
        known.update(dict.fromkeys(path, found))
        parents[row] = found
    return parents


def outermost(found: list[Any]) -> list[Any]:
    """Leave out matches within another match, whose text includes theirs."""
    elements = [one for one in found if isinstance(one, etree._Element)]
    if len(elements) < 2:
        return found
    parents = parents_of(elements)
    return [one for one in found if not isinstance(one, etree._Element) or parents[one] is None]


def inner_rows(rows: Sequence[Any]) -> dict[Any, list[Any]]:
    """Return for each row with inner rows the outermost of these."""
    if len(rows) < 2:
        return {}
    inner: dict[Any, list[Any]] = {}
    for row, parent in parents_of(rows).items():
        if parent is not None:
            inner.setdefault(parent, []).append(row)
    return inner


@contextmanager
def left_out(row: Any, inner: Mapping[Any, list[Any]]) -> Iterator[Any]:
    """Yield `row` without the rows within it; they are put back afterwards. The tree around the row stays."""
    places = []
    try:
        for one in inner.get(row, ()):
            place = etree.Comment(_PLACE)
            place.tail, one.tail = xml_text(one.tail), None
            one.getparent().replace(one, place)
            places.append((place, one))
        yield row
    finally:
        for place, one in places:
            one.tail, place.tail = place.tail, None
            place.getparent().replace(place, one)


def cut(elements: Iterable[Any], root: Any) -> None:
    """Take these elements (in document order) out of `root`; the text behind each stays."""
    texts: dict[tuple[Any, bool], list[str]] = {}  # joined at the end: each addition to a text copies all of it
    for element in elements:
        parent = element.getparent() if isinstance(element, etree._Element) and element is not root else None
        if parent is None:
            continue
        before = element.getprevious()
        at = (parent, False) if before is None else (before, True)
        parts = texts.get(at)
        if parts is None:
            parts = texts[at] = [(parent.text if before is None else before.tail) or ""]
        parts.append(element.tail or "")
        parent.remove(element)
    for (element, is_tail), parts in texts.items():
        if is_tail:
            element.tail = xml_text("".join(parts))
        else:
            element.text = xml_text("".join(parts))


_get = etree._Element.get


class ElementIndex:
    """Index of the tree below `root`. Each kind of key is collected on first use. Elements may be taken out of the tree and put
    back meanwhile (`left_out`); none may be added.
    """

    def __init__(self, root: Any) -> None:
        self.root = root
        self._elements: list[Any] = list(root.iter("*"))
        self._places: dict[Any, int] = dict(zip(self._elements, range(len(self._elements)), strict=True))
        self._listed: dict[HtmlFinder, list[Listed]] = {}
        self._rows: dict[Any, int] = {}
        self._in_rows: dict[HtmlFinder, dict[Any, list[Any]]] = {}
        self._known: dict[Key, list[int]] = {}
        self._values: dict[str, dict[str, list[int]]] = {}
        self._ends: dict[int, int] = {0: len(self._elements)}
        self._without: list[tuple[int, int]] = []

    def find(self, finder: HtmlFinder, node: Any) -> list[Any] | None:
        """Return the selector's matches in `node`; None where only its XPath can find them."""
        plan: Plan | None = finder.plan
        if plan is None or (plan.has_siblings and node is not self.root):
            return None
        if plan.itself:
            return plan.of_itself(node)
        if node in self._rows:
            return self._found_in_rows(finder, plan).get(node, [])
        place = self._places.get(node)
        if place is None:
            return None
        return self._taken(plan, plan.find(self, self._listed_of(finder, plan), [place]))

    def search_together(self, rows: Sequence[Any]) -> None:
        """Search any selector that is searched in one of the rows in all of them at once from now on. No row may be within
        another.
        """
        self._rows = {row: place for row in rows if (place := self._places.get(row)) is not None}
        self._in_rows.clear()

    def find_in_rows(self, finder: HtmlFinder, rows: Sequence[Any]) -> dict[Any, list[Any]] | None:
        """Return the matches of a selector in each of the rows that are searched together, without rows that have none; None
        where `rows` are others, or where only `find` can search.
        """
        plan: Plan | None = finder.plan
        if plan is None or plan.has_siblings or plan.itself or not rows or rows[0] not in self._rows:
            return None
        return self._found_in_rows(finder, plan)

    def _found_in_rows(self, finder: HtmlFinder, plan: Plan) -> dict[Any, list[Any]]:
        found = self._in_rows.get(finder)
        if found is not None:
            return found
        found = self._in_rows[finder] = {}
        rows = sorted(self._rows.values())
        places = plan.find(self, self._listed_of(finder, plan), rows)
        start = 0
        for row in rows if places else ():
            end = bisect_left(places, self._end(row), start)
            if start < end:
                found[self._elements[row]] = self._taken(plan, places[start:end])
            start = end
        return found

    def _listed_of(self, finder: HtmlFinder, plan: Plan) -> list[Listed]:
        listed = self._listed.get(finder)
        if listed is None:
            listed = self._listed[finder] = plan.listed(self)
        return listed

    def _taken(self, plan: Plan, places: list[int]) -> list[Any]:
        elements = self._elements
        return plan.taken([elements[place] for place in places])

    @contextmanager
    def left_out(self, row: Any, inner: Mapping[Any, list[Any]]) -> Iterator[None]:
        """Leave the rows within `row` out of the tree meanwhile, like `element_trees.left_out`; they are not found."""
        self._without = [(self._places[one], self._end(self._places[one])) for one in inner.get(row, ()) if one in self._places]
        try:
            with left_out(row, inner):
                yield
        finally:
            self._without = []

    def values(self, name: str) -> dict[str, list[int]]:
        """Return the values of an attribute on the page, each with the places of its elements."""
        values = self._values.get(name)
        if values is None:
            values = self._values[name] = self._by_value(name)
        return values

    def places(self, key: Key) -> list[int]:
        """Return the places of all elements that have the key."""
        places = self._known.get(key)
        if places is None:
            places = self._known[key] = self._of(key)
        return places

    def within(self, places: list[int], outer: list[int]) -> list[int]:
        """Return the `places` within one of the elements `outer`, without these elements."""
        found: list[int] = []
        behind = 0
        for place in outer:
            if place >= behind:  # else it is within the previous element
                behind = self._end(place)
                start = bisect_left(places, place + 1)
                found += places[start : bisect_left(places, behind, start)]
        for start, end in self._without:
            found = [place for place in found if not start <= place < end]
        return found

    def parent(self, place: int) -> int:
        """Return the parent's place; -1 for the root."""
        return self._places.get(self._elements[place].getparent(), -1)

    def following(self, place: int) -> int:
        """Return the next sibling's place; -1 where it is the last one."""
        return self._places.get(next(self._elements[place].itersiblings("*"), None), -1)

    def element(self, place: int) -> Any:
        """Return the element at a place."""
        return self._elements[place]

    def _end(self, place: int) -> int:
        """Return the place behind the last element within the one at `place`."""
        end = self._ends.get(place)
        if end is None:
            after, around = None, self._elements[place]
            while after is None and around is not None:
                after = next(around.itersiblings("*"), None)
                around = around.getparent()
            end = len(self._elements) if after is None else self._places[after]
            if not self._without:
                self._ends[place] = end
        return end

    def _of(self, key: Key) -> list[int]:
        if key.operator is not None:
            values = self.values(key.name)
            if key.operator == "=":
                return values.get(key.value, [])
            part = key.value
            if key.name == "class" and part not in self._classes:
                return []
            lists = [places for given, places in values.items() if part in given and key.fits(given)]
            return lists[0] if len(lists) == 1 else sorted(place for places in lists for place in places)
        if key.name == "*":
            return list(range(len(self._elements)))
        if key.name == "html":  # only the root can match
            return [0] if self.root.tag == "html" else []
        if self._without:
            return [place for place, one in enumerate(self._elements) if one.tag == key.name]
        return [self._places[element] for element in self.root.iter(key.name)]

    @cached_property
    def _classes(self) -> str:
        """The text of all attributes `class`: a name that is not in it needs no search in each of them."""
        return "\n".join(self.values("class"))

    def _by_value(self, name: str) -> dict[str, list[int]]:
        found: defaultdict[str, list[int]] = defaultdict(list)
        if name == "class" or self._without:  # elements out of the tree are not found by the XPath below
            for place, value in enumerate(map(_get, self._elements, repeat(name.encode()))):  # lxml encodes a text each time
                if value is not None:
                    found[value].append(place)
        else:
            for place in sorted([self._places[element] for element in _with_attribute(name)(self.root)]):
                found[self._elements[place].get(name)].append(place)
        found.default_factory = None
        return found


@lru_cache(maxsize=512)
def _with_attribute(name: str) -> etree.XPath:
    return etree.XPath(f"descendant-or-self::*/@{name}/..", smart_strings=False)  # in a third of the time of `//*[@name]`
