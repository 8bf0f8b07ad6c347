"""The spider `forum_detail`: reads threads, the opening post first, then the comment pages in order, and ends with a report."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from scrapy import Request
from scrapy.spidermiddlewares.httperror import HttpError

from forum_reader.reading.page_records import CommentsPage, MoreComments, ThreadPage
from forums import FORUM_DETAIL
from forums.breaker.middleware import MISSING, SiteBlocked
from forums.records.stored import PostTask
from forums.records.tasks_and_items import comment_item, file_digest, now_in_reading, post_item, utc_now, with_listed
from forums.sites import PageGone, Site, UnreadablePage, site_in_use
from redis_components.scheduler import set_aside
from redis_components.scrapy_glue.conditional import is_unchanged
from redis_components.scrapy_glue.failure_reasons import reason_of

from .base import ForumSpider, address_of, check_thread, merged, merged_into, page_request, read_page, site_of_task
from .thread_reading import (
    Reading,
    Step,
    after_left_out,
    counted_back,
    follow,
    follow_left_out,
    from_start,
    missing,
    next_left_out,
    placed,
    report,
    was_read_before,
    with_head,
    with_left_out,
    with_own_id,
)  # fmt: skip

if TYPE_CHECKING:
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from forum_reader.definition.pages import PageKind

logger = logging.getLogger(__name__)

_OF_TASK = (
    *("mode", "only", "forum", "token", "url", "own", "author", "created_at", "last_activity"),
    *("replies", "expected", "short", "known"),
)
"""Fields of a start task that its reading has, too."""
LATER = -10
"""Priority of re-checks and history, which may wait."""


class ForumDetailSpider(ForumSpider):
    """Spider of start tasks of type `PostTask`. A thread's pages are read in sequence, so long threads do not hold back
    others.
    """

    name = FORUM_DETAIL
    lane_later = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._walls: set[str] = set()  # sites whose later pages were refused

    def make_request_from_data(self, data: bytes) -> Request:
        """Return the request for the opening post's page, or for the first comment page to be read. Raises for a task without
        site or post, and TaskMustWait if the site file is missing or wrong.
        """
        task = msgspec.json.decode(data, type=PostTask)
        site = site_of_task(self.crawler, task.site)
        first, after = _begin(site, task)
        reading = Reading(
            started_at=utc_now(),
            thread=task.post,
            after=after,
            first=first,
            page=first,
            last_page=max(1, task.page) if after is not None else 1,
            **{name: getattr(task, name) for name in _OF_TASK},
        )
        if task.mode == "changed" or task.only == "comments" or site.pages.thread is None:
            cursor = task.cursor if first > 1 else None  # the cursor belongs to its last page
            return self._comments(site, reading, cursor)
        return self._opening(site, reading)

    def _page(self, site: Site, kind: PageKind, url: str, reading: Reading, left_out: MoreComments | None = None) -> Request:
        reading = msgspec.structs.replace(reading, asked=file_digest(site))
        request = page_request(
            site,
            kind,
            url,
            {"thread": self.parse_thread, "more": self.parse_more}.get(kind, self.parse_comments),
            self.page_failed,
            forum=reading.forum or "",
            thread=reading.thread,
            number=reading.page if left_out is None else reading.left_out_page,
            left_out=left_out,
            priority=LATER if reading.mode in ("check", "backfill") else 0,
            reading=msgspec.to_builtins(reading),
        )
        if reading.own is not None:
            request.meta["page"]["own"] = reading.own  # for a later reading of the raw page
        if reading.opening:
            request.meta["page"]["opening"] = reading.opening
        return request

    def _opening(self, site: Site, reading: Reading) -> Request:
        url = site.url("thread", forum=reading.forum or "", thread=reading.thread, url=reading.url)
        return self._page(site, "thread", url, reading)

    def _comments(self, site: Site, reading: Reading, url: str | None = None) -> Request:
        """Return the request for comment page `reading.page`, at `url` on sites whose page URLs have no number."""
        made = site.url("comments", forum=reading.forum or "", thread=reading.thread, number=reading.page, url=reading.url)
        return self._page(site, "comments", url or made, reading)

    def _more(self, site: Site, reading: Reading, url: str | None = None) -> Request:
        """Return the request for the next page of comments that the thread's pages leave out."""
        left_out = next_left_out(reading)
        assert left_out is not None
        made = site.url(
            "more",
            forum=reading.forum or "",
            thread=reading.thread,
            number=reading.left_out_page,
            url=reading.url,
            comment=left_out.comment,
            more=left_out.more,
        )
        return self._page(site, "more", url or made, reading, left_out)

    async def parse_thread(self, response: Response, reading: dict[str, Any]) -> AsyncIterator[Any]:
        """Yield the post; then the request for its comments, unless it has none."""
        read = _with_requests(reading, response)
        site = site_in_use(response.meta["site"])
        if is_unchanged(response):  # a check of the version before, which asked for pages that have changed
            yield self._again(site, read)
            return
        if (other := merged_into(site, response, read.thread, read.url)) is not None:
            yield report(site.name, read, gone=True, reason=f"merged into thread {other}")
            read = merged(read, other, response.url)
        try:
            page: ThreadPage = await read_page(self, response, thread=read.thread)
        except UnreadablePage as error:
            yield self._unreadable(site, response, read, error)
            return
        post = page.post
        read = with_own_id(read, post)
        yield post_item(
            with_listed(post, read),
            site=site.name,
            thread=read.own or read.thread,
            forum=read.forum,
            url=read.url or response.url,
            fetched_at=_fetched_at(read, response),
        )
        if read.only == "post":
            return
        read = msgspec.structs.replace(read, opened=True, forum=read.forum or post.forum_id)
        if post.reply_count == 0:
            yield report(site.name, msgspec.structs.replace(read, total=0))
        else:
            yield self._comments(site, read)

    async def parse_comments(self, response: Response, reading: dict[str, Any]) -> AsyncIterator[Any]:
        """Yield the comments, and the next request or the report."""
        read = _with_requests(reading, response)
        site = site_in_use(response.meta["site"])
        if is_unchanged(response):  # as above
            yield self._again(site, read)
            return
        if (other := merged_into(site, response, read.thread, read.url)) is not None:
            yield report(site.name, read, gone=True, reason=f"merged into thread {other}")
            read = merged(read, other, response.url)
            if response.meta["page"]["number"] > 1 or site.pages.thread is not None:
                yield self._again(site, read)
                return
        try:
            page: CommentsPage = await read_page(self, response, url=read.url, thread=read.thread)
        except UnreadablePage as error:
            yield self._unreadable(site, response, read, error)
            return
        await check_thread(self, site, read, page, response)
        fetched_at = _fetched_at(read, response)
        if page.post is not None:
            url = read.url or response.url
            read = with_own_id(read, page.post)
            thread, post = read.own or read.thread, with_listed(page.post, read)
            if read.only != "comments":
                yield post_item(post, site=site.name, thread=thread, forum=read.forum, url=url, fetched_at=fetched_at)
            if read.only == "post":
                return
        is_back = site.pages.comments.order != "oldest"
        ids = [comment.id for comment in page.comments]
        again = was_read_before(read, ids)
        for comment in () if again else counted_back(page.comments, read) if is_back else page.comments:
            thread = read.own or read.thread
            yield comment_item(comment, site=site.name, thread=thread, url=response.url, fetched_at=fetched_at)
        numbered = site.pages.comments.is_numbered
        step = follow(
            with_left_out(with_head(read, ids, page.post_id), page.left_out),
            ids,
            total=page.total,
            has_next=page.next is not None,
            numbered=numbered,
            limit=site.limits.comments_per_thread,
            url=None if numbered or read.page == 1 else address_of(response),
            newest_first=is_back,
            again=again,
        )
        yield self._after(site, step, page.next)

    async def parse_more(self, response: Response, reading: dict[str, Any]) -> AsyncIterator[Any]:
        """Yield comments that the thread's pages leave out, and the next request or the report."""
        read = _with_requests(reading, response)
        site = site_in_use(response.meta["site"])
        try:
            page: CommentsPage = await read_page(self, response, url=read.url)
        except UnreadablePage as error:
            yield self._unreadable(site, response, read, error)
            return
        fetched_at = _fetched_at(read, response)
        for comment in placed(page.comments, read):
            thread = read.own or read.thread
            yield comment_item(comment, site=site.name, thread=thread, url=response.url, fetched_at=fetched_at)
        limit = site.limits.comments_per_thread
        step = follow_left_out(read, page.comments, page.left_out, has_next=page.next is not None, limit=limit)
        is_next = step.reading.at_left_out == read.at_left_out
        yield self._after_more(site, step, page.next if is_next else None)

    def _again(self, site: Site, read: Reading) -> Request:
        """Return the request that reads the thread from its beginning."""
        read = from_start(read)
        return self._opening(site, read) if site.pages.thread is not None else self._comments(site, read)

    def _after(self, site: Site, step: Step, following: str | None = None) -> Any:
        if step.go is None and not step.cut and next_left_out(step.reading) is not None:
            return self._more(site, msgspec.structs.replace(step.reading, tail=()))
        if step.go is None:
            return report(site.name, step.reading, cut=step.cut)
        return self._comments(site, step.reading, following if step.go == "on" else None)

    def _after_more(self, site: Site, step: Step, following: str | None = None) -> Any:
        if step.go is None:
            return report(site.name, step.reading, cut=step.cut)
        return self._more(site, step.reading, following)

    def page_failed(self, failure: Failure) -> Iterator[Any]:
        """Report the failed page. A missing thread is reported as gone; if its opening post has a separate page, only that page
        decides. A missing page of comments means that there are fewer than before. Other failures are set aside with the reason.
        """
        request: Request = failure.request  # type: ignore[attr-defined]  # the engine puts it there
        site, meta = request.meta["site"], request.meta
        read = _begun(request.cb_kwargs["reading"], meta)
        read = msgspec.structs.replace(read, requests=read.requests + 1)
        reason = reason_of(failure)
        if isinstance(failure.value, SiteBlocked) and failure.value.is_private:
            yield self._refused(site_in_use(site), meta, read, reason)
        elif not (isinstance(failure.value, HttpError) and failure.value.response.status in MISSING):
            self.set_aside(failure)
            yield report(site, read, reason=reason)
        else:
            yield self._not_there(site_in_use(site), meta, read, reason)

    def _refused(self, site: Site, meta: dict[str, Any], read: Reading, reason: str) -> Any:
        """Return the next step after a page that the site hides from guests. If it is the page of the post itself, the thread
        counts as gone. Comments may be private while the post is public.
        """
        place, has_own_page = meta["page"], site.pages.thread is not None
        if place["kind"] == "thread" or (place["number"] == 1 and not has_own_page):
            return report(site.name, _as_of(read, meta), reason=reason, gone=True)
        if place["kind"] == "comments" and read.page == read.first:
            if has_own_page and not read.opened:
                return self._opening(site, read)
            if not has_own_page and read.first > 1:
                return self._comments(site, from_start(read))
        return self._walled(site, read, reason)

    def _walled(self, site: Site, read: Reading, reason: str) -> dict[str, Any]:
        """Return the report of a thread whose first pages only are for guests."""
        if site.name not in self._walls:
            self._walls.add(site.name)
            logger.warning("%s: the later pages of threads are not for guests, such as page %d of thread %s: %s",
                           site.name, read.page, read.thread, reason)  # fmt: skip
        return report(site.name, read, reason=reason, walled=True)

    def _not_there(self, site: Site, meta: dict[str, Any], read: Reading, reason: str) -> Any:
        """Return the next step after a page that the site does not have. A page requested by an older site file is requested once
        more by the present one.
        """
        place = meta["page"]
        if read.asked and read.asked != file_digest(site):
            return self._asked_again(site, place, read)
        if place["kind"] == "more":
            return self._after_more(site, after_left_out(read, site.limits.comments_per_thread, missing=True))
        if place["kind"] == "comments" and place["number"] > 1:
            is_back = site.pages.comments.order != "oldest"
            return self._after(site, missing(read, numbered=site.pages.comments.is_numbered, newest_first=is_back))
        if place["kind"] == "comments" and read.opened:
            return self._after(site, missing(read, numbered=True))
        if place["kind"] == "comments" and site.pages.thread is not None:
            return self._opening(site, read)
        return report(site.name, _as_of(read, meta), reason=reason, gone=True)

    def _asked_again(self, site: Site, place: dict[str, Any], read: Reading) -> Request:
        if site.pages.thread is not None and (place["kind"] == "thread" or not read.opened):
            return self._opening(site, read)
        goes_on = site.pages.comments.is_numbered and place["kind"] != "more"
        return self._comments(site, read if goes_on else from_start(read))

    def _unreadable(self, site: Site, response: Response, read: Reading, error: UnreadablePage) -> Any:
        """Return the next step after an unparsable page: gone if the site reports it so, else set aside and reported."""
        if isinstance(error, PageGone):
            return self._not_there(site, response.meta, read, str(error))
        assert response.request is not None
        if isinstance(error.__cause__, SiteBlocked) and error.__cause__.is_private:
            return self._refused(site, response.meta, read, str(error))
        set_aside(self.crawler, response.request, f"unreadable page: {error}")
        return report(site.name, read, reason=str(error))


