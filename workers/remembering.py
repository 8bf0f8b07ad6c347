"""What the writer tells Redis of what it has stored, so that the next scans know it: records of threads, marks of forums."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec
import redis

from redis_components import thread_records
from redis_components.keys import CrawlKeys
from redis_components.thread_records import ThreadRecord

from .scan_plan import Marks, after
from .storage import Check, Item, Scan

logger = logging.getLogger(__name__)

_decode = msgspec.json.Decoder(Marks).decode


def remember(client: redis.Redis, items: Sequence[Item]) -> None:
    """Keep what these stored items say of their threads and forums. The same items again change nothing more.

    What Redis refuses is logged and let go: a record that is missing makes a scan read more and loses nothing.
    """
    try:
        thread_records.keep(client, CrawlKeys.for_spider("forum_detail"), _records(items))
        _keep_marks(client, [item for item in items if isinstance(item, Scan)])
    except redis.ResponseError as error:
        logger.warning("Redis does not keep what is stored of threads and forums, so that scans read more: %s", error)


def read_marks(client: redis.Redis, forum: str) -> Marks | None:
    """The marks of a forum (`<site>/<forum>`); None where there was no complete scan, or where they cannot be read."""
    value: Any = client.hget(CrawlKeys.for_spider("forum_list").marks(), forum)
    return _marks(value)


def _marks(value: bytes | None) -> Marks | None:
    try:
        return _decode(value) if value is not None else None
    except msgspec.MsgspecError:
        return None


def _records(items: Iterable[Item]) -> dict[str, ThreadRecord]:
    """Readings that failed leave what was known before."""
    return {
        f"{item.site}/{item.id}": ThreadRecord(
            token=item.token or "",
            comments=item.comments if item.total is None else item.total,
            last_page=max(1, item.last_page),
            last_comment=item.last_comment_id,
            cursor=item.cursor,
            hour=_hour(item.started_at),
        )
        for item in items
        if isinstance(item, Check) and (item.reason is None or item.gone)
    }


def _hour(moment: datetime) -> int:
    return int(moment.timestamp() // 3600)


def _keep_marks(client: redis.Redis, scans: Sequence[Scan]) -> None:
    if not scans:
        return
    key = CrawlKeys.for_spider("forum_list").marks()
    names = sorted({f"{scan.site}/{scan.forum_id}" for scan in scans})
    values: Any = client.hmget(key, names)
    marks = {name: _marks(value) for name, value in zip(names, values, strict=True)}
    before = dict(marks)
    for scan in scans:
        name = f"{scan.site}/{scan.forum_id}"
        marks[name] = after(marks[name], scan)
    changed: dict[str | bytes, Any] = {name: msgspec.json.encode(one) for name, one in marks.items() if one is not None and one != before[name]}
    if changed:
        client.hset(key, mapping=changed)
