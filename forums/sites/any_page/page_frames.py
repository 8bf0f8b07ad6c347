"""Menus, sidebars, the head and the foot of a page: the frame around its content."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .page_tree import PageTree

_MOST_OF_PAGE = 0.5  # of the text outside of links, that a menu or a sidebar has
_FRAME_TAGS = frozenset({"nav", "footer", "aside"})
_FRAME = re.compile(
    r"(?:^|[\s_-])(?:nav(?:bar|igation)?|menu|foot(?:er)?|side-?bar|breadcrumbs?|widget)(?:$|[\s_-])", re.IGNORECASE
)


def is_framed(tree: PageTree, i: int) -> bool:
    """Return True if an element stands in a menu, a sidebar, the head or the foot of the page."""
    most = _MOST_OF_PAGE * (tree.chars[-1] - tree.link_chars[-1])
    while i > 0:
        if tree.tag[i] in _FRAME_TAGS:
            return True
        if tree.written_in(i) <= most:
            attributes = tree.attributes[i]
            names = f"{attributes.get('class', '')} {attributes.get('id', '')} {attributes.get('role', '')}" if attributes else ""
            if tree.tag[i] == "header" or (names and _FRAME.search(names)):
                return True
        i = tree.parent[i]
    return False


def around(tree: PageTree, members: Sequence[int]) -> int:
    """Return the innermost element that holds all members."""
    i = tree.parent[members[0]]
    while i > 0 and tree.end[i] <= members[-1]:
        i = tree.parent[i]
    return i
