"""Elements within elements: which row is in which, reading a row without the rows in it, cutting parts out. In time that grows
with the page, however its elements nest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from lxml import etree

from forums.sites.definition.xml_text import xml_text

_PLACE = "trawl: a row"
PLACEHOLDER = f"<!--{_PLACE}-->"
"""In the HTML of a row that is read without the rows in it, where one was."""


def parents_of(rows: Sequence[Any]) -> dict[Any, Any]:
    """For each of these elements the innermost other one around it, or None. No element of the page is looked at twice."""
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
    """Without those that are within another one: their text is in its text."""
    elements = [one for one in found if isinstance(one, etree._Element)]
    if len(elements) < 2:
        return found
    parents = parents_of(elements)
    return [one for one in found if not isinstance(one, etree._Element) or parents[one] is None]


def inner_rows(rows: Sequence[Any]) -> dict[Any, list[Any]]:
    """The rows within each row that has some, without those that are further within."""
    if len(rows) < 2:
        return {}
    inner: dict[Any, list[Any]] = {}
    for row, parent in parents_of(rows).items():
        if parent is not None:
            inner.setdefault(parent, []).append(row)
    return inner


@contextmanager
def left_out(row: Any, inner: Mapping[Any, list[Any]]) -> Iterator[Any]:
    """`row` without the rows within it, which are in their places again afterwards. What is around the row stays."""
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
    """Take these (in document order) out of `root`; the text behind each stays."""
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
