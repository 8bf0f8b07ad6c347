"""Pages that a site sends in place of a requested one: of the thread into which it was merged, or one that was read before; and
comments that the pages of a thread leave out: the places that lead to them, and the order in which these are read. Pure.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from forum_reader.reading.found_values import matched_part

from .thread_reading import Reading, Step, is_behind

if TYPE_CHECKING:
    from scrapy.http import Response

    from forum_reader.reading.read_page import MoreComments, ReadComment
    from forums.sites import Site


def merged_into(site: Site, response: Response, thread: str) -> str | None:
    """Return the id of the other thread whose page was sent in place of `thread`, by the address to which the site redirected;
    None where there is no redirect, or to an address of the same thread or of something else.
    """
    assert response.request is not None
    asked = (response.request.meta.get("redirect_urls") or [response.request.url])[0]
    if asked == response.url:
        return None
    id_ = site.pages.list.fields.id
    if id_.regex and not id_.prefix and matched_part(id_.regex, asked, id_.join) == thread:
        other = matched_part(id_.regex, response.url, id_.join)
    else:
        other = _in_its_place(asked, response.url, thread)
    return other if other != thread else None


def _in_its_place(asked: str, sent: str, thread: str) -> str | None:
    """Return what the address that was sent has where the requested one has the thread's id."""
    for own in dict.fromkeys((thread, quote(thread, safe=""))):
        before, found, _ = asked.rpartition(own)
        if found and sent.startswith(before) and before[-1:] in "/=-":
            part = re.match(r"\d+(?=\D|$)" if thread.isdecimal() else r"[^/?&#]+", sent[len(before) :])
            return part[0] if part else None
    return None


def merged(reading: Reading, other: str, url: str) -> Reading:
    """Return the reading of the thread into which the one of `reading` was merged; its page is there already."""
    return Reading(started_at=reading.started_at, mode="check", thread=other, url=url, asked=reading.asked)


def digest_of(ids: Sequence[str]) -> str:
    """Return a digest of the ids of a page's comments."""
    return hashlib.blake2b("\n".join(ids).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def was_read_before(reading: Reading, ids: Sequence[str]) -> bool:
    """Return True if a page is the one before, the thread's first one, or one from before the last stored comment: some sites
    send such a page for each number behind the end.
    """
    if not ids or reading.page <= reading.first:
        return False
    if tuple(ids) == reading.tail or (reading.head and digest_of(ids) == reading.head):
        return True
    if reading.first == 1 or reading.repairs or not reading.tail:
        return False
    return all(is_behind(own, one) is False for one in reading.tail for own in ids)


def with_head(reading: Reading, ids: Sequence[str], opening: str | None) -> Reading:
    """Return the reading with what its first page shows: the opening post's id among the comments, and a digest of all ids."""
    if reading.page > 1 or (not ids and opening is None):
        return reading
    return msgspec.structs.replace(reading, opening=opening or reading.opening, head=digest_of(ids))


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
