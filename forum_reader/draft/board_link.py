"""Link from a thread's page to its board, which shows when a thread was moved to another board."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

from forum_reader.definition.selectors import compiled

from .element_selectors import NAME
from .link_groups import AddressShape, target_of
from .page_sample import OpenedPage

_LEAST = 2  # boards of which threads were seen
_ABOVE = 3  # levels above the link


def board_field(pages: Sequence[tuple[OpenedPage, str]], shape: AddressShape) -> dict[str, str] | None:
    """Return the field `forum_id` of pages of threads, each with the address of its board; None where no place has it on all
    pages, or only one board is known.
    """
    if len({board for _, board in pages}) < _LEAST:
        return None
    first, board = pages[0]
    links = [one for one in first.root.iter("a") if _target(first, one) == board]
    for candidate in dict.fromkeys(selector for link in links for selector in _selectors(link)):
        found = [(page, wanted, compiled("html", candidate)(page.root)) for page, wanted in pages]
        if all(some and _target(page, some[0]) == wanted and _has_id(shape, some[0], wanted) for page, wanted, some in found):
            return {"select": f"{candidate}/@href", "regex": shape.pattern}
    return None


def _target(page: OpenedPage, link: Any) -> str | None:
    return target_of(page.base, link.get("href") or "")


def _has_id(shape: AddressShape, link: Any, board: str) -> bool:
    """Return True if the board's id is in the link as written, which may be only `../`."""
    known, written = (re.search(shape.pattern, unquote(one)) for one in (board, link.get("href") or ""))
    return known is not None and written is not None and known[1] == written[1]


def _selectors(link: Any) -> Iterator[str]:
    """Yield XPaths by the names of the link and of its ancestors: the last link there, as in a trail from the index, then
    others.
    """
    level = link
    for _ in range(_ABOVE + 1):
        if level is None or level.tag in ("body", "html"):
            return
        inner = "" if level is link else "//a[@href]"
        names = [f"contains(concat(' ', normalize-space(@class), ' '), ' {name} ')" for name in _names(level.get("class"))]
        names += [f"@id='{name}'" for name in _names(level.get("id"))]
        for name in names:
            yield from (f"(//{level.tag}[{name}]{inner})[{place}]" for place in ("last()", "last() - 1", "1"))
        level = level.getparent()


def _names(text: str | None) -> list[str]:
    return [name for name in (text or "").split() if NAME.match(name) and not re.search(r"\d{2}", name)]
