"""Start tasks that the forum spiders take, as JSON, and items that they yield, as `stored.py` reads them."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec.structs import asdict

if TYPE_CHECKING:
    from forum_reader.reading.page_records import ListedForum, ReadComment, ReadPost
    from forums.sites import Site
    from forums.spiders.thread_reading import Reading


ListMode = Literal["scan", "deep", "backfill"]
ScanMode = Literal[ListMode, "index", "recent", "back"]
ReadMode = Literal["new", "changed", "check", "backfill"]
Part = Literal["post", "comments"]

INDEX = "*"
"""Name in place of the forum, in a task and in a report, of a scan of the pages that list the forums."""
RECENT = "+"
"""Name in place of the forum for the page of the newest messages."""
NO_FORUMS = (INDEX, RECENT)


NEWEST_FIELDS = ("forum", "token", "url", "replies")
"""Fields of a `PostTask` that a waiting full reading takes from a newer task for the same thread."""


class ForumTask(msgspec.Struct, omit_defaults=True):
    """Start task of `forum_list`: scan one forum, or with mode "index" the pages that list the site's forums.

    - scan: until it overlaps the last complete scan, at most `limits.pages_per_scan` pages;
    - deep: the same, at most `limits.deep_pages`, which closes a gap; with `pages` exactly that many;
    - backfill: down to `since`, for old threads, which go to the lane "later";
    - index: `forum` is INDEX;
    - recent: `forum` is RECENT: the newest messages of the site, down to the last known ones. A task of the version before may
      have the mode "back" in its place.
    """

    site: str
    forum: str
    mode: ScanMode = "scan"
    pages: int | None = None
    """Maximum number of list pages; None: the site's limits."""
    since: str | None = None
    """Backfill: ISO 8601; threads without activity since then are left out. None: all."""


class PostTask(msgspec.Struct, omit_defaults=True):
    """Start task of `forum_detail`: read one thread.

    - new, backfill: the whole thread;
    - changed: the comment pages from the one that holds the last stored comment on;
    - check: the whole thread once more, to notice edits and deletions.
    """

    site: str
    post: str
    forum: str | None = None
    mode: ReadMode = "new"
    only: Part | None = None
    """The one part that is read again; the thread's record stays as it is."""
    token: str | None = None
    """The list row's change token, which is stored in the thread's record after the reading."""
    url: str | None = None
    """Link of the list row, for sites whose thread URLs cannot be built from the id."""
    page: int = 1
    """Comment page to begin with."""
    after: str | None = None
    """Id of the last stored comment."""
    known: int = 0
    """Comments of the thread that are stored, or that the site claimed then."""
    replies: int | None = None
    """Comments that the list claims."""
    expected: int | None = None
    """Of these, the number since the last stored one."""
    short: int = 0
    """Earlier consecutive readings that saw fewer than the list claimed."""
    cursor: str | None = None
    """URL of the page to begin with, on sites without numbered page URLs."""
    own: str | None = None
    """The thread's id on its own page, if it differs from the list's, `post`."""
    author: str | None = None
    """Author of the opening post, from the list."""
    created_at: str | None = None
    """Time of the opening post, from the list: ISO 8601."""
    last_activity: str | None = None
    """Time of the last post, from the list: ISO 8601."""


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
