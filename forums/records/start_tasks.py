"""Start tasks of the two forum spiders, as JSON."""

from __future__ import annotations

from typing import Literal

import msgspec

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
