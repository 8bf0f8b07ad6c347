"""Use of the stored forms (`stored.py`): start tasks are encoded, items are built by the spiders and parsed by the writer, and
marks of scans are kept in Redis.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import redis
from msgspec.structs import asdict

from forums.state.database_state import forget_fields
from forums.state.keys import ForumCrawlKeys
from redis_components.keys import CrawlKeys

from .stored import ForumTask, InvalidItem, Item, Marks, PostTask, Scan, fields_in, reason_against

if TYPE_CHECKING:
    from forum_reader.reading.page_records import ListedForum, ReadComment, ReadPost
    from forums.sites import Site
    from forums.spiders.thread_reading import Reading


BACKFILL = "#backfill"
_MEANWHILE = {"backfill": BACKFILL, "back": "#back"}  # the second: of a look back of the version before


def thread_id(site: str, thread: str) -> str:
    """Return the name of a thread in Redis: of its record and of its start task."""
    return f"{site}/{thread}"


def is_wide(task: PostTask) -> bool:
    """Return True for a full read; it also covers any other task for the thread."""
    return task.mode != "changed" and task.only is None


def encode(task: ForumTask | PostTask) -> bytes:
    """Encode the start task as JSON."""
    return msgspec.json.encode(task)


_known: dict[str, tuple[Site, str]] = {}  # by name; a reloaded Site is another object


def file_digest(site: Site) -> str:
    """Return 12 hex digits of the file's parts for pages and login; equal for the same content on every node.

    By the digest of the file that made its request, a page missing because of a wrong file is requested again after the fix.
    """
    known = _known.get(site.name)
    if known is None or known[0] is not site:
        pages = site.model_dump(mode="json", include={"base_url", "profile", "pages"})
        secrets = {name: secret.get_secret_value() for name, secret in (*site.headers.items(), *site.cookies.items())}
        content = json.dumps([pages, secrets], sort_keys=True).encode()
        known = _known[site.name] = site, hashlib.blake2b(content, digest_size=6).hexdigest()
    return known[1]


def stamp(moment: datetime) -> str:
    """Format a time for items: ISO 8601, UTC, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


def utc_now() -> str:
    """Return the present time, in a crawler by Redis's clock, which orders the readings of several machines."""
    from redis_components.frontier.stock import shared_clock  # which only crawlers need

    return stamp(datetime.fromtimestamp(shared_clock.time(), UTC))


def now_in_reading(began: str) -> str:
    """Return the present time, at least `began`, the start of the thread's reading, even if the clocks of two crawlers differ: an
    item older than a complete reading that did not show it counts as removed.
    """
    return max(utc_now(), began)


def moment_of(text: str) -> datetime:
    """Parse a time or day in ISO 8601; UTC without a zone. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _item(kind: str, record: msgspec.Struct, **more: Any) -> dict[str, Any]:
    """Return the fields of a record and `more`, with times as text."""
    fields = {name: stamp(value) if isinstance(value, datetime) else value for name, value in asdict(record).items()}
    return {"kind": kind, **fields, **more}


def post_item(read: ReadPost, *, site: str, thread: str, forum: str | None, url: str, fetched_at: str) -> dict[str, Any]:
    """Build the item of an opening post. `forum` is the forum of the list; a forum shown on the page itself takes precedence,
    since lists also show threads of other forums (pinned everywhere, of child forums).
    """
    shown = {"id": thread, "forum_id": read.forum_id or forum, "title": read.title or "", "url": url, "fetched_at": fetched_at}
    item = _item("post", read, site=site, **shown)
    return item | {"last_reply_at": item.pop("last_activity")}


def with_listed(post: ReadPost, reading: Reading) -> ReadPost:
    """Fill fields of a post that its page does not show from the thread's list row."""
    created, last = reading.created_at, reading.last_activity
    return msgspec.structs.replace(
        post,
        author=post.author or reading.author,
        created_at=post.created_at or (moment_of(created) if created else None),
        reply_count=reading.replies if post.reply_count is None else post.reply_count,
        last_activity=post.last_activity or (moment_of(last) if last else None),
    )


def comment_item(read: ReadComment, *, site: str, thread: str, url: str, fetched_at: str) -> dict[str, Any]:
    """Build the item of a comment of `thread`."""
    return _item("comment", read, site=site, post_id=thread, url=url, fetched_at=fetched_at)


def scan_item(*, site: str, forum: str, **figures: Any) -> dict[str, Any]:
    """Build the report of a scan, its last item, with its figures: fields of `Scan`."""
    return {"kind": "scan", "site": site, "forum_id": forum, "finished_at": utc_now(), **figures}


def forum_item(read: ListedForum, *, site: str, fetched_at: str) -> dict[str, Any]:
    """Build the item of a forum that the index lists."""
    item = _item("forum", read, site=site, fetched_at=fetched_at)
    del item["last_activity"]  # it is not stored
    return item


_decoder: msgspec.json.Decoder[Item] = msgspec.json.Decoder(Item)


def parse(payload: bytes) -> Item:
    """Decode the item in `payload` (JSON). Raises InvalidItem, whose message names the field and the value."""
    try:
        return _decoder.decode(payload)
    # RecursionError: thousands of nested brackets in a field that is skipped.
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidItem(reason_against(payload, error)) from error


def task_of_scan(payload: bytes) -> str | None:
    """Return the task id of a scan report, also of an invalid one: its scan has ended, too."""
    raw = fields_in(payload)
    site, forum_id = raw.get("site"), raw.get("forum_id")
    if raw.get("kind") != "scan" or not isinstance(site, str) or not isinstance(forum_id, str):
        return None
    return scan_task(site, forum_id, raw.get("mode"))


def scan_task(site: str, forum_id: str, mode: object = "scan") -> str:
    """Return the task id of a pending scan: `<site>/<forum_id>`, with a suffix for modes that run concurrently with scans."""
    return f"{site}/{forum_id}{_MEANWHILE.get(str(mode), '')}"


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
