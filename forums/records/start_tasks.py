"""The start tasks of the two forum spiders, as JSON."""

from __future__ import annotations

from typing import Literal

import msgspec

ListMode = Literal["scan", "deep", "backfill"]
ScanMode = Literal[ListMode, "index", "recent", "back"]
ReadMode = Literal["new", "changed", "check", "backfill"]

INDEX = "*"
"""Stands for the forum in a task, and in the report, of a scan of the pages that list the forums."""
RECENT = "+"
"""The same for the page of the newest messages."""
NO_FORUMS = (INDEX, RECENT)


NEWEST_FIELDS = ("forum", "token", "url", "replies")
"""Of a `PostTask`: what a whole reading that waits gets from a newer task for the same thread."""


class ForumTask(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Start task of `forum_list`: scan one forum, or with mode "index" the pages that list the site's forums.

    - scan: until it overlaps what the last complete scan saw, at most `limits.pages_per_scan` pages;
    - deep: in the same way, at most `limits.deep_pages`, which closes a gap; where `pages` is given, exactly that many;
    - backfill: down to `since`, for threads that were there before; they go to the lane "later";
    - index: `forum` is INDEX;
    - recent: `forum` is RECENT: the newest messages of the site, down to those that were there the last time;
    - back: `forum` is RECENT: `pages` of the `depth` pages of the newest messages, for what was edited or removed on them.
    """

    site: str
    forum: str
    mode: ScanMode = "scan"
    pages: int | None = None
    """Most list pages; None: what the site's limits say."""
    depth: int | None = None
    """Back: how many pages of the newest messages there are."""
    since: str | None = None
    """Backfill: ISO 8601; threads without activity since then are left out. None: all."""
    traceparent: str | None = None
    """The span of its seed (`workers/process/traces.py`)."""


class PostTask(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Start task of `forum_detail`: read one thread.

    - new, backfill: the whole thread;
    - changed: the comment pages from the one that holds the last stored comment on;
    - check: the whole thread once more, to notice edits and deletions.
    """

    site: str
    post: str
    forum: str | None = None
    mode: ReadMode = "new"
    token: str | None = None
    """The list row's change token, which the thread's record gets when it is stored."""
    url: str | None = None
    """Where the list row led, for sites whose threads have no URL that can be made of the id."""
    page: int = 1
    """Comment page to begin with."""
    after: str | None = None
    """Id of the last stored comment."""
    known: int = 0
    """Comments of the thread that are stored, or that the site told of then."""
    replies: int | None = None
    """Comments that the list claims."""
    expected: int | None = None
    """Of these, how many came since the last stored one."""
    short: int = 0
    """Readings before this one that saw fewer than the list claimed."""
    cursor: str | None = None
    """URL of the page to begin with, where its number does not make it."""
    pages: int = 0
    """Of a check: pages of comments that the thread had, where it need not be read if none of them has changed; 0: it is read."""
    own: str | None = None
    """The thread's id as its own page says, where that is another one than the list's, `post`."""
    author: str | None = None
    """Who opened it, by the list."""
    created_at: str | None = None
    """When it was opened, by the list: ISO 8601."""
    last_activity: str | None = None
    """When something was written in it last, by the list: ISO 8601."""
    traceparent: str | None = None
    """The span of its seed, or of the page that told of it."""


def thread_id(site: str, thread: str) -> str:
    """The name under which Redis knows a thread: of its record and of its start task."""
    return f"{site}/{thread}"


def is_wide(task: PostTask) -> bool:
    """Whether it reads the whole thread, and so what any other task for the thread reads."""
    return task.mode != "changed"


def encode(task: ForumTask | PostTask) -> bytes:
    """The start task as JSON."""
    return msgspec.json.encode(task)
