"""Items that the forum spiders yield, as `stored.py` reads them, and the times in them."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import asdict

from forums.sites import Site
from redis_components.frontier.stock import shared_clock

if TYPE_CHECKING:
    from forum_reader.reading.read_page import ListedForum, ReadComment, ReadPost
    from forums.spiders.thread_reading import Reading


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
