"""Ends what Scrapy awaits for a page that gives no sign of life: a download, a callback or an item pipeline that never answers.

Such a page would stay leased, and keep its place in the crawler, for as long as the process lives.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from scrapy.utils.asyncio import is_asyncio_available
from twisted.internet.defer import CancelledError, Deferred

from .engine import stop_crawl
from .internals import CALLBACK, NotNow, await_within, waiting_for_turn
from .page_tracker import current_page

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from scrapy import Request
    from scrapy.crawler import Crawler

    from redis_components.frontier.frontier import Frontier

    from .page_tracker import Page, PageTracker

    Ended = Callable[[str], Exception] | None


logger = logging.getLogger(__name__)

LOOKS = 20  # in the longest age
LONGEST_URL = 300
TOO_OLD = "its page was at work for too long"


class PageAges:
    """Looks at the pages at work now and then: one that was there for SCHEDULER_MAX_PAGE_AGE without a sign of life is given back
    with an attempt counted, and what Scrapy awaits for it is cancelled, which frees its place.
    """

    def __init__(self, crawler: Crawler, frontier: Frontier, tracker: PageTracker, count: Callable[[str], None]) -> None:
        self._crawler, self._frontier, self._count = crawler, frontier, count
        self._pages: Mapping[Any, Page] = tracker.pages  # also asked for None
        self._max_s = frontier.config.max_page_age_s
        self.present_task: Callable[[], asyncio.Task[Any] | None]
        self.present_task = asyncio.current_task if is_asyncio_available() else lambda: None
        self._look_at, self._asked_at = 0.0, frontier.now()
        if self._max_s:
            await_within(crawler, self.within, self._items_within)
            frontier.listeners.applied.append(self._look)

    def oldest(self) -> tuple[float, str]:
        """Return the seconds without a sign of life of the page that has given none for longest, and what is awaited for it and
        its URL; (0.0, "") where no page is at work. A page that waits for its turn at its site is not at work.
        """
        now, waiting = self._frontier.now(), waiting_for_turn(self._crawler)
        at_work = [(page.seen_at, request) for request, page in self._pages.items() if request not in waiting]
        if not at_work:
            return 0.0, ""
        since, request = min(at_work, key=lambda one: one[0])
        return now - since, f"{_awaited(self._pages[request])} of {request.url[:LONGEST_URL]}"

    def within(
        self, request: Request | None, name: str, work: Coroutine[Any, Any, Any], ended: Ended = NotNow
    ) -> Coroutine[Any, Any, Any]:
        """Return `work`, which is done for `request`; where its page was ended meanwhile it raises `ended`, or gives None. Work
        for another request, as for a file that a pipeline asks for, is that of the present page.
        """
        page = self._pages.get(request) or current_page.get()
        return work if page is None else self.until_ended(page, name, work, ended)

    def _items_within(self, request: Request, found: AsyncIterator[Any]) -> AsyncIterator[Any]:
        page = self._pages.get(request) or current_page.get()
        return found if page is None else _ItemsWithin(self, page, found)

    async def until_ended(
        self, page: Page, name: str, work: Awaitable[Any], ended: Ended, task: asyncio.Task[Any] | None = None
    ) -> Any:
        """Await `work` as a step of `page`, in `task`, or in the present one; see `within`."""
        if not page.ended:
            task = task or self.present_task()
            awaited: Any = work if task else Deferred.fromCoroutine(_result_of(work))
            page.steps[work] = name, (task or awaited).cancel
            try:
                return await awaited
            except (asyncio.CancelledError, CancelledError):
                if work in page.steps:
                    raise
                if task:
                    task.uncancel()
            finally:
                page.steps.pop(work, None)
        elif isinstance(work, Coroutine):
            work.close()
        if ended is not None:
            raise ended(TOO_OLD)
        return None

    def _look(self, *_: object) -> None:
        now = self._frontier.now()
        if now < self._look_at:
            return
        self._look_at = now + self._max_s / LOOKS
        self._look_at_start(now)
        late = [(request, page) for request, page in self._pages.items() if now - page.seen_at >= self._max_s]
        waiting = waiting_for_turn(self._crawler) if late else set()
        for request, page in late:
            page.seen_at = now
            if request not in waiting:
                self._end(request, page)

    def _end(self, request: Request, page: Page) -> None:
        awaited = _awaited(page)
        why = f"{awaited} gave no sign of life for {self._max_s:g} s (SCHEDULER_MAX_PAGE_AGE)"
        if page.lease_id:
            self._frontier.bury(page.lease_id, why, again=True)
            page.lease_id = ""
        logger.error("%s goes back to the queue, an attempt is counted: %s", request, why)
        self._count("scheduler/page_too_old")
        page.ended = True
        request.errback = None  # it did not fail; its next owner reads it again
        steps = list(page.steps.items())
        if len(steps) > 1 and steps[0][1][0] is CALLBACK:  # it awaits the others
            del steps[0]
        for step, (_, cancel) in steps:
            if page.steps.pop(step, None):
                cancel()

    def _look_at_start(self, now: float) -> None:
        """End a crawl whose `start()` is not asked any more: it takes no start task, and no other one in this process can."""
        spider: Any = self._crawler.spider
        since = spider.asked_at() if hasattr(spider, "asked_at") else None
        engine = self._crawler.engine
        if since is None or engine is None or not engine.running or engine.needs_backout():
            self._asked_at = now
        elif now - max(since, self._asked_at) >= self._max_s:
            why = (
                f"start() was not asked for {self._max_s:g} s (SCHEDULER_MAX_PAGE_AGE): it waits, or a middleware's process_start"
            )
            logger.error("%s; this crawler ends", why)
            self._asked_at = now
            spider.return_open_task(why)
            stop_crawl(self._crawler, "start_error")


def _awaited(page: Page) -> str:
    """Return the innermost step, for people."""
    return next((name for name, _ in reversed(page.steps.values())), "a request kept in memory")


class _ItemsWithin:
    """Results of an asynchronous callback, until its page is ended. No generator: asyncio keeps books for each of those."""

    def __init__(self, ages: PageAges, page: Page, found: AsyncIterator[Any]) -> None:
        self._ages, self._page, self._next = ages, page, found.__anext__
        self._task: asyncio.Task[Any] | None = None  # that awaits all of them

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    def __anext__(self) -> Awaitable[Any]:
        self._task = self._task or self._ages.present_task()
        return self._ages.until_ended(self._page, CALLBACK, self._next(), StopAsyncIteration, self._task)


async def _result_of(work: Awaitable[Any]) -> Any:
    return await work
