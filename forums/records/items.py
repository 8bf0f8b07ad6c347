"""Digest of the site file that made a request: a page missing because of a wrong file is requested again after the fix."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from forums.sites import Site
from redis_components.frontier.redis_time import shared_clock

if TYPE_CHECKING:
    from forum_reader.reading.read_page import ListedForum, ReadComment, ReadPost
    from forums.spiders.thread_reading import Reading


_known: dict[str, tuple[Site, str]] = {}  # by name; a reloaded Site is another object


def file_digest(site: Site) -> str:
    """Return 12 hex digits of the file's parts for pages and login; equal for the same content on every node."""
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


def _stamp(moment: datetime | None) -> str | None:
    return None if moment is None else stamp(moment)


def post_item(read: ReadPost, *, site: str, thread: str, forum: str | None, url: str, fetched_at: str) -> dict[str, Any]:
    """Build the item of an opening post. `forum` is the forum of the list; a forum shown on the page itself takes precedence,
    since lists also show threads of other forums (pinned everywhere, of child forums).
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
    """Build the report of a scan, its last item. `more`: further figures of the scan."""
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
    """Build the item of a forum that the index lists."""
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
