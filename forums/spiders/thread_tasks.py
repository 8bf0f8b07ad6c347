"""Start tasks that have threads read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from forums.records.items import stamp
from forums.records.start_tasks import PostTask

from .scan_plan import Change, Listed, PagePlan
from .thread_reading import page_to_begin

if TYPE_CHECKING:
    from datetime import datetime


def task_of(listed: Listed, site: str, forum: str | None, *, is_backfill: bool = False) -> PostTask:
    """Return the start task for a new or changed thread."""
    thread, record, token = listed.thread, listed.record, listed.thread.token or None
    if listed.change is Change.CHANGED and record is not None:
        return PostTask(
            site=site,
            post=thread.id,
            forum=forum,
            mode="changed",
            token=token,
            url=thread.url,
            page=page_to_begin(thread.reply_count, record),
            after=record.last_comment,
            replies=thread.reply_count,
            expected=None if thread.reply_count is None or record.listed is None else thread.reply_count - record.listed,
            short=record.short if record.has_token(thread.token) else 0,
            known=record.comments,
            cursor=record.cursor,
            own=record.own,
            author=thread.author,
            created_at=_stamp(thread.created_at),
            last_activity=_stamp(thread.last_activity),
        )
    return PostTask(
        site=site,
        post=thread.id,
        forum=forum,
        mode="backfill" if is_backfill else "new",
        token=token,
        url=thread.url,
        replies=thread.reply_count,
        author=thread.author,
        created_at=_stamp(thread.created_at),
        last_activity=_stamp(thread.last_activity),
    )


def _stamp(moment: datetime | None) -> str | None:
    return None if moment is None else stamp(moment)


def checks_of(plan: PagePlan, site: str, forum: str) -> Iterator[PostTask]:
    """Yield the start tasks for the threads that a list page's plan has checked."""
    for row in plan.missed:
        yield PostTask(site=site, post=row.id, forum=forum, mode="check", token=row.token, url=row.url)
    for thread in plan.renamed:
        replies = thread.reply_count
        yield PostTask(site=site, post=thread.id, forum=forum, mode="check", token=thread.token, url=thread.url, replies=replies)
