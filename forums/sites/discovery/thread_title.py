"""Place of the title on the pages of threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


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
