"""Report of a reading of a thread, its last item: the writer stores it and derives removals from it."""

from __future__ import annotations

from typing import Any

from forums.records.items import now_in_reading

from .thread_reading import Reading, ThreadWas, comments_known, is_consistent, is_whole, listed


def unchanged_report(site: str, read: Reading, was: ThreadWas) -> dict[str, Any]:
    """Return the report of a check without changed pages: the stored state is confirmed."""
    return report(site, read) | {
        "last_page": was.pages,
        "comments": was.comments,
        "whole": False,  # nothing was seen, so nothing was missed
        "consistent": False,
        "last_comment_id": was.last,
        "cursor": was.cursor,
        "listed": None,
        "short": 0,
    }


def report(site: str, read: Reading, *, reason: str | None = None, gone: bool = False, cut: bool = False) -> dict[str, Any]:
    """Return the report. `reason`: why the reading failed; `gone`: the site does not have the thread; `cut`: a limit ended it."""
    ended = reason is None and not cut
    claimed, short = listed(read) if ended else (read.replies, 0)
    return {
        "kind": "check",
        "site": site,
        "id": read.own or read.thread,
        "listed_as": read.thread if read.own else None,
        "reply_count": read.replies,
        "last_reply_at": read.last_activity,
        "forum_id": read.forum,
        "started_at": read.started_at,
        "finished_at": now_in_reading(read.started_at),
        "mode": read.mode,
        "first_page": read.first,
        "last_page": read.last_page,
        "requests": read.requests,
        "comments": comments_known(read),
        "total": read.total,
        "whole": ended and is_whole(read),
        "consistent": ended and is_consistent(read),
        "gone": gone,
        "token": read.token,
        "last_comment_id": read.last,
        "cursor": read.last_url,
        "listed": claimed,
        "short": short,
        "reason": reason,
        "asked": read.asked or None,
        "counted_back": read.counted_back,
    }
