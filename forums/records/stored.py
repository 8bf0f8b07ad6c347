"""Items of the item stream: posts, comments, forums, and reports of scans and checks, validated when they are parsed.

The fields are the columns of the tables of the same names, described in `tables.py`. Unknown fields are ignored, so that a newer
spider can feed an older writer, and later fields have defaults, so that an older spider can feed this writer.

A scan's report holds the rows of its first list page, which the next scan compares with its own. In a list in the order of
activity, newer threads push a thread down. A thread that was on the first page and is not any more, although threads that were
active before it are, was removed, or moved to another forum, or lost its last comments. No row shows that, since no remaining
thread changed. New titles, found by the same comparison, are edits of opening posts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import redis
from msgspec import Meta

from forums.state.database_state import forget_fields
from forums.state.keys import ForumCrawlKeys
from redis_components.errors import TrawlError
from redis_components.keys import CrawlKeys

from .tasks_and_items import ReadMode, ScanMode

if TYPE_CHECKING:
    from forum_reader.reading.page_records import ListedThread


TRAIL = 3
"""Rows at the end of a page that must be older: single rows may be out of order, such as a thread that was moved."""
AT_LEAST = 3
"""Rows that may vanish at once from a short page; from a long page half of them. More mean that the list is sorted otherwise."""
MOST_KEPT = 500
"""Rows of a first page that are kept for the next scan; pages of forums have 20 to 300."""
_MOST_CHARACTERS = 1 << 16


class FrontRow(msgspec.Struct, frozen=True, array_like=True):
    """A thread on the first page."""

    id: str
    token: str
    at: datetime | None  # last activity; None if the row's position does not depend on it
    title: str  # digest; empty if the list shows none
    url: str | None = None


def front_of(threads: Sequence[ListedThread], order: str) -> tuple[FrontRow, ...]:
    """Return the rows of a first page to keep, none of an oversized page, since only a complete one can be compared. They are
    part of each request of their scan, and stored in Redis for each forum of a site.
    """
    size = sum(len(one.id) + len(one.token) + len(one.url or "") for one in threads)
    if len(threads) > MOST_KEPT or size > _MOST_CHARACTERS:
        return ()
    return tuple(
        FrontRow(one.id, one.token, None if one.sticky or order != "activity" else one.last_activity, _digest(one), one.url)
        for one in threads
    )


def vanished(before: Sequence[FrontRow], threads: Sequence[ListedThread], *, has_next: bool) -> list[FrontRow]:
    """Return the rows of `before` that should still be among `threads`, the present first page, and are not. Empty if the list
    shows no dates, or dates that change with the time of day ("3 hours ago").
    """
    there = {one.id: one for one in threads}
    dates = [one.last_activity for one in threads if not one.sticky and one.last_activity is not None]
    same = [(row.at, one.last_activity) for row in before if row.at and (one := there.get(row.id)) and one.token == row.token]
    if not threads or (has_next and not dates) or any(was != now for was, now in same):
        return []
    end = max(dates[-TRAIL:]) if has_next else None
    gone = [row for row in before if row.at is not None and row.id not in there and (end is None or row.at > end)]
    return gone if is_believable(len(gone), len(before)) else []


def retitled(before: Sequence[FrontRow], threads: Sequence[ListedThread]) -> list[ListedThread]:
    """Return the threads with another title than in `before`."""
    titles = {row.id: row.title for row in before}
    found = [one for one in threads if titles.get(one.id) and (title := _digest(one)) and title != titles[one.id]]
    return found if is_believable(len(found), len(before)) else []


def is_believable(number: int, rows: int) -> bool:
    """Return True if so many of `rows` rows may vanish at once."""
    return number <= max(AT_LEAST, rows // 2)


def _digest(thread: ListedThread) -> str:
    title = thread.title or ""
    return title and hashlib.blake2b(title.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


# 255 characters are at most 1,020 bytes: two of them fit into PostgreSQL's index rows (2,704 bytes), with any ids.
Name = Annotated[str, Meta(min_length=1, max_length=255)]
Moment = Annotated[datetime, Meta(tz=True)]
BigInt = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]


BACKFILL = "#backfill"
_MEANWHILE = {"backfill": BACKFILL, "back": "#back"}  # the second: of a look back of the version before


class InvalidItem(TrawlError):
    """An item lacks a field or has a wrong one; it is set aside with this reason, and other items are stored."""


class Post(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="post"):
    """A thread's opening post, as it was at `fetched_at`."""

    site: Name
    id: Name
    forum_id: Name | None  # null: not on this page; the stored one stays
    title: str
    body: str
    author: str | None
    created_at: Moment | None
    views: BigInt | None
    reply_count: BigInt | None
    last_reply_at: Moment | None
    url: str
    fetched_at: Moment
    body_html: str | None = None
    sticky: bool = False
    edited_at: Moment | None = None
    deleted: bool = False  # removed on the site, which shows a placeholder: the stored text stays


