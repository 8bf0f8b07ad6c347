"""Reading of a thread: its first page of comments, its next ones, and its end, which is reported in its last item. Pure.

A known thread is read from the page that holds its last stored comment. If that comment is not on the page, comments before it
were removed and the pages have moved: the reading goes back, by steps that double, until it meets a known comment, and reads on
from there. Pages that move during the reading are noticed by the site's own count: it fell, so the page before is read again.
More comments than were known and found mean that some stand on earlier pages: then the whole thread is read.

Comments that the pages leave out (behind "load more" links) are read after the thread's own pages, page after page, followed by
comments that these pages leave out in turn.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from forum_reader.reading.page_records import MoreComments, ReadComment, ReadPost
from forums.records.stored import Part, ReadMode
from forums.records.tasks_and_items import now_in_reading


def report(
    site: str, read: Reading, *, reason: str | None = None, gone: bool = False, cut: bool = False, walled: bool = False
) -> dict[str, Any]:
    """Return the report. `reason`: why the reading failed; `gone`: the site does not have the thread; `cut`: a limit ended it;
    `walled`: the rest of the thread is not for guests.
    """
    ended = reason is None and not cut
    claimed, short = listed(read) if ended else (read.replies, 0)
    return {
        "kind": "check",
        "site": site,
        "id": read.own or read.thread,
        "listed_as": read.thread if read.own else None,
        "reply_count": read.replies,
        "last_reply_at": read.last_activity,
        "forum_id": read.forum,
        "started_at": read.started_at,
        "finished_at": now_in_reading(read.started_at),
        "mode": read.mode,
        "first_page": read.first,
        "last_page": read.last_page,
        "requests": read.requests,
        "comments": comments_known(read),
        "total": read.total,
        "whole": ended and is_whole(read),
        "consistent": ended and is_consistent(read),
        "gone": gone,
        "token": read.token,
        "last_comment_id": read.last,
        "cursor": read.last_url,
        "listed": claimed,
        "short": short,
        "reason": reason,
        "asked": read.asked or None,
        "counted_back": read.counted_back,
        "walled": walled,
    }


MOST_REPAIRS = 3
"""How many times one reading goes back a page because the site's count fell; after more removals a check reads the thread."""
MOST_SHORT = 2
"""How many consecutive readings may see fewer comments than the list claims; after that the list's count is accepted."""


