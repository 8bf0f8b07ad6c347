"""Pages that a site sends in place of a requested one: of the thread into which it was merged, or one that was read before."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from forum_reader.reading.found_values import matched_part

from .thread_reading import Reading, is_behind

if TYPE_CHECKING:
    from scrapy.http import Response

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
    return Reading(started_at=reading.started_at, mode="check", thread=other, url=url, asked=reading.asked, changed=True)


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