class Comment(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="comment"):
    """A reply, as it was at `fetched_at`."""

    site: Name
    id: Name
    post_id: Name
    parent_id: Name | None
    author: str | None
    body: str
    created_at: Moment | None
    url: str
    fetched_at: Moment
    body_html: str | None = None
    edited_at: Moment | None = None
    deleted: bool = False  # as for a post
    position: BigInt | None = None


class Forum(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="forum"):
    """A forum, as its site's index listed it at `fetched_at`."""

    site: Name
    id: Name
    name: str
    url: str | None = None
    parent_id: Name | None = None
    threads: BigInt | None = None
    fetched_at: Moment


class Scan(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="scan"):
    """The report of one scan of a forum's list pages."""

    site: Name
    forum_id: Name
    started_at: Moment
    finished_at: Moment
    pages: Count
    threads: Count
    outcome: Literal["complete", "failed", "gap"]
    reason: str | None
    mode: ScanMode = "scan"
    new: Count = 0
    changed: Count = 0
    stopped: Literal["overlap", "end", "limit", "error"] | None = None
    newest_at: Moment | None = None
    oldest_at: Moment | None = None
    front: tuple[FrontRow, ...] = ()  # its first page, for the next scan; not in the database


class Check(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="check"):
    """The report of one reading of a thread, sent after its items.

    If it was whole and consistent, stored comments of the thread that it did not show were removed on the site.
    """

    site: Name
    id: Name  # of the thread
    forum_id: Name | None = None
    started_at: Moment
    finished_at: Moment
    mode: ReadMode
    first_page: Count
    last_page: Count
    requests: Count
    comments: Count
    total: BigInt | None = None
    whole: bool
    consistent: bool
    gone: bool = False
    token: str | None = None
    last_comment_id: Name | None = None
    cursor: str | None = None
    listed: Count | None = None  # comments that were seen, in the list's way of counting
    short: Count = 0  # consecutive readings that saw fewer than the list claimed
    reason: str | None = None
    listed_as: Name | None = None  # the thread's id in the list, if its page has another one; tokens belong to it
    reply_count: BigInt | None = None  # of the thread, from the list that led to the reading
    last_reply_at: Moment | None = None  # from that list, too
    asked: str | None = None  # digest of the site file that made the request (`file_digest`)
    walled: bool = False  # its first pages only are for guests; `reason` has the rest
    counted_back: bool = False  # positions of its comments are counted from the newest one, which has 0, the one before it -1


Item = Post | Comment | Forum | Scan | Check


_decoder: msgspec.json.Decoder[Item] = msgspec.json.Decoder(Item)
_AT_FIELD = re.compile(r"(?P<what>.+) - at `\$\.(?P<field>\w+)`")
_SHOWN = 80  # characters of a wrong value that the reason quotes


def parse(payload: bytes) -> Item:
    """Decode the item in `payload` (JSON). Raises InvalidItem, whose message names the field and the value."""
    try:
        return _decoder.decode(payload)
    # RecursionError: thousands of nested brackets in a field that is skipped.
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidItem(_reason(payload, error)) from error


def task_of_scan(payload: bytes) -> str | None:
    """Return the task id of a scan report, also of an invalid one: its scan has ended, too."""
    raw = _raw(payload)
    site, forum_id = raw.get("site"), raw.get("forum_id")
    if raw.get("kind") != "scan" or not isinstance(site, str) or not isinstance(forum_id, str):
        return None
    return scan_task(site, forum_id, raw.get("mode"))


def scan_task(site: str, forum_id: str, mode: object = "scan") -> str:
    """Return the task id of a pending scan: `<site>/<forum_id>`, with a suffix for modes that run concurrently with scans."""
    return f"{site}/{forum_id}{_MEANWHILE.get(str(mode), '')}"


