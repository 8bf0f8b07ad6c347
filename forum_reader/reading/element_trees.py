"""Elements within elements: which row is in which, reading a row without the rows in it, cutting parts out. The time is linear
in the page's size, however its elements nest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from lxml import etree

from forum_reader.definition.selectors import xml_text

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
