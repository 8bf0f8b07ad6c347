"""Text of an article above its comments, whose author and date stand elsewhere: next to it, or only on the list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .element_selectors import NAME, class_selector, field_selectors
from .thread_rows import PostRows

_LEAST_THREADS = 2  # that began before their first row
_LEAST_TEXT = 20  # characters
_HIGHEST = 6  # levels above the first row
_MOST = 0.8  # of the text above the rows
_NO_TEXT = frozenset({"script", "style", "form", "nav", "h1", "h2", "h3", "header"})


@dataclass(slots=True)
class _Above:
    """Elements of one level above the first row of a page, the element behind them with the row in it, and the parent."""

    elements: list[Any]
    texts: list[int]
    parent: Any
    behind: Any


def begin_before(found: Sequence[PostRows], listed: Mapping[str, datetime]) -> bool:
    """Return True if threads began before their first rows. `listed`: the newest dates of the list's rows, by address."""
    known = [
        (listed[one.page.url], first)
        for one in found
        if one.page.url in listed and (first := one.fields.dates.published[one.numbers[0]]) is not None
    ]
    return len(known) >= _LEAST_THREADS and all(begun < first for begun, first in known)


def article_field(found: Sequence[PostRows]) -> Any:
    """Return the field `body` of the opening post; None where no selector finds it on all pages."""
    above = [_above(one) for one in found]
    known = [one for one in above if one is not None]
    if not known or len(known) < len(above):
        return None
    alone = [_alone(one) for one in known]
    if all(one is not None for one in alone):
        pairs = [(one.page.root, element) for one, element in zip(found, alone, strict=True)]
        if selectors := field_selectors(pairs, 1):
            return selectors[0]
    parents = field_selectors([(one.page.root, level.parent) for one, level in zip(found, known, strict=True)], 1)
    behind = {_selector(one.behind) for one in known}
    if not parents or len(behind) != 1 or (name := behind.pop()) is None:
        return None
    return {
        "select": parents[0],
        "without": list(dict.fromkeys([name, f"{name} ~ *", *(cut for one in known for cut in _cut(one))])),
    }


def _above(one: PostRows) -> _Above | None:
    """Return the level above the first row with the most text before the row."""
    tree = one.page.tree
    best: tuple[int, _Above] | None = None
    child = tree.elements.index(one.rows[0])
    for _ in range(_HIGHEST):
        up = tree.parent[child]
        if up <= 0 or tree.tag[child] == "body":
            break
        places = [j for j in _children(tree, up) if j < child]
        texts = [0 if tree.tag[j] in _NO_TEXT else tree.written_in(j) for j in places]
        if sum(texts) >= _LEAST_TEXT and (best is None or sum(texts) > best[0]):
            elements = [tree.elements[j] for j in places]
            best = sum(texts), _Above(elements, texts, tree.elements[up], tree.elements[child])
        child = up
    return best[1] if best else None


def _children(tree: Any, up: int) -> Iterator[int]:
    j = up + 1
    while j < tree.end[up]:
        yield j
        j = tree.end[j]


def _alone(level: _Above) -> Any:
    """Return the single element with nearly all of the text, if it has a class or an id."""
    most = max(range(len(level.texts)), key=level.texts.__getitem__)
    element = level.elements[most]
    return element if level.texts[most] >= _MOST * sum(level.texts) and _selector(element) else None


def _selector(element: Any) -> str | None:
    id_ = element.get("id") or ""
    return f"#{id_}" if NAME.fullmatch(id_) else class_selector(element)


def _cut(level: _Above) -> Iterator[str]:
    """Yield selectors of elements around the paragraphs: elements with a class, headings, links only to the comments."""
    for element, text in zip(level.elements, level.texts, strict=True):
        if (name := _selector(element)) is not None:
            yield name
        elif element.tag in _NO_TEXT:
            yield element.tag
        elif (
            text < _LEAST_TEXT
            and (links := list(element.iter("a")))
            and all(link.get("href", "").startswith("#") for link in links)
        ):
            yield f'{element.tag}:has(> a[href^="#"])'