def _raw(payload: bytes) -> dict[str, Any]:
    try:
        raw = msgspec.json.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    return raw if isinstance(raw, dict) else {}


def _reason(payload: bytes, error: Exception) -> str:
    text = str(error).replace("\n", "\\n")  # it may quote a value; a reason is one line
    if not isinstance(error, msgspec.ValidationError):
        return f"not JSON: {text}"
    found = _AT_FIELD.fullmatch(text)
    if not found:
        return text.replace("`", "")
    field = found["field"]
    value = repr(_raw(payload).get(field))
    if len(value) > _SHOWN:
        value = value[:_SHOWN] + "…"
    if field == "kind":
        return f"kind: {value} is unknown; known are 'post', 'comment', 'forum', 'scan' and 'check'"
    return f"{field}: {found['what'].replace('`', '')}; the value is {value}"


class Marks(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Progress of the complete scans of a forum. Times are activities as the site shows them."""

    scanned_at: datetime
    """Start of the last scan."""
    newest: datetime | None = None
    """A complete scan saw all activity before this time; None: the list shows no times."""
    until: datetime | None = None
    """Lower end of the next scan; older than `newest` if a range is to be read twice."""
    failed_pages: int = 0
    """Pages read by later scans that did not complete."""
    front: tuple[FrontRow, ...] = ()
    """The first page of the last complete scan."""


def marks_after(marks: Marks | None, scan: Scan) -> Marks | None:
    """Return the marks after the report of a scan. Idempotent.

    A scan moves the mark if it reached the last mark or the list's end, or was the first. A deep scan that did not still moves
    it: the gap is on record, and otherwise each later scan would go to the limit, for ever.
    """
    if scan.mode == "recent":
        is_newer = scan.outcome == "complete" and (marks is None or scan.started_at > marks.scanned_at)
        return Marks(scanned_at=scan.started_at, newest=scan.newest_at, front=scan.front) if is_newer else marks
    if scan.mode not in ("scan", "deep") or (marks is not None and scan.started_at <= marks.scanned_at):
        return marks
    joined = scan.outcome == "complete" and (scan.stopped in ("overlap", "end") or marks is None)
    if not joined and not (scan.outcome == "gap" and scan.mode == "deep"):
        return marks and msgspec.structs.replace(marks, scanned_at=scan.started_at, failed_pages=marks.failed_pages + scan.pages)
    until = scan.newest_at
    if joined and scan.pages > 1:
        until = marks.newest if marks and marks.newest else scan.oldest_at
    until = until and scan.newest_at and min(until, scan.newest_at)
    return Marks(scanned_at=scan.started_at, newest=scan.newest_at, until=until, front=scan.front)


def read_marks(client: redis.Redis, keys: CrawlKeys, forums: Sequence[str]) -> list[Marks | None]:
    """Read the marks of forums (`<site>/<forum>`) by the keys of forum_list, in one round trip; None without a complete scan or
    for an unreadable value.
    """
    values: Any = client.hmget(ForumCrawlKeys(keys).marks(), list(forums)) if forums else []
    return [_decoded(value) for value in values]


def keep_marks(client: redis.Redis, keys: CrawlKeys, scans: Sequence[Scan]) -> None:
    """Move the marks by these reports, in their order."""
    names = sorted({f"{scan.site}/{scan.forum_id}" for scan in scans})
    before = dict(zip(names, read_marks(client, keys, names), strict=True))
    marks = dict(before)
    for scan in scans:
        name = f"{scan.site}/{scan.forum_id}"
        marks[name] = marks_after(marks[name], scan)
    changed: dict[Any, Any] = {
        name: msgspec.json.encode(one) for name, one in marks.items() if one is not None and one != before[name]
    }
    if changed:
        client.hset(ForumCrawlKeys(keys).marks(), mapping=changed)


def _decoded(value: bytes | None) -> Marks | None:
    try:
        return _decode(value) if value is not None else None
    except msgspec.MsgspecError:
        return None


_decode = msgspec.json.Decoder(Marks).decode


def forget_marks(client: redis.Redis, keys: CrawlKeys, site: str | None = None) -> None:
    """Delete the marks of a site's forums, without a site of all: the next scans read to their limit."""
    if site is None:
        client.unlink(ForumCrawlKeys(keys).marks())
    else:
        forget_fields(client, ForumCrawlKeys(keys).marks(), f"{site}/")
