"""The spider `forum_list`: reads list pages, and turns each new or changed thread into a start task of `forum_detail`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from scrapy import Request
from scrapy.spidermiddlewares.httperror import HttpError

from forum_reader.reading.page_records import IndexPage, ListedForum, ListedThread, ListPage
from forums import FORUM_DETAIL, FORUM_LIST
from forums.records.stored import INDEX, RECENT, ForumTask, FrontRow, Marks
from forums.records.tasks_and_items import file_digest, forum_item, moment_of, scan_item, stamp, thread_id, utc_now
from forums.sites import Site, UnreadablePage, site_in_use
from forums.state import database_state
from forums.state.database_state import ThreadRecord
from redis_components.scrapy_glue.conditional import is_unchanged
from redis_components.scrapy_glue.engine import frontier_of
from redis_components.scrapy_glue.failure_reasons import reason_of
from redis_components.start_tasks.seeding import in_overflow

from .base import check_list, page_request, read_page, site_of_task
from .recent_messages import RecentSpider
from .scan_plan import Change, Order, ScanState, begun, change_of, checks_of, is_gap, plan_page, task_of, told_until

if TYPE_CHECKING:
    from scrapy.http import Response
    from twisted.python.failure import Failure


def finished(
    state: ScanState, marks: Marks | None, records: Mapping[str, ThreadRecord | None], *, order: Order, file: str
) -> ScanState | None:
    """Return the state of a scan completed by its unchanged first page; None if the page has to be read.

    The page is the one that the last complete scan read (`marks.front`), with all its threads stored; `records` by their ids.
    It has to be read if that scan leaves a range to be read twice, if a later scan was incomplete, if a thread of the page is
    not stored or due for a retry, and in lists that are not in the order of activity, where changes are on later pages.
    """
    if marks is None or not marks.front or order != "activity" or state.mode != "scan" or state.read_all:
        return None
    if marks.failed_pages or marks.newest is None or marks.until is None or marks.until < marks.newest:
        return None
    if any(_change(row, records, state.started_at, file) is not Change.UNCHANGED for row in marks.front):
        return None
    return msgspec.structs.replace(
        state,
        marks=marks,
        pages=1,
        threads=len(marks.front),
        newest_at=marks.newest,
        oldest_at=min((row.at for row in marks.front if row.at is not None), default=None),
        proven=True,
        front=marks.front,
    )


def _change(row: FrontRow, records: Mapping[str, ThreadRecord | None], at: datetime, file: str) -> Change:
    return change_of(ListedThread(id=row.id, url=row.url or "", token=row.token), records.get(row.id), at, file)


PRIORITIES = {"scan": 10, "index": 8, "deep": 5, "backfill": -10}
"""A running scan ends before the next begins; deep scans and backfills do not delay scans."""
ENDLESS = 1_000_000_000
MOST_UNREAD = 100_000
"""Limit of a site's threads in overflow, above those that may be queued: a site that lists more would fill Redis, for all."""


