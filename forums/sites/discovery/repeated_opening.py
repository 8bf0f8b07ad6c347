"""Threads whose pages all begin with the opening post."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from forums.sites.definition.selectors import compiled

from .opened_page import OpenedPage
from .post_rows import PostRows


def begins_each_page(found: Sequence[PostRows], following: Mapping[str, OpenedPage], rows: str) -> bool:
    """Return True if second pages (`following`, by the address of the first) begin with the same row as the first pages."""
    pairs = [(one.page.root, page.root) for one in found if (page := following.get(one.page.url)) is not None]
    firsts = [(_first(rows, first), _first(rows, later)) for first, later in pairs]
    return bool(firsts) and all(first and first == later for first, later in firsts)


def _first(rows: str, root: Any) -> list[str]:
    """Return the words of the first row."""
    found = compiled("html", rows)(root)
    return "".join(found[0].itertext()).split() if found else []
