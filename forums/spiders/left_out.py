"""Comments that the pages of a thread leave out: the places that lead to them, and the order in which these are read. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from .thread_reading import Reading, Step

if TYPE_CHECKING:
    from forum_reader.reading.read_page import MoreComments, ReadComment

MOST_LEFT_OUT = 1000
"""Limit of places in one thread with comments left out; the report of a thread with more is marked as cut."""


def with_left_out(reading: Reading, found: Iterable[MoreComments]) -> Reading:
    """Return the reading with the places of a page added, each once."""
    left_out = tuple(dict.fromkeys((*reading.left_out, *found)))
    return reading if left_out == reading.left_out else msgspec.structs.replace(reading, left_out=left_out)


def next_left_out(reading: Reading) -> MoreComments | None:
    """Return the next place to request; None at the end."""
    return reading.left_out[reading.at_left_out] if reading.at_left_out < len(reading.left_out) else None


def follow_left_out(
    reading: Reading, comments: Sequence[ReadComment], found: Iterable[MoreComments], *, has_next: bool, limit: int
) -> Step:
    """Return the step after a page of left-out comments: "on" to its next page or to the next place; None at the end."""
    ids = tuple(comment.id for comment in comments)
    news = [one for one in ids if one not in reading.tail]
    read = with_left_out(msgspec.structs.replace(reading, seen=reading.seen + len(news), tail=ids), found)
    if has_next and news:
        return _within(msgspec.structs.replace(read, left_out_page=read.left_out_page + 1), limit)
    return after_left_out(read, limit)


def after_left_out(reading: Reading, limit: int, *, missing: bool = False) -> Step:
    """Return the step to the next place. `missing`: the site does not have the requested page."""
    at = reading.at_left_out + 1
    read = msgspec.structs.replace(reading, at_left_out=at, left_out_page=1, tail=(), steady=reading.steady and not missing)
    return _within(read, limit) if next_left_out(read) is not None else Step(read, None)


def placed(comments: Sequence[ReadComment], reading: Reading) -> list[ReadComment]:
    """Assign positions to comments that continue the thread's pages; positions of nested answers are unknown."""
    left_out = next_left_out(reading)
    if left_out is None or left_out.comment:
        return list(comments)
    return [
        msgspec.structs.replace(comment, position=comment.position or reading.seen + at) for at, comment in enumerate(comments, 1)
    ]


def _within(reading: Reading, limit: int) -> Step:
    is_cut = reading.seen >= limit or reading.at_left_out >= MOST_LEFT_OUT
    return Step(reading, None, cut=True) if is_cut else Step(reading, "on")