class ForumListSpider(RecentSpider):
    """Spider of start tasks of type `ForumTask`. A scan reads list pages in sequence."""

    name = FORUM_LIST
    feeds = FORUM_DETAIL

    def make_request_from_data(self, data: bytes) -> Request:
        """Return the request for the first list page of the forum, or of the index. Raises for a task without site or forum, and
        TaskMustWait if the site file is missing or wrong.
        """
        task = msgspec.json.decode(data, type=ForumTask)
        return self._first_page(site_of_task(self.crawler, task.site), task)

    def _first_page(self, site: Site, task: ForumTask) -> Request:
        if task.mode in ("recent", "back") and site.pages.recent is None:
            raise ValueError(f"site {site.name!r} has no [pages.recent] any more")
        if task.mode == "index":
            return self._index_page(site, site.url("index"), 1, {"started_at": utc_now(), "forums": 0})
        if task.mode == "recent" or task.mode == "back":
            return self.recent_page(site, utc_now())
        if task.forum not in site.forums and site.discover is None:
            raise ValueError(f"unknown forum {task.forum!r}: site {site.name!r} has {', '.join(site.forums)}")
        limits = {"scan": site.limits.pages_per_scan, "deep": site.limits.deep_pages, "backfill": ENDLESS}
        scan = begun(
            mode=task.mode,
            limit=task.pages or limits[task.mode],
            read_all=task.mode == "deep" and task.pages is not None,
            since=moment_of(task.since) if task.since else None,
        )
        return self._list_page(site, task.forum, site.list_url(task.forum), 1, scan, asks=task.mode == "scan")

    def _list_page(self, site: Site, forum: str, url: str, number: int, state: ScanState, *, asks: bool = False) -> Request:
        """Return the request for a list page. `asks`: the first page may be answered by "not modified"."""
        return page_request(
            site,
            "list",
            url,
            self.parse_list,
            self.scan_failed,
            forum=forum,
            number=number,
            priority=PRIORITIES[state.mode],
            conditional=asks if number == 1 else None,
            scan=msgspec.to_builtins(state),
        )

    async def parse_list(self, response: Response, scan: dict[str, Any]) -> AsyncIterator[Any]:
        """Feed new and changed threads to `forum_detail`, and go on to the next page or end the scan."""
        place = response.meta["page"]
        forum, number = place["forum"], place["number"]
        state = msgspec.convert(scan, ScanState)
        site = site_in_use(response.meta["site"])
        if is_unchanged(response):
            yield await self._unchanged(response, site, forum, state)
            return
        try:
            listing: ListPage = await read_page(self, response)
        except UnreadablePage as error:
            yield self._failed(site.name, forum, state, f"page {number}: {error}")
            return
        if number == 1:
            await check_list(self, site, listing, response)
        marks, recent = await self.marks_of(site.name, forum, RECENT) if number == 1 else (None, None)
        records = await self.stored_threads(site.name, [thread.id for thread in listing.threads])
        if number == 1:
            until = told_until(recent if site.pages.recent else None, state.started_at)
            state = msgspec.structs.replace(state, marks=marks, told_until=until)
        plan = plan_page(
            state,
            listing.threads,
            records,
            has_next=listing.next is not None,
            order=site.pages.list.order,
            zone=site.time_zone,
            file=file_digest(site),
        )
        if plan.fetch and state.mode != "backfill" and await self._unread(site.name) >= MOST_UNREAD:
            full = f"page {number}: {MOST_UNREAD:,} threads of this site wait to be read, so no more are listed until some are"
            yield self._failed(site.name, forum, state, full)
            return
        for listed in plan.fetch:
            task = task_of(listed, site.name, forum, is_backfill=state.mode == "backfill")
            self.feed_thread(task, lane="backlog" if state.mode == "backfill" else "")
        for task in checks_of(plan, site.name, forum):
            self.feed_thread(task)
        await self._adopt(site.name, listing, records)
        if plan.stopped is None and listing.next is not None:
            yield self._list_page(site, forum, listing.next, number + 1, plan.state)
            return
        stopped = plan.stopped or "end"
        gap = is_gap(plan.state, stopped, site.pages.list.order)
        reason = (
            f"{plan.state.pages} {'page does' if plan.state.pages == 1 else 'pages do'} not reach what the last complete scan saw"
            if gap
            else None
        )
        if (name := site.names.get(forum)) is not None and site.discover is None:  # else the name comes from the index
            named = ListedForum(id=forum, name=name, url=site.list_url(forum))
            yield forum_item(named, site=site.name, fetched_at=str(response.meta.get("fetched_at") or utc_now()))
        yield _report(site.name, forum, plan.state, "gap" if gap else "complete", stopped, reason)

    async def _unread(self, site: str) -> int:
        details = frontier_of(self.crawler).config.next_keys
        assert details is not None
        return await self.in_thread(lambda: in_overflow(self.server, details, site))

    async def _unchanged(self, response: Response, site: Site, forum: str, state: ScanState) -> Any:
        """Return the report of a scan whose first page is unchanged, or the request for the whole page if more must be read."""
        (marks,) = await self.marks_of(site.name, forum)
        records = await self.stored_threads(site.name, [row.id for row in marks.front]) if marks else {}
        ended = finished(state, marks, records, order=site.pages.list.order, file=file_digest(site))
        if ended is None and response.meta.get("conditional_reload"):
            return self._failed(site.name, forum, state, "page 1: HTTP 304 to a request for the whole page")
        if ended is None:
            return self._list_page(site, forum, site.list_url(forum), 1, state)
        return _report(site.name, forum, ended, "complete", "overlap", None)

    async def _adopt(self, site: str, listing: ListPage, records: Mapping[str, ThreadRecord | None]) -> None:
        """Store the list's token and reply count in records of threads whose last reading saw more than the list showed then."""
        details = frontier_of(self.crawler).config.next_keys
        assert details is not None
        seen = {
            thread_id(site, row.id): (record, row.token, row.reply_count)
            for row in listing.threads
            if (record := records.get(row.id)) is not None
            and not record.has_token(row.token)
            and record.covers(row.reply_count, row.last_activity)
        }
        if seen:
            await self.in_thread(lambda: database_state.adopt(self.server, details, seen))

    def scan_failed(self, failure: Failure) -> Iterator[Any]:
        """End the scan; the next one begins at page 1. A missing page (404) behind the first is the end of a shortened list."""
        request: Request = failure.request  # type: ignore[attr-defined]  # the engine puts it there
        site, place = request.meta["site"], request.meta["page"]
        state = msgspec.convert(request.cb_kwargs["scan"], ScanState)
        gone = isinstance(failure.value, HttpError) and failure.value.response.status == 404 and place["number"] > 1
        if gone:
            yield _report(site, place["forum"], state, "complete", "end", None)
        else:
            yield self._failed(site, place["forum"], state, f"page {place['number']}: {reason_of(failure)}")

    def _failed(self, site: str, forum: str, state: ScanState, reason: str) -> dict[str, Any]:
        self.logger.warning("scan of %s/%s failed: %s", site, forum, reason)
        return _report(site, forum, state, "failed", "error", reason)

    def parse_back(self, *_: Any, **__: Any) -> Iterator[Any]:
        """Drop a page of a look back, which a crawler of the version before has requested."""
        return iter(())

    back_failed = parse_back

    # The index

    def _index_page(self, site: Site, url: str, number: int, index: dict[str, Any]) -> Request:
        priority = PRIORITIES["index"]
        return page_request(
            site, "index", url, self.parse_index, self.index_failed, forum=INDEX, number=number, priority=priority, index=index
        )

    async def parse_index(self, response: Response, index: dict[str, Any]) -> AsyncIterator[Any]:
        """Yield the forums of the site, and the next page or the report."""
        site, number = site_in_use(response.meta["site"]), response.meta["page"]["number"]
        try:
            page: IndexPage = await read_page(self, response)
        except UnreadablePage as error:
            yield self._index_report(site.name, number, index, "failed", f"page {number}: {error}")
            return
        fetched_at = str(response.meta.get("fetched_at") or utc_now())
        for forum in page.forums:
            yield forum_item(forum, site=site.name, fetched_at=fetched_at)
        is_another = bool(page.forums) and page.forums[0].id != index.get("first")  # some sites show one page for all numbers
        index = {**index, "forums": index["forums"] + len(page.forums), "first": page.forums[0].id if page.forums else None}
        if page.next is not None and is_another and number < site.limits.deep_pages:
            yield self._index_page(site, page.next, number + 1, index)
        else:
            yield self._index_report(site.name, number, index, "complete", None)

    def index_failed(self, failure: Failure) -> Iterator[Any]:
        """Report the failure; the next reading of the index begins at page 1."""
        request: Request = failure.request  # type: ignore[attr-defined]
        number = request.meta["page"]["number"]
        reason = f"page {number}: {reason_of(failure)}"
        yield self._index_report(request.meta["site"], number, request.cb_kwargs["index"], "failed", reason)

    def _index_report(self, site: str, number: int, index: dict[str, Any], outcome: str, reason: str | None) -> dict[str, Any]:
        if reason:
            self.logger.warning("the forums of %s could not be listed: %s", site, reason)
        return scan_item(
            site=site,
            forum=INDEX,
            mode="index",
            started_at=index["started_at"],
            pages=number,
            threads=0,
            outcome=outcome,
            stopped="error" if reason else "end",
            reason=reason,
        )


def _report(site: str, forum: str, state: ScanState, outcome: str, stopped: str, reason: str | None) -> dict[str, Any]:
    """Return the scan's report, its last item. Changes left to the page of the newest messages stay above the mark."""
    newest = min(state.newest_at, state.told_until) if state.left and state.newest_at and state.told_until else state.newest_at
    return scan_item(
        site=site,
        forum=forum,
        mode=state.mode,
        started_at=stamp(state.started_at),
        pages=state.pages,
        threads=state.threads,
        outcome=outcome,
        stopped=stopped,
        reason=reason,
        new=state.new,
        changed=state.changed,
        newest_at=newest and stamp(newest),
        oldest_at=state.oldest_at and stamp(state.oldest_at),
        front=msgspec.to_builtins(state.front),
    )