class Reading(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Progress of the reading of a thread; part of its requests."""

    started_at: str
    mode: ReadMode = "new"
    thread: str
    forum: str | None = None
    token: str | None = None
    url: str | None = None  # the thread's own, from the list
    opened: bool = False  # the opening post's own page was read
    after: str | None = None  # last stored comment; None: the whole thread is read
    met: bool = False  # a stored comment was on a page of this pass
    partly: bool = False  # a thread with its newest comments first: the reading ended at stored comments
    replies: int | None = None  # comments that the list claims
    expected: int | None = None  # of these, after the last stored one
    short: int = 0  # earlier consecutive readings that saw fewer
    known: int = 0  # comments that were stored, or that the site claimed then
    first: int = 1  # page with which this pass began
    page: int = 1  # asked for
    last_page: int = 1  # the last page with comments
    last_url: str | None = None  # its URL, on sites without numbered page URLs
    last: str | None = None  # last comment
    tail: tuple[str, ...] = ()  # comments of the previous page, as some sites repeat the last one
    head: str = ""  # digest of the comments of the first page, which some sites send for numbers behind the end
    opening: str = ""  # the opening post's id among the comments
    seen: int = 0  # comments of this pass
    fresh: int = 0  # of these, after the last stored one
    total: int | None = None  # the site's claim, on the last page that had one
    steady: bool = True  # the claim never changed and no page came twice
    requests: int = 0
    back: int = 0  # pages of the last step back
    repairs: int = 0
    again: bool = False  # the whole thread is read because comments were missing
    only: Part | None = None  # the one part that is wanted
    own: str | None = None  # its id on its page, if the list has another one
    author: str | None = None  # from the list, as the next two
    created_at: str | None = None
    last_activity: str | None = None
    asked: str = ""  # digest of the site file that made the page's URL
    left_out: tuple[MoreComments, ...] = ()  # all places found where its pages leave comments out
    at_left_out: int = 0  # how many of these are read
    left_out_page: int = 1  # requested page of the next one
    counted_back: bool = False  # positions of its comments are counted from the newest one


class Step(NamedTuple):
    """Result for a page: `go` is "on" to the next page, the number of another page, or None at the end."""

    reading: Reading
    go: Literal["on"] | int | None
    cut: bool = False  # ended by a limit


def follow(
    reading: Reading,
    ids: Sequence[str],
    *,
    total: int | None,
    has_next: bool,
    numbered: bool,
    limit: int,
    url: str | None = None,
    newest_first: bool = False,
    again: bool = False,
) -> Step:
    """Return the step after a page with the comments `ids`. `numbered`: page URLs have numbers, else the reading can go back
    to the beginning only; `limit`: comments after which a reading ends; `url`: the page's, on sites without numbered page URLs;
    `newest_first`: the thread's first page has its newest comments; `again`: the page was read before, so this is the end.
    """
    if newest_first:
        return _follow_back(reading, ids, total=total, has_next=has_next, numbered=numbered, limit=limit, again=again)
    news = [] if again else [one for one in ids if one not in reading.tail]
    repeated = bool(ids) and not news
    fresh = reading.fresh + len(news)
    if reading.after is not None and (reading.after in news or not reading.met):
        place = overlap(news, reading.after)
        if place is None:
            return _back(reading, numbered=numbered)
        fresh = len(news) - place
    fell = reading.total is not None and total is not None and total < reading.total
    read = msgspec.structs.replace(
        reading,
        met=True,
        seen=reading.seen + len(news),
        fresh=fresh,
        total=reading.total if total is None else total,
        steady=reading.steady and (again or not repeated) and (reading.total is None or total is None or total == reading.total),
        tail=reading.tail if again else tuple(ids),
    )
    if news:
        read = msgspec.structs.replace(read, last=news[-1], last_page=reading.page, last_url=url)
    if fell and numbered and reading.page > 1 and reading.repairs < MOST_REPAIRS:
        return Step(msgspec.structs.replace(read, page=reading.page - 1, repairs=reading.repairs + 1), reading.page - 1)
    is_barren = not ids and not reading.tail and reading.page > reading.first  # two in a row: pages after the last one
    if not has_next or repeated or is_barren:
        return _end(read)
    if read.seen >= limit:
        return Step(read, None, cut=True)
    return Step(msgspec.structs.replace(read, page=reading.page + 1), "on")


def _follow_back(
    reading: Reading, ids: Sequence[str], *, total: int | None, has_next: bool, numbered: bool, limit: int, again: bool
) -> Step:
    """Return the step in a thread with its newest comments on the first page; within a page the oldest come first."""
    news = [one for one in ids if one not in reading.tail]
    known = overlap(news, reading.after) if reading.after is not None else None
    fell = reading.total is not None and total is not None and total < reading.total
    is_steady = bool(news or not ids or again) and (reading.total is None or total is None or total == reading.total)
    read = msgspec.structs.replace(
        reading,
        met=known is not None,
        partly=known is not None and has_next,
        seen=reading.seen + len(news),
        fresh=reading.fresh + len(news) - (known or 0),
        total=reading.total if total is None else total,
        steady=reading.steady and is_steady,
        tail=tuple(ids),
        counted_back=reading.counted_back or reading.page > 1 or has_next,
        last=news[-1] if news and reading.page == 1 else reading.last,
        last_page=reading.page if reading.after is None else max(reading.last_page, reading.page),
    )
    if fell and numbered and reading.page > 1 and reading.repairs < MOST_REPAIRS:
        return Step(msgspec.structs.replace(read, page=reading.page - 1, repairs=reading.repairs + 1), reading.page - 1)
    if ids and not news and has_next:  # as many replies since the page before, or a site that sends one page for every number
        return _end(msgspec.structs.replace(read, last=reading.after))  # those below are read next time
    if known is not None or not has_next or not news:
        return _end(read)
    if read.seen >= limit:
        return Step(read, None, cut=True)
    return Step(msgspec.structs.replace(read, page=reading.page + 1), "on")


def counted_back(comments: Sequence[ReadComment], reading: Reading) -> list[ReadComment]:
    """Set positions of comments on a site that shows none: counted back from the newest one, which has 0, until the report of the
    reading has the total. Comments repeated from the previous page keep theirs.
    """
    news = [one.id for one in comments if one.id not in reading.tail]
    places = {one: -reading.seen - at for at, one in enumerate(reversed(news))}
    return [one if one.position is not None else msgspec.structs.replace(one, position=places.get(one.id)) for one in comments]


def missing(reading: Reading, *, numbered: bool, newest_first: bool = False) -> Step:
    """Return the step after a page behind the first that the site does not have."""
    if reading.after is not None and not reading.met and not newest_first:
        return _back(reading, numbered=numbered)
    return _end(msgspec.structs.replace(reading, steady=False))


def with_own_id(reading: Reading, post: ReadPost) -> Reading:
    """Return the reading with the thread's id from its page, if the list has another one. Stored items use the page's id, since a
    list may link to the newest message, whose id changes with each reply.
    """
    if post.id is None or post.id == (reading.own or reading.thread):
        return reading
    return msgspec.structs.replace(reading, own=None if post.id == reading.thread else post.id)


def from_start(reading: Reading) -> Reading:
    """Return the reading restarted at the first page of comments."""
    return _pass(reading, 1).reading


def is_whole(reading: Reading) -> bool:
    """Return True if a finished reading began at the first page."""
    return reading.first == 1 and not reading.partly


def is_consistent(reading: Reading) -> bool:
    """Return True if a reading saw all comments that the site claims."""
    seen = reading.seen if is_whole(reading) else reading.known + reading.fresh
    return reading.steady and (reading.total is None or (seen >= reading.total if is_whole(reading) else seen == reading.total))


def comments_known(reading: Reading) -> int:
    """Return the number of known comments of the thread after a reading."""
    return reading.seen if is_whole(reading) else reading.known + reading.fresh


def listed(reading: Reading) -> tuple[int | None, int]:
    """Return, after a reading, the number of comments seen in the list's way of counting, and the number of consecutive readings
    that saw fewer than the list claimed. A cached page may be older than the list: then the next scan has the thread read again.
    """
    claimed = reading.replies if is_whole(reading) else reading.expected
    if reading.replies is None or claimed is None:
        return reading.replies, 0
    surplus = (reading.seen if is_whole(reading) else reading.fresh) - claimed
    if surplus < 0 and reading.short < MOST_SHORT:
        return max(0, reading.replies + surplus), reading.short + 1
    return reading.replies + max(0, surplus), 0


def overlap(ids: Sequence[str], after: str) -> int | None:
    """Return the number of known comments on a page, when `after` is the last stored one; None if none is known.

    If ids are numbers, with the same letters before them if any, a lower id is an older comment: the last stored one may have
    been removed.
    """
    if after in ids:
        return len(ids) - list(reversed(ids)).index(after)
    mark = _numbered(after)
    if mark is None:
        return None
    known = [place for place, one in enumerate(ids, 1) if (own := _numbered(one)) and own[0] == mark[0] and own[1] < mark[1]]
    return known[-1] if known else None


def is_behind(one: str, after: str | None) -> bool | None:
    """Return True if a comment follows `after` (None: no comment), comparing ids that are numbers with the same letters before
    them; None if the ids have no order.
    """
    own, mark = _numbered(one), _numbered(after) if after is not None else None
    if own is None or (after is not None and (mark is None or mark[0] != own[0])):
        return None
    return mark is None or own[1] > mark[1]


def number_of(one: str) -> int:
    """Return the number that an id ends with; 0 for other ids."""
    found = _numbered(one)
    return found[1] if found else 0


_NUMBERED = re.compile(r"(\D*)(\d{1,20})")


def _numbered(one: str) -> tuple[str, int] | None:
    found = _NUMBERED.fullmatch(one)
    return (found[1], int(found[2])) if found else None


def _back(reading: Reading, *, numbered: bool) -> Step:
    back = max(1, 2 * reading.back)
    page = max(1, reading.page - back) if numbered else 1
    return _pass(reading, page, back=back)


def _end(reading: Reading) -> Step:
    """Return the end of the reading, or a second pass if the site claims comments that were neither known nor found."""
    if not is_whole(reading) and reading.total is not None and reading.total > reading.known + reading.fresh:
        return _pass(reading, 1, again=True)
    return Step(reading, None)


def _pass(reading: Reading, page: int, *, back: int = 0, again: bool = False) -> Step:
    """Restart the reading at `page`."""
    begun = msgspec.structs.replace(
        reading, first=page, page=page, back=back, again=again, seen=0, fresh=0, tail=(), total=None, steady=True,
        met=False, partly=False, after=None if page == 1 else reading.after, left_out=(), at_left_out=0, left_out_page=1,
    )  # fmt: skip
    return Step(begun, page)


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
