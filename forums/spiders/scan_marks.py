"""Scan marks of a forum: progress of its complete scans, and the depth of the next one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
import redis

from forums.records.stored import FrontRow
from forums.state.keys import ForumCrawlKeys
from forums.state.thread_records import forget_fields
from redis_components.keys import CrawlKeys

if TYPE_CHECKING:
    from forums.storage import Scan


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


def after(marks: Marks | None, scan: Scan) -> Marks | None:
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
        marks[name] = after(marks[name], scan)
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
