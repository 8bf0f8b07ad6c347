"""Start tasks to Scrapy's requests, and start tasks that one spider makes for another."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy import FormRequest, Request, Spider
from scrapy.exceptions import CloseSpider
from scrapy.http import JsonRequest
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from redis_components.codec.values import is_plumbing
from redis_components.errors import BadStartTask, TaskMustWait
from redis_components.frontier.holds import names_of
from redis_components.frontier.messages import Lane, NextTask
from redis_components.scrapy_glue.engine import frontier_of
from redis_components.scrapy_glue.page_tracker import Page, current_page
from redis_components.server.printable import in_words

from .seeding import StartTask

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from redis_components.frontier.messages import Lease
    from redis_components.spiders import RedisMixin


_OF_TASK = ("url", "headers", "cookies", "cb_kwargs", "priority", "dont_filter", "encoding", "flags")
_MADE_FOR_TASKS = frozenset({"parse", "parse_with_rules", "set_aside"})


def request_of(task: StartTask, spider: Spider) -> Request:
    """Return the request of a start task. Raises BadStartTask for a callback that the spider does not have, and Scrapy's errors
    for an invalid URL, method or encoding.
    """
    meta = task.meta if task.dont_filter else {"allow_offsite": True} | task.meta  # it is asked for, and Redis alone filters it
    arguments: dict[str, Any] = {name: getattr(task, name) for name in _OF_TASK} | {
        "meta": {"not_before": time.time() + task.delay_s} | meta if task.delay_s else meta,
        "callback": _method(spider, task.callback, "callback"),
        "errback": _method(spider, task.errback, "errback"),
    }
    if task.method is not None:
        arguments["method"] = task.method
    if task.formdata:
        return FormRequest(formdata=task.formdata, **arguments)
    if task.json is not None:
        return JsonRequest(data=task.json, **arguments)
    return Request(body=task.body, **arguments)


def _method(spider: Spider, name: str | None, field: str) -> Callable[..., Any] | None:
    if name is None:
        return None
    if not _is_for_tasks(type(spider), name):
        known = sorted(one for one in dir(type(spider)) if _is_for_tasks(type(spider), one))
        raise BadStartTask(
            f"field {field!r}: spider {spider.name!r} has no method {name!r} for it; it has {', '.join(known) or 'none'}"
        )
    return getattr(spider, name)  # type: ignore[no-any-return]


def _is_for_tasks(cls: type, name: str) -> bool:
    """Return True if a start task may name this method. A writer to Redis must not be able to call the methods that run the
    crawl: nothing private, and of the base classes only methods made to receive a response or a failure.
    """
    if name.startswith("_"):
        return False
    owners = [base for base in cls.__mro__ if name in vars(base)]
    if not owners or not isinstance(vars(owners[0])[name], FunctionType):
        return False
    return name in _MADE_FOR_TASKS or not any(map(is_plumbing, owners))


logger = logging.getLogger(__name__)

ROOM_S = 0.05
"""Seconds between two checks that the engine has room for requests that a spider fetches itself."""
NOTHING_FOUND_S = 1.0
FAILED_S = 2.0


@dataclass(kw_only=True, slots=True, eq=False)
class OpenTask:
    """A start task some of whose requests are not with the engine yet."""

    page: Page
    rest: Iterator[Request]


class TaskFeed:
    """Makes requests of leased start tasks. A task is acked when its last request is in the outbox; one that cannot be
    understood is set aside with the reason.
    """

    def __init__(self, spider: RedisMixin) -> None:
        self._spider = spider
        self._frontier = frontier_of(spider.crawler)
        assert spider.crawler.stats is not None
        self._stats = spider.crawler.stats
        self._open: OpenTask | None = None
        self.asked_at = self._frontier.now()
        self._idle_from = self.asked_at  # idle time counts from here at the earliest

    @property
    def over(self) -> bool:
        """The whole crawl was idle for the spider's `max_idle_time` (s; 0: never over)."""
        limit, idle_since = self._spider.max_idle_time, self._frontier.task_idle_since
        return bool(limit) and idle_since is not None and self._frontier.now() - max(idle_since, self._idle_from) >= limit

    async def requests(self) -> AsyncIterator[Request]:
        """Yield the requests of one start task after the other; ends when the crawl is over."""
        while not self.over:
            self.asked_at = self._frontier.now()
            task = self._next_task()
            if task is not None:
                for request in self._rest_of(task):
                    yield request
                    self.asked_at = self._frontier.now()
                continue
            self._want_more()
            await self.pause(1.0)

    def leased_now(self) -> Iterator[Request]:
        """Yield the requests of the tasks that are leased at this moment; asks for more."""
        while (task := self._next_task()) is not None:
            yield from self._rest_of(task)
        self._want_more()

    async def call_hooks(self) -> None:
        """Let the spider fetch in its own way, as long as the crawl is not over: its `schedule_next_requests` is called
        when the engine has room, and again once what it found is stored.
        """
        engine, frontier = self._spider.crawler.engine, self._frontier
        assert engine is not None
        while not self.over:
            self.asked_at = self._frontier.now()
            has_room = not engine.needs_backout() and frontier.waiting_to_start < frontier.config.concurrency
            if not has_room or not frontier.holds.feeding:
                await self.pause(ROOM_S)
                continue
            pause_s, before = NOTHING_FOUND_S, len(frontier.outbox)
            try:
                self._spider.schedule_next_requests()
            except CloseSpider:
                raise
            except Exception:  # the user's own; the crawl goes on, and it is tried again
                pause_s, self._idle_from = FAILED_S, math.inf  # it is not known what waits there
                logger.exception("schedule_next_requests() of %s failed; again in %d s", self._spider, FAILED_S)
            else:
                self._idle_from = min(self._idle_from, frontier.now())
            if len(frontier.outbox) > before:
                await self._stored()
                continue
            until = frontier.now() + pause_s
            while not self.over and not frontier.has_tasks and (left := until - frontier.now()) > 0:
                await self.pause(left)

    async def parallel(self) -> None:
        """Feed the engine from outside of `start()`, until this is cancelled."""
        engine = self._spider.crawler.engine
        assert engine is not None
        while True:
            if self._spider.fetches_itself:
                await self.call_hooks()
            else:
                async for request in self.requests():
                    engine.crawl(request)
            self._frontier.listeners.work()  # Scrapy then asks the spider whether it may close
            await self.pause(1.0)

    def _want_more(self) -> None:
        self._frontier.want_tasks(self._spider.redis_batch_size)

    async def _stored(self) -> None:
        done: Deferred[None] = Deferred()
        self._frontier.flush(lambda: None if done.called else done.callback(None))
        await maybe_deferred_to_future(done)

    async def pause(self, seconds: float) -> None:
        """Wait until start tasks arrive, or the crawl becomes idle, or so many seconds have passed."""
        came: Deferred[None] = Deferred()

        def fire() -> None:
            if not came.called:
                came.callback(None)

        listeners = self._frontier.listeners
        listeners.tasks = fire
        timer = call_later(seconds, fire)
        try:
            await maybe_deferred_to_future(came)
        finally:
            timer.cancel()
            listeners.tasks = lambda: None

    def hand_over(self) -> None:
        """Enqueue the rest of the open task when the crawl closes, as no further request may be taken from it."""
        engine = self._spider.crawler.engine
        if self._open is not None and engine is not None:
            for request in self._rest_of(self._open):
                engine.crawl(request)

    def return_open(self, why: str) -> None:
        """Give the open task back with an attempt counted; its remaining requests are dropped."""
        task, self._open = self._open, None
        if task is not None:
            self._frontier.bury(task.page.lease_id, why, again=True)
            task.page.lease_id, task.rest = "", iter(())

    def _next_task(self) -> OpenTask | None:
        """Return the open task, else the next leased one that can be parsed."""
        while self._open is None and (lease := self._frontier.take_task()) is not None:
            self._open = self._opened(lease)
        return self._open

    def _opened(self, lease: Lease) -> OpenTask | None:
        try:
            made = self._spider.make_request_from_data(lease.data)
            requests = [made] if isinstance(made, Request) else list(made or ())
            for one in requests:
                if not isinstance(one, Request):
                    raise TypeError(f"make_request_from_data() gave {one!r:.100}, which is not a request")
            if requests and self._parks(lease, requests[0].meta.get("site"), requests[0].url):
                return None
        except TaskMustWait as wait:
            if not self._parks(lease, wait.site, ""):
                self._frontier.release(lease.id)  # until it is known here that the site is held
            return None
        except CloseSpider:
            self._frontier.ack(lease.id)  # the task that asks for the end is done
            raise
        except Exception as exc:  # a user's method may raise anything on foreign data: only this task is set aside
            reason = in_words(exc)
            logger.error("start task %.200r is set aside in %s: %s", lease.data, self._frontier.config.keys.dead(), reason)
            self._stats.inc_value("start_tasks/bad")
            self._frontier.bury(lease.id, reason)
            return None
        return OpenTask(page=Page(lease.id), rest=iter(requests))

    def _parks(self, lease: Lease, site: object, url: str) -> bool:
        """Set the task aside where this site, that of its first request, is held."""
        frontier = self._frontier
        return bool(frontier.holds.sites) and frontier.park(lease.id, names_of(site, url), task=True)

    def _rest_of(self, task: OpenTask) -> Iterator[Request]:
        """Yield the remaining requests of `task`; the outbox holds each by the time the next one is taken."""
        for request in task.rest:
            around = current_page.get()
            current_page.set(task.page)
            yield request
            current_page.set(around)
        if self._open is task:
            self._open = None
            task.page.finish_part(self._frontier)
            self._stats.inc_value("start_tasks/taken")


class Feeding:
    """The part of `RedisMixin` that makes start tasks of another service."""

    crawler: Crawler
    feeds: ClassVar[str | None] = None
    """Name of the spider whose start tasks this one makes; None: it makes none."""

    def feed(self, task_id: str, token: str, data: bytes, *, lane: Lane = "", wide: bool = False, site: str = "") -> None:
        """Make a start task for the service named by `feeds`, unless `token` is the last one of `task_id`. In the lane "later"
        it waits until the service has nothing else to do (`lane_later`), in the "backlog" until it is moved to another lane.

        One task waits for each id: a newer one takes its place. A `wide` task covers the narrow one of its id, and is not
        replaced by it, but for its `newest_fields`. `site` is its value of the other spider's `turn_by`: where
        SCHEDULER_MAX_FED_TASKS tasks of it wait, further ones are kept until there is capacity.

        Called in a callback, it is stored before or together with the ack of the callback's request.
        """
        frontier_of(self.crawler).add_task(NextTask(task_id, token, data, lane, wide, site))
