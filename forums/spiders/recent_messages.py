"""Looks at the newest messages of a site: part of `forum_list`, at one request for all forums.

A message is stored directly if that leaves nothing out: its thread is known, the message follows all stored comments of it,
and the page shows the whole text and the parent. The thread's record then counts it, and the next list is compared with that
count (`ThreadRecord.covers`): if a message was missing here, the list's count differs, and the thread is read. So the page saves
requests only; the lists stay the reference. The plan for a page (`plan_recent`) is pure.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from scrapy import Request

from forum_reader.reading.page_records import ListedThread, ReadComment, RecentMessage, RecentPage
from forums.records.stored import RECENT, FrontRow, Marks, PostTask
from forums.records.tasks_and_items import comment_item, file_digest, scan_item, stamp, utc_now
from forums.sites import Site, UnreadablePage, site_in_use
from forums.state.database_state import ThreadRecord
from forums.state.keys import ForumStates
from redis_components.scrapy_glue.conditional import is_unchanged
from redis_components.scrapy_glue.failure_reasons import reason_of

from .base import ListSpider, page_request, read_page
from .scan_plan import MOST_KEPT, Change, Listed, Stopped, change_of, is_believable, task_of
from .thread_reading import is_behind, number_of

if TYPE_CHECKING:
    from scrapy.http import Response
    from twisted.python.failure import Failure


class Seen(NamedTuple):
    """Figures of a page, for the report of its look."""

    messages: int = 0
    news: int = 0  # messages that were stored or caused a reading
    newest_at: datetime | None = None
    oldest_at: datetime | None = None
    front: tuple[FrontRow, ...] = ()


class RecentSummary(NamedTuple):
    """Replies of a thread that are stored from the page, the oldest first."""

    thread: str
    record: ThreadRecord
    messages: list[RecentMessage]


class RecentPlan(NamedTuple):
    """Result for a page: threads to read, each with the row that shows the change; replies to store; stored replies with another
    text; threads to check, because a message in them is gone; its figures; `limit` where messages before these may be unseen.
    """

    fetch: list[tuple[RecentMessage, Listed]]
    direct: list[RecentSummary]
    edited: list[tuple[RecentMessage, ThreadRecord]]
    checked: list[str]
    seen: Seen
    stopped: Stopped


def plan_recent(
    marks: Marks | None,
    messages: Sequence[RecentMessage],
    records: Mapping[str, ThreadRecord | None],
    *,
    at: datetime,
    has_next: bool,
    watched: frozenset[str] | None = None,
    file: str = "",
) -> RecentPlan:
    """Return the plan for the page of a look that began at `at`. `marks`: of the look before; None: there was none. `records` by
    thread; `watched`: the forums whose new threads are read, None for all.
    """
    known = {row.id: row for row in marks.front} if marks else {}
    overlaps = any(one.mark in known for one in messages)
    reached = messages and (overlaps or marks is None)
    stopped: Stopped = "overlap" if reached else "limit" if messages and has_next else "end"
    is_complete = overlaps or not has_next  # else a reply before these may be on the next page
    fetch: list[tuple[RecentMessage, Listed]] = []
    direct: list[RecentSummary] = []
    edited: list[tuple[RecentMessage, ThreadRecord]] = []
    for thread, all_news, others in _by_thread(messages, known):
        record, news = records.get(thread), all_news
        if record is not None and not record.is_gone:
            edited += [(one, record) for one in others]
            news = [one for one in news if not one.opening]  # the opening is stored
        if not news or not _is_wanted(record, news, watched):
            continue
        if is_complete and record is not None and _can_be_stored(record, news):
            if behind := [one for one in news if one.id is not None and is_behind(one.id, record.last_comment)]:
                direct.append(RecentSummary(thread, record, sorted(behind, key=lambda one: number_of(one.id or ""))))
        elif (listed := _listed(news, record, at, file, is_first=marks is None)) is not None:
            fetch.append(listed)
    dates = [one.created_at for one in messages if one.created_at is not None]
    seen = Seen(
        messages=len(messages),
        news=len(fetch) + sum(len(one.messages) for one in direct),
        newest_at=max(dates, default=None),
        oldest_at=min(dates, default=None),
        front=tuple(
            FrontRow(one.mark, one.thread, one.created_at if one.id else None, one.digest) for one in messages[:MOST_KEPT]
        ),
    )
    return RecentPlan(fetch, direct, edited, _checked(messages, known, seen.oldest_at), seen, stopped)


def _by_thread(
    messages: Sequence[RecentMessage], known: Mapping[str, FrontRow]
) -> Iterator[tuple[str, list[RecentMessage], list[RecentMessage]]]:
    """Yield each thread with its new messages, the oldest first, and its known messages with another text."""
    dates = [row.at for row in known.values() if row.at is not None]
    oldest = min(dates, default=None)
    threads: dict[str, tuple[list[RecentMessage], list[RecentMessage]]] = {}
    for one in reversed(messages):
        news, others = threads.setdefault(one.thread, ([], []))
        before = known.get(one.mark)
        if before is None:
            is_old = bool(oldest and one.created_at and one.created_at < oldest)  # on the page because others were removed
            news += [] if is_old else [one]
        elif one.id is not None and before.title != one.digest:
            others.append(one)
    for thread, (news, others) in threads.items():
        yield thread, news, others


def _is_wanted(record: ThreadRecord | None, news: Sequence[RecentMessage], watched: frozenset[str] | None) -> bool:
    """Return True if the thread's forum is watched: always for a known thread, else by the forum of its rows."""
    if record is not None or watched is None:
        return True
    return any(one.forum_id in watched for one in news if one.forum_id is not None)


