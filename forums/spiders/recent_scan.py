"""Looks at the newest messages of a site: part of `forum_list`, at one request for all forums."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from scrapy import Request

from forum_reader.reading.page_records import ReadComment, RecentMessage, RecentPage
from forums.records.stored import RECENT, PostTask
from forums.records.tasks_and_items import comment_item, file_digest, scan_item, stamp, utc_now
from forums.sites import Site, UnreadablePage, site_in_use
from forums.state.database_state import ThreadRecord
from forums.state.forum_states import ForumStates
from redis_components.scrapy_glue.conditional import is_unchanged
from redis_components.scrapy_glue.page_tracker import reason_of

from .base import ListSpider, page_request, read_page
from .recent_messages import RecentPlan, RecentState, RecentSummary, plan_recent
from .scan_plan import task_of

if TYPE_CHECKING:
    from scrapy.http import Response
    from twisted.python.failure import Failure


PRIORITY = 12
"""Above list pages: one such page may save many of them."""
FORUMS_S = 60.0
"""Cache time of the watched forums in a process."""


class RecentSpider(ListSpider):
    """A spider that also looks at the newest messages of a site (`[pages.recent]`)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._of_site: dict[str, tuple[float, frozenset[str] | None]] = {}

    def recent_page(self, site: Site, url: str, state: RecentState, *, reload: bool = False) -> Request:
        """Return the request for a page of the newest messages; the first may be answered by "not modified"."""
        return page_request(
            site,
            "recent",
            url,
            self.parse_recent,
            self.recent_failed,
            forum=RECENT,
            number=state.pages + 1,
            priority=PRIORITY,
            conditional=None if state.pages else not reload,
            recent=msgspec.to_builtins(state),
        )

    async def parse_recent(self, response: Response, recent: dict[str, Any]) -> AsyncIterator[Any]:
        """Store replies directly, feed threads to be read, and go on or end with a report."""
        state, site = msgspec.convert(recent, RecentState), site_in_use(response.meta["site"])
        if not state.pages:
            (marks,) = await self.marks_of(site.name, RECENT)
            state = msgspec.structs.replace(state, marks=marks)
        if is_unchanged(response) and state.marks is not None:
            yield _report(site.name, _as_before(state), "overlap", None)
            return
        if response.status == 304:
            yield self.recent_page(site, site.url("recent"), state, reload=True)
            return
        try:
            page: RecentPage = await read_page(self, response)
        except UnreadablePage as error:
            yield self._recent_failed(site.name, state, str(error))
            return
        plan = plan_recent(
            state,
            page.messages,
            await self.stored_threads(site.name, list(dict.fromkeys(one.thread for one in page.messages))),
            has_next=page.next is not None,
            watched=await self._watched(site),
            file=file_digest(site),
        )
        for message, listed in plan.fetch:
            self.feed_thread(task_of(listed, site.name, message.forum_id), because=f"{RECENT}{message.mark} {message.digest}")
        for item in self._follow(plan, site, response):
            yield item
        if plan.stopped is None and page.next is not None:
            yield self.recent_page(site, page.next, plan.state)
        else:
            yield _report(site.name, plan.state, plan.stopped or "end", None)

    def _follow(self, plan: RecentPlan, site: Site, response: Response) -> Iterator[dict[str, Any]]:
        for thread in plan.checked if _can_be_addressed(site) else ():
            task = PostTask(site=site.name, post=thread, mode="check")
            self.feed_thread(task, because=f"{RECENT}{stamp(plan.state.started_at)}")
        fetched_at = str(response.meta.get("fetched_at") or utc_now())
        for message, record in plan.edited:
            if (item := comment_of(message, record, site.name, response.url, fetched_at)) is not None:
                yield item
            else:
                task = PostTask(site=site.name, post=message.thread, forum=message.forum_id, mode="check", url=message.url)
                self.feed_thread(task, because=f"{RECENT}{message.mark} {message.digest}")
        for direct in plan.direct:
            yield from _direct_items(direct, site.name, response.url, fetched_at, plan.state)

    async def _watched(self, site: Site) -> frozenset[str] | None:
        """Return the forums whose new threads are read; None for all."""
        rules = site.discover
        if rules is None:
            return frozenset(site.forums)
        if "*" in rules.include and not rules.exclude:
            return None
        known = self._of_site.get(site.name)
        if known is None or time.monotonic() - known[0] > FORUMS_S:
            found = await self.in_thread(lambda: ForumStates(self.server).all(site.name))
            names = {name.partition("/")[2]: state.name for name, state in found.items()}
            kept = [forum for forum, name in names.items() if rules.lets_in(forum, name)]
            known = self._of_site[site.name] = (time.monotonic(), frozenset([*kept, *site.forums]))
        return known[1]

    def recent_failed(self, failure: Failure) -> Iterator[Any]:
        """Report the failure; the next look begins at the first page."""
        request: Request = failure.request  # type: ignore[attr-defined]  # the engine puts it there
        yield self._recent_failed(
            request.meta["site"], msgspec.convert(request.cb_kwargs["recent"], RecentState), reason_of(failure)
        )

    def _recent_failed(self, site: str, state: RecentState, reason: str) -> dict[str, Any]:
        self.logger.info(
            "the newest messages of %s cannot be read, its lists are looked at as if there were none: %s", site, reason
        )
        return _report(site, state, "error", reason)


