"""Element of a name alone, where the author's element also holds a rank: `<td><b>ida</b><br>Member</td>`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_LEAST_NAMES = 3
_MOSTLY = 0.8


def of_name_alone(elements: Sequence[Any]) -> list[Any]:
    """Return the part of each author's element (None where a post has none) that is the name: its first child, where the rest
    differs no more than the names do; else the elements unchanged.
    """
    parts = [_part(one) if one is not None else None for one in elements]
    found = [part for part in parts if part is not None]
    names, others = {_text(name) for name, _ in found}, {other for _, other in found}
    known = sum(one is not None for one in elements)
    if len(found) < _MOSTLY * known or len(names) < _LEAST_NAMES or len(others) > len(names):
        return list(elements)
    return [part[0] if part is not None else one for part, one in zip(parts, elements, strict=True)]


def _part(element: Any) -> tuple[Any, str] | None:
    """Return the first child and the text after it; None where the element begins with text, or has nothing after the child."""
    first = next((one for one in element.iterchildren() if isinstance(one.tag, str) and _text(one)), None)
    if first is None or (element.text or "").strip():
        return None
    name, whole = _text(first), _text(element)
    other = whole[len(name) :].strip() if whole.startswith(name) else ""
    return (first, other) if other else None


def _text(element: Any) -> str:
    return " ".join("".join(map(str, element.itertext())).split())
