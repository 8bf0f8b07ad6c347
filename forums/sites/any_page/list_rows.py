"""Rows of a list of threads, which have an author and a date each as posts have: the longest text of most is a link."""

from __future__ import annotations

import re
from collections.abc import Set

from .learned import Learned
from .page_tree import PageTree
from .text_field import Body

_LEAST_ROWS = 5
_TITLES = 0.4  # of the blocks: some lists have two for each thread
_WRITTEN = 0.2
_SHORTEST_TITLE = 3  # characters
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+$", re.IGNORECASE)  # a post may be no more than a link


def are_rows(learned: Learned, tree: PageTree) -> bool:
    """Whether what was learned are rows of a list rather than posts."""
    bodies = learned.fields.bodies
    if len(bodies) < _LEAST_ROWS:
        return False
    dates = learned.fields.paths.marks.dates
    sizes = [_linked_and_written(tree, body, dates.keys()) for body in bodies]
    titles = sum(linked >= max(_SHORTEST_TITLE, written) for linked, written in sizes)
    posts = sum(written > linked for linked, written in sizes)
    return titles >= _TITLES * len(bodies) and posts <= _WRITTEN * len(bodies)


def _linked_and_written(tree: PageTree, body: Body, dates: Set[int]) -> tuple[int, int]:
    """How long the longest text in a link is, and the longest other one, dates apart."""
    linked = written = 0
    for k in range(*body.texts):
        text = tree.texts[k].strip()
        if any(start <= k < end for start, end in body.without) or _ADDRESS.match(text):
            continue
        if tree.link_chars[k + 1] > tree.link_chars[k]:
            linked = max(linked, len(text))
        elif tree.owner[k] not in dates:
            written = max(written, len(text))
    return linked, written