def _can_be_stored(record: ThreadRecord, news: Sequence[RecentMessage]) -> bool:
    """Return True if the messages can be stored directly, which needs numeric ids to order them."""
    if record.is_gone or record.short:
        return False
    if record.last_comment is None and record.comments:
        return False
    return all(
        one.id is not None
        and (one.body is not None or one.deleted)
        and not one.has_unknown_parent
        and is_behind(one.id, record.last_comment) is not None
        for one in news
    )


def _listed(
    news: Sequence[RecentMessage], record: ThreadRecord | None, at: datetime, file: str, *, is_first: bool
) -> tuple[RecentMessage, Listed] | None:
    """Return the newest row of a thread as a list row; None if it shows no change."""
    row = news[-1]
    replies, active = row.reply_count, row.created_at
    thread = ListedThread(id=row.thread, token=row.token or "", url=row.url, reply_count=replies, last_activity=active)
    if record is None or record.is_gone or row.token is not None:
        change = change_of(thread, record, at, file)
    elif row.id is not None:
        last = record.last_comment
        is_stored = last is not None and all(one.id is not None and is_behind(one.id, last) is False for one in news)
        change = Change.UNCHANGED if is_stored else Change.CHANGED
    elif replies is not None:
        change = Change.UNCHANGED if record.counts(replies) else Change.CHANGED
    else:  # a new row is a change; the first look has nothing to compare with
        change = Change.UNCHANGED if is_first else Change.CHANGED
    return None if change is Change.UNCHANGED else (row, Listed(thread, change, record))


def _checked(messages: Sequence[RecentMessage], known: Mapping[str, FrontRow], end: datetime | None) -> list[str]:
    """Return the threads with messages that disappeared since the last look, although older messages are still shown."""
    there = {one.mark for one in messages}
    gone = [row for row in known.values() if end is not None and row.at is not None and row.at > end and row.id not in there]
    return list(dict.fromkeys(row.token for row in gone)) if is_believable(len(gone), len(known)) else []


PRIORITY = 12
"""Above list pages: one such page may save many of them."""


