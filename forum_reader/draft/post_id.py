"""Field of a post's id: an attribute of its row, or of an element in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from forum_reader.definition.selectors import compiled
from forum_reader.fields.id_field import OPENING_HAS_NONE, is_code
from forum_reader.fields.post_marks import DATE_DATA, suggests_date

from .element_selectors import attribute_of, field_selectors
from .thread_rows import PostRows

_ID_NAMES = (
    "id",
    "name",
    "data-id",
    "data-post-id",
    "data-postid",
    "data-message-id",
    "data-comment-id",
    "data-content",
    "href",
    "value",
)
_ID = re.compile(r"(?<![0-9A-Za-z_~.@=-])[_~.@=-]*+([0-9A-Za-z][0-9A-Za-z_~.@=-]*+)/?$")
_NUMBER_AT_END = re.compile(r"(?<!\d)(\d+)/?$")
_LONGEST_ID = 200
_LEAST_IDS = 2


def id_field(found: Sequence[PostRows]) -> dict[str, Any] | None:
    """Return the field whose attribute is in each row, and different in all rows of all pages. An opening post needs no id."""
    best: tuple[float, dict[str, Any]] | None = None
    for selector, name in _id_places(found):
        for pattern, bonus in ((_NUMBER_AT_END, 0.5), (_ID, 0.0)):
            opening, values = _values(found, selector, name, pattern)
            without = None in opening
            values = values if without else [*opening, *values]
            if len(values) < _LEAST_IDS or None in values or len(set(values)) < len(values):
                continue
            score = bonus - OPENING_HAS_NONE * without + _id_score(selector, name, [value for value in values if value], found)
            if best is None or score > best[0]:
                best = (score, {"select": attribute_of(selector, name), "regex": pattern.pattern})
    return best[1] if best else None


def _values(
    found: Sequence[PostRows], selector: str, name: str, pattern: re.Pattern[str]
) -> tuple[list[str | None], list[str | None]]:
    """Return the values of the opening posts that are rows, and of all other rows."""
    opening: list[str | None] = []
    others: list[str | None] = []
    is_first = all(one.lead is None for one in found)
    for one in found:
        for number, row in zip(one.numbers, one.rows, strict=True):
            (opening if is_first and number == 0 else others).append(_value(row, selector, name, pattern))
    return opening, others


def _id_places(found: Sequence[PostRows]) -> list[tuple[str, str]]:
    """Return places of ids: attributes of a row, and of the elements in it."""
    rows, longest = found[0].rows, max((one.rows for one in found), key=len)
    places: dict[tuple[str, str], None] = {}
    for name in {**rows[0].attrib, **longest[-1].attrib}:
        is_data = name.startswith("data-") and name not in DATE_DATA and not suggests_date(name)
        if is_data or name in _ID_NAMES or name.endswith("id"):
            places.setdefault((".", name))
    inner: dict[tuple[str, str], list[tuple[Any, Any]]] = {}
    for row in (rows[0], longest[-1]):
        for element in list(row.iterdescendants())[:200]:
            if isinstance(element.tag, str):
                for name, value in element.attrib.items():
                    if (name in _ID_NAMES or name.endswith("id")) and len(value) < 300 and _ID.search(value):
                        inner.setdefault((element.tag, name), []).append((row, element))
    for (_, name), pairs in inner.items():
        for selector in {one for pair in pairs[:12] for one in field_selectors([pair], 1)}:
            places.setdefault((selector, name))
    return list(places)[:120]


def _value(row: Any, selector: str, name: str, pattern: re.Pattern[str]) -> str | None:
    elements = compiled("html", selector)(row)
    value = elements[0].get(name) if elements and not isinstance(elements[0], str) else None
    if value is None or (pattern is _NUMBER_AT_END and is_code(value)):
        return None
    match = pattern.search(value.strip())
    return match[1] if match and len(match[1]) <= _LONGEST_ID else None


def _id_score(selector: str, name: str, values: list[str], found: Sequence[PostRows]) -> float:
    score = 2.0 * (selector == "." and name == "id") + 1.0 * (name != "href") + 0.5 * (name.startswith("data-"))
    text = f"{selector} {name}".lower()
    score -= 2.0 * bool(re.search(r"user|author|avatar|member|profile|sig|quote|like|vote", text))
    seen = {post.id for one in found for post in one.page.posts if post.id}
    score += 1.5 * (len(seen & set(values)) >= 0.8 * len(values))
    numbers = [int(value) for value in values if value.isdigit()]
    if (
        len(numbers) == len(values)
        and sorted(numbers) == list(range(min(numbers), min(numbers) + len(numbers)))
        and min(numbers) < 3
    ):
        score -= 3.0  # places in a thread: another thread has them, too
    return score