def _begin(site: Site, task: PostTask) -> tuple[int, str | None]:
    """Return the first page of a reading, and the stored comment up to which, or after which, it reads; None: the whole
    thread.
    """
    pages = site.pages
    if pages.more is not None or (pages.comments.nested and task.expected is None):
        return 1, None  # new comments may be on any page, or be left out
    if pages.comments.order != "oldest":
        return 1, task.after if task.page > 1 else None
    first = task.page if task.cursor or pages.comments.is_numbered else 1
    return first, task.after if first > 1 else None


def _with_requests(reading: dict[str, Any], response: Response) -> Reading:
    """Return the reading with the requests of this page added."""
    read = _begun(reading, response.meta)
    again = response.meta.get("retry_times", 0) + response.meta.get("redirect_times", 0)
    return msgspec.structs.replace(read, requests=read.requests + 1 + int(again))


def _begun(reading: dict[str, Any], meta: dict[str, Any]) -> Reading:
    """Return the reading of a page; it begins when its first one is requested."""
    read = msgspec.convert(reading, Reading)
    is_first = not read.requests and read.page == read.first and meta["page"]["kind"] != "more"
    return _as_of(read, meta) if is_first else read  # a thread's first page may have been read by requests of one merged into it


def _as_of(read: Reading, meta: dict[str, Any]) -> Reading:
    """Return the reading with the time when a page was requested as its beginning: what was seen before and is not there then
    counts as removed. Its start task may have been taken long before, on a site that is read slowly.
    """
    return msgspec.structs.replace(read, started_at=max(read.started_at, str(meta.get("requested_at") or "")))


def _fetched_at(read: Reading, response: Response) -> str:
    """Return the time of the response, as stored with its raw page (`forums/breaker/middleware.py`)."""
    return str(response.meta.get("fetched_at") or now_in_reading(read.started_at))