def _can_be_addressed(site: Site) -> bool:
    """Return True if the id alone makes a thread's address."""
    pages = (site.pages.thread, site.pages.comments)
    return not any(page.names & {"url", "forum"} for page in pages if page is not None)


def _as_before(state: RecentState) -> RecentState:
    """Return the state of a look at an unchanged page."""
    assert state.marks is not None
    return msgspec.structs.replace(state, pages=1, newest_at=state.marks.newest, front=state.marks.front)


def comment_of(message: RecentMessage, record: ThreadRecord, site: str, url: str, fetched_at: str) -> dict[str, Any] | None:
    """Return the comment of a message; None if its thread has to be read for it."""
    if message.id is None or message.opening or message.has_unknown_parent or (message.body is None and not message.deleted):
        return None
    names = ("id", "parent_id", "body_html", "author", "created_at", "edited_at", "deleted")
    read = ReadComment(body=message.body or "", **{name: getattr(message, name) for name in names})
    return comment_item(read, site=site, thread=record.own or message.thread, url=url, fetched_at=fetched_at)


def _direct_items(direct: RecentSummary, site: str, url: str, fetched_at: str, state: RecentState) -> Iterator[dict[str, Any]]:
    """Yield the replies of a thread, and a report that makes its record count them, as if its last page had been read."""
    record, last = direct.record, direct.messages[-1]
    for message in direct.messages:
        if (item := comment_of(message, record, site, url, fetched_at)) is not None:
            yield item
    number = len(direct.messages)
    yield {
        "kind": "check",
        "site": site,
        "id": record.own or direct.thread,
        "listed_as": direct.thread if record.own else None,
        "reply_count": None if record.listed is None else record.listed + number,
        "last_reply_at": None if last.created_at is None else stamp(last.created_at),
        "forum_id": last.forum_id,
        "started_at": stamp(state.started_at),
        "finished_at": max(fetched_at, stamp(state.started_at)),
        "mode": "changed",
        "first_page": record.last_page,
        "last_page": record.last_page,
        "requests": 0,
        "comments": record.comments + number,
        "whole": False,
        "consistent": False,
        "last_comment_id": last.id,
        "cursor": record.cursor,
    }


def _report(site: str, state: RecentState, stopped: str, reason: str | None) -> dict[str, Any]:
    """Return the report of a look, its last item."""
    return scan_item(
        site=site,
        forum=RECENT,
        mode="recent",
        started_at=stamp(state.started_at),
        pages=max(1, state.pages),
        threads=state.messages,
        outcome="complete" if reason is None else "failed",
        stopped=stopped,
        reason=reason,
        new=state.news,
        changed=0,
        newest_at=state.newest_at and stamp(state.newest_at),
        oldest_at=state.oldest_at and stamp(state.oldest_at),
        front=msgspec.to_builtins(state.front),
    )
