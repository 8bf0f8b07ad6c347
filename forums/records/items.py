"""What was read of a page, as the items that travel to the writer (`forums/records/stored.py`)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from redis_components.frontier.redis_time import shared_clock

if TYPE_CHECKING:
    from forums.sites.reading.read_page import ListedForum, ReadComment, ReadPost
    from forums.spiders.thread_reading import Reading


def stamp(moment: datetime) -> str:
    """A time as items say it: ISO 8601, UTC, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


def utc_now() -> str:
    """The time now, by Redis's clock in a crawler: what several machines have read is put in order by it."""
    return stamp(datetime.fromtimestamp(shared_clock.time(), UTC))


def now_in_reading(began: str) -> str:
    """The time now, and never before the reading of a thread `began`, also where the clocks of two crawlers differ: what is older
    than a whole reading, and was not seen in it, counts as removed.
    """
    return max(utc_now(), began)


def moment_of(text: str) -> datetime:
    """The time or day that `text` says in ISO 8601; UTC where it names no zone. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _stamp(moment: datetime | None) -> str | None:
    return None if moment is None else stamp(moment)


def post_item(read: ReadPost, *, site: str, thread: str, forum: str | None, url: str, fetched_at: str) -> dict[str, Any]:
    """An opening post. `forum` is the one on whose list it stood; what the page itself says goes before it, for lists also show
    threads of other forums (pinned everywhere, of child forums).
    """
    return {
        "kind": "post",
        "site": site,
        "id": thread,
        "forum_id": read.forum_id or forum,
        "title": read.title or "",
        "body": read.body,
        "body_html": read.body_html,
        "author": read.author,
        "created_at": _stamp(read.created_at),
        "edited_at": _stamp(read.edited_at),
        "views": read.views,
        "reply_count": read.reply_count,
        "last_reply_at": _stamp(read.last_activity),
        "sticky": read.sticky,
        "deleted": read.deleted,
        "url": url,
        "fetched_at": fetched_at,
    }


def with_listed(post: ReadPost, reading: Reading) -> ReadPost:
    """A post with what the list said of its thread, where its page does not say it."""
    created, last = reading.created_at, reading.last_activity
    return msgspec.structs.replace(
        post,
        author=post.author or reading.author,
        created_at=post.created_at or (moment_of(created) if created else None),
        reply_count=reading.replies if post.reply_count is None else post.reply_count,
        last_activity=post.last_activity or (moment_of(last) if last else None),
    )


def comment_item(read: ReadComment, *, site: str, thread: str, url: str, fetched_at: str) -> dict[str, Any]:
    """A comment of `thread`."""
    return {
        "kind": "comment",
        "site": site,
        "id": read.id,
        "post_id": thread,
        "parent_id": read.parent_id,
        "body": read.body,
        "body_html": read.body_html,
        "author": read.author,
        "created_at": _stamp(read.created_at),
        "edited_at": _stamp(read.edited_at),
        "deleted": read.deleted,
        "position": read.position,
        "url": url,
        "fetched_at": fetched_at,
    }


def scan_item(
    *,
    site: str,
    forum: str,
    mode: str,
    started_at: str,
    pages: int,
    threads: int,
    outcome: str,
    stopped: str,
    reason: str | None,
    **more: Any,
) -> dict[str, Any]:
    """The report of a scan, its last item. `more`: what it learned of the forum."""
    return {
        "kind": "scan",
        "site": site,
        "forum_id": forum,
        "mode": mode,
        "started_at": started_at,
        "finished_at": utc_now(),
        "pages": pages,
        "threads": threads,
        "outcome": outcome,
        "stopped": stopped,
        "reason": reason,
    } | more


def forum_item(read: ListedForum, *, site: str, fetched_at: str) -> dict[str, Any]:
    """A forum that the index lists."""
    return {
        "kind": "forum",
        "site": site,
        "id": read.id,
        "name": read.name,
        "url": read.url,
        "parent_id": read.parent_id,
        "threads": read.threads,
        "fetched_at": fetched_at,
    }
