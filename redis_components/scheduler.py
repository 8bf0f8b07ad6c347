"""Scrapy's scheduler on the shared frontier: synchronous, never waiting for Redis.

SCHEDULER = "redis_components.scheduler.Scheduler"
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Self

import redis
from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.utils.misc import load_object

from . import defaults
from .engine import close_frontier, frontier_of, stop_crawl, watch_finished
from .errors import TrawlError, Undecodable, Unserializable
from .exchange import NO_FILTER, NewRequest
from .inspector import wipe
from .request_codec import RequestCodec

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.internet.defer import Deferred
    from twisted.python.failure import Failure

    from .frontier import Frontier

logger = logging.getLogger(__name__)


def reason_of(failure: Failure) -> str:
    """Why a request failed, for people: `HTTP 404`, or the error's name and text."""
    if isinstance(failure.value, HttpError):
        return f"HTTP {failure.value.response.status}"
    return f"{type(failure.value).__name__}: {failure.getErrorMessage()}"


class Scheduler(BaseScheduler):
    """Leases requests from the frontier and acks each when Scrapy is done with it.

    Leases are kept beside the requests, not in `meta`: copies, retries and redirects would carry them along and ack twice.
    """

    def __init__(self, crawler: Crawler, frontier: Frontier, *, persist: bool, flush_on_start: bool, max_seen: int) -> None:
        self._crawler = crawler
        self._frontier = frontier
        self.persist = persist
        self.flush_on_start = flush_on_start
        self._max_seen = max_seen
        self._seen: set[bytes] = set()
        self._leases: dict[Request, str] = {}
        self._given_up: dict[Request, str] = {}
        self._unserializable: deque[Request] = deque()
        self._reasons: set[str] = set()
        assert crawler.stats is not None
        self.stats = crawler.stats

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read the settings; nothing is sent to Redis yet."""
        settings = crawler.settings
        return cls(
            crawler,
            frontier_of(crawler),
            persist=settings.getbool("SCHEDULER_PERSIST", defaults.SCHEDULER_PERSIST),
            flush_on_start=settings.getbool("SCHEDULER_FLUSH_ON_START"),
            max_seen=settings.getint("SCHEDULER_LOCAL_SEEN", 100_000),
        )

    def open(self, spider: Spider) -> None:
        """Hook into the engine and begin to exchange. Raises IncompatibleEngine, ConfigError."""
        self.spider = spider
        settings = self._crawler.settings
        self._codec = RequestCodec(spider, settings.getlist("SCHEDULER_REQUEST_CLASSES"))
        dupefilter = load_object(settings["DUPEFILTER_CLASS"])
        if not hasattr(dupefilter, "fingerprint"):  # Scrapy's default, or a filter that knows no fingerprints: ours stands in
            dupefilter = load_object(defaults.SCHEDULER_DUPEFILTER_CLASS)
        self.df = dupefilter.from_crawler(self._crawler)
        self._wake = watch_finished(self._crawler, self.finish_request)
        listeners = self._frontier.listeners
        listeners.work = self._wake
        listeners.duplicate = self._known_to_redis
        listeners.fenced = self._fenced
        listeners.refused = self._refused
        if self.flush_on_start:
            self.flush()
        for failed in (signals.spider_error, signals.item_error):
            self._crawler.signals.connect(self._page_failed, failed)
        listeners.left = self._wipe_if_finished
        self._frontier.open()

    def flush(self) -> None:
        """Delete the queue and the dupefilter, unless another process is crawling with them."""
        outcome = wipe(self.df.server, self._frontier.config.keys, but_not_for=self._frontier.owner)
        (logger.info if outcome == "wiped" else logger.warning)("flush: %s", outcome)

    def enqueue_request(self, request: Request) -> bool:
        """Hand a request to the frontier. Never raises: a hundred exceptions here would wedge the engine for ever."""
        try:
            fingerprint = NO_FILTER if request.dont_filter else self.df.fingerprint(request)
            if not request.dont_filter and self._seen_here(fingerprint):
                self._filtered(request)
                return False
            stored = NewRequest(fingerprint, str(-request.priority), self._codec.encode(request))
        except Exception as exc:  # Unserializable; or a class of the user's that raises, which is no reason to wedge the engine
            self._keep_here(request, str(exc) if isinstance(exc, Unserializable) else f"{type(exc).__name__}: {exc}")
            return True
        self._frontier.add_request(stored)
        self.stats.inc_value("scheduler/enqueued/redis")
        self.stats.inc_value("scheduler/enqueued")
        return True

    def _seen_here(self, fingerprint: bytes) -> bool:
        """Whether this process has met the request; Redis is asked in the exchange that stores it."""
        if fingerprint in self._seen:
            return True
        if len(self._seen) >= self._max_seen:
            self._seen.clear()
        self._seen.add(fingerprint)
        return False

    def _keep_here(self, request: Request, reason: str) -> None:
        """A request that cannot be stored lives in this process's memory, like in Scrapy's own scheduler."""
        field = reason.partition(":")[0]
        if field not in self._reasons:
            self._reasons.add(field)
            logger.warning("%s is kept in memory, a crash loses it: %s (said once for each field)", request, reason)
        self._unserializable.append(request)
        self.stats.inc_value("scheduler/unserializable")
        self.stats.inc_value("scheduler/enqueued")

    def next_request(self) -> Request | None:
        """The next request of this process, or None; the engine is woken when there is one."""
        if self._unserializable:
            self.stats.inc_value("scheduler/dequeued")
            return self._unserializable.popleft()
        while (lease := self._frontier.take()) is not None:
            try:
                request = self._codec.decode(lease.data)
            except Undecodable as exc:
                logger.error("a request is set aside in %s: %s", self._frontier.config.keys.dead(), exc)
                self.stats.inc_value("scheduler/undecodable")
                self._frontier.bury(lease.id, str(exc))
                continue
            self._leases[request] = lease.id
            self.stats.inc_value("scheduler/dequeued/redis")
            self.stats.inc_value("scheduler/dequeued")
            return request
        return None

    def has_pending_requests(self) -> bool:
        """False only when Redis has proved that nothing is ready, leased by anybody, or on its way."""
        return bool(self._unserializable) or not self._frontier.idle

    def __len__(self) -> int:
        """Requests that nobody has started, at the last answer of Redis."""
        return self._frontier.waiting_to_start + len(self._unserializable)

    def finish_request(self, request: Request) -> None:
        """Scrapy is done with `request`: ack it (edge c). The name is that of scrapy/scrapy#7978."""
        lease_id = self._leases.pop(request, None)
        reason = self._given_up.pop(request, None)
        if lease_id is None:
            return
        if reason is None:
            self._frontier.ack(lease_id)
        else:
            logger.error("%s is set aside in %s: %s", request, self._frontier.config.keys.dead(), reason)
            self.stats.inc_value("scheduler/given_up")
            self._frontier.bury(lease_id, reason)

    def give_up(self, request: Request, reason: str) -> None:
        """When Scrapy is done with `request`, keep it among the dead ones with `reason` (edge f) instead of acking it."""
        if request in self._leases:
            self._given_up[request] = reason

    def _page_failed(self, failure: Failure, response: Response | None) -> None:
        """A callback that raised, or an item that no pipeline took: the page is kept, to be replayed once that is mended."""
        request = getattr(response, "request", None)  # start() and errbacks have no response
        if request is not None:
            self.give_up(request, reason_of(failure))

    def _filtered(self, request: Request) -> None:
        self.df.log(request, self.spider)
        self.stats.inc_value("dupefilter/filtered")

    def _known_to_redis(self, payload: bytes) -> None:
        request = self._codec.decode(payload)
        self._filtered(request)
        self._crawler.signals.send_catch_log(signals.request_dropped, request=request, spider=self.spider)

    def _fenced(self) -> None:
        self._leases.clear()
        self._given_up.clear()
        self._seen.clear()
        self._wake()

    def _refused(self, error: TrawlError) -> None:
        logger.error("%s", error)
        stop_crawl(self._crawler, "refused")

    def close(self, reason: str) -> Deferred[None]:  # noqa: ARG002
        """Release what was not started and wait until everything is stored, for a bounded time."""
        if self._unserializable:
            logger.warning("%d requests that could not be stored are dropped with this process", len(self._unserializable))
        hand_over = getattr(self.spider, "hand_over_open_task", None)
        if hand_over is not None:
            hand_over()
        return close_frontier(self._crawler)

    def _wipe_if_finished(self) -> None:
        """SCHEDULER_PERSIST=False: the last process of a finished crawl removes its keys; never what others work on."""
        if self.persist or not self._frontier.idle:
            return
        try:
            wipe(self.df.server, self._frontier.config.keys, but_not_for=self._frontier.owner)
        except redis.RedisError as exc:
            logger.warning("the finished crawl's keys are not removed: %s", exc)