class RecentSpider(ListSpider):
    """A spider that also looks at the newest messages of a site (`[pages.recent]`)."""

    def recent_page(self, site: Site, started_at: str, *, reload: bool = False) -> Request:
        """Return the request for the page of the newest messages, which may be answered by "not modified"."""
        return page_request(
            site,
            "recent",
            site.url("recent"),
            self.parse_recent,
            self.recent_failed,
            forum=RECENT,
            priority=PRIORITY,
            conditional=not reload,
            recent={"started_at": started_at, "limit": 1},  # the second is for crawlers of the version before
        )

    async def parse_recent(self, response: Response, recent: dict[str, Any]) -> AsyncIterator[Any]:
        """Store replies directly, feed threads to be read, and end with a report."""
        site, started_at = site_in_use(response.meta["site"]), recent["started_at"]
        if response.meta["page"]["number"] > 1:
            return  # a further page, which a crawler of the version before has requested
        (marks,) = await self.marks_of(site.name, RECENT)
        if is_unchanged(response) and marks is not None:
            yield _report(site.name, started_at, "overlap", Seen(newest_at=marks.newest, front=marks.front))
            return
        if response.status == 304:
            yield self.recent_page(site, started_at, reload=True)
            return
        try:
            page: RecentPage = await read_page(self, response)
        except UnreadablePage as error:
            yield self._recent_failed(site.name, started_at, str(error))
            return
        plan = plan_recent(
            marks,
            page.messages,
            await self.stored_threads(site.name, list(dict.fromkeys(one.thread for one in page.messages))),
            at=datetime.fromisoformat(started_at),
            has_next=page.next is not None,
            watched=await self._watched(site),
            file=file_digest(site),
        )
        for message, listed in plan.fetch:
            self.feed_thread(task_of(listed, site.name, message.forum_id), because=f"{RECENT}{message.mark} {message.digest}")
        for item in self._follow(plan, site, response, started_at):
            yield item
        yield _report(site.name, started_at, plan.stopped, plan.seen)

    def _follow(self, plan: RecentPlan, site: Site, response: Response, started_at: str) -> Iterator[dict[str, Any]]:
        for thread in plan.checked if _can_be_addressed(site) else ():
            task = PostTask(site=site.name, post=thread, mode="check")
            self.feed_thread(task, because=f"{RECENT}{started_at}")
        fetched_at = str(response.meta.get("fetched_at") or utc_now())
        for message, record in plan.edited:
            if (item := comment_of(message, record, site.name, response.url, fetched_at)) is not None:
                yield item
            else:
                task = PostTask(site=site.name, post=message.thread, forum=message.forum_id, mode="check", url=message.url)
                self.feed_thread(task, because=f"{RECENT}{message.mark} {message.digest}")
        for direct in plan.direct:
            yield from _direct_items(direct, site.name, response.url, fetched_at, started_at)

    async def _watched(self, site: Site) -> frozenset[str] | None:
        """Return the forums whose new threads are read; None for all."""
        rules = site.discover
        if rules is None:
            return frozenset(site.forums)
        if "*" in rules.include and not rules.exclude:
            return None
        found = await self.in_thread(lambda: ForumStates(self.server).all(site.name))
        names = {name.partition("/")[2]: state.name for name, state in found.items()}
        return frozenset([*(forum for forum, name in names.items() if rules.lets_in(forum, name)), *site.forums])

    def recent_failed(self, failure: Failure) -> Iterator[Any]:
        """Report the failure; the next look begins at the first page."""
        request: Request = failure.request  # type: ignore[attr-defined]  # the engine puts it there
        yield self._recent_failed(request.meta["site"], request.cb_kwargs["recent"]["started_at"], reason_of(failure))

    def _recent_failed(self, site: str, started_at: str, reason: str) -> dict[str, Any]:
        self.logger.info(
            "the newest messages of %s cannot be read, its lists are looked at as if there were none: %s", site, reason
        )
        return _report(site, started_at, "error", Seen(), reason)


def _can_be_addressed(site: Site) -> bool:
    """Return True if the id alone makes a thread's address."""
    pages = (site.pages.thread, site.pages.comments)
    return not any(page.names & {"url", "forum"} for page in pages if page is not None)


def comment_of(message: RecentMessage, record: ThreadRecord, site: str, url: str, fetched_at: str) -> dict[str, Any] | None:
    """Return the comment of a message; None if its thread has to be read for it."""
    if message.id is None or message.opening or message.has_unknown_parent or (message.body is None and not message.deleted):
        return None
    names = ("id", "parent_id", "body_html", "author", "created_at", "edited_at", "deleted")
    read = ReadComment(body=message.body or "", **{name: getattr(message, name) for name in names})
    return comment_item(read, site=site, thread=record.own or message.thread, url=url, fetched_at=fetched_at)


def _direct_items(direct: RecentSummary, site: str, url: str, fetched_at: str, started_at: str) -> Iterator[dict[str, Any]]:
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
        "started_at": started_at,
        "finished_at": max(fetched_at, started_at),
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


def _report(site: str, started_at: str, stopped: str, seen: Seen, reason: str | None = None) -> dict[str, Any]:
    """Return the report of a look, its last item."""
    return scan_item(
        site=site,
        forum=RECENT,
        mode="recent",
        started_at=started_at,
        pages=1,
        threads=seen.messages,
        outcome="complete" if reason is None else "failed",
        stopped=stopped,
        reason=reason,
        new=seen.news,
        changed=0,
        newest_at=seen.newest_at and stamp(seen.newest_at),
        oldest_at=seen.oldest_at and stamp(seen.oldest_at),
        front=msgspec.to_builtins(seen.front),
    )
