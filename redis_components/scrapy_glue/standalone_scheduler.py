"""scrapy-redis's Scheduler: its constructor, attributes and methods, for subclasses, and for use without an engine.

`store` stores one request outside of an exchange.
"""

from __future__ import annotations

import logging
import warnings
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Self

import msgspec
import redis
from scrapy import Request, Spider
from scrapy.core.scheduler import BaseScheduler
from scrapy.core.scheduler import Scheduler as ScrapysScheduler
from scrapy.dupefilters import BaseDupeFilter
from scrapy.exceptions import ScrapyDeprecationWarning
from scrapy.pqueues import ScrapyPriorityQueue
from scrapy.settings import BaseSettings
from scrapy.squeues import LifoMemoryQueue

from redis_components import connection, defaults
from redis_components.admin.inspector import wipe
from redis_components.codec.requests import Codec, request_codec
from redis_components.codec.values import is_plumbing
from redis_components.dupefilter import is_fused
from redis_components.errors import LayoutError, TrawlError
from redis_components.filters import Filter, Notes, misfit
from redis_components.frontier.frontier import FrontierConfig, exact_score, score_of
from redis_components.frontier.messages import NO_FILTER, NewRequest, QueueOrder
from redis_components.keys import CrawlKeys
from redis_components.queue import Base, order_of, own_codec_of, own_score_of
from redis_components.server.names import crawl_name, namespace_of
from redis_components.server.scripts import script
from redis_components.setting_values import loaded

from .custom_classes import TOKEN
from .engine import fail, is_one_page, running_crawler
from .scheduler_parts import arguments_of, clears_by_itself, log_duplicate, make_dupefilter, make_queue

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler
    from scrapy.statscollectors import StatsCollector
    from twisted.internet.defer import Deferred


def store(client: redis.Redis, keys: CrawlKeys, order: QueueOrder, filter: Filter, request: NewRequest) -> bool:
    """Store `request` unless it was seen before, in one step; True where it was stored.

    Raises LayoutError, and ConfigError where another dupefilter is at that key.
    """
    args = {"order": order.value, "filter": msgspec.msgpack.encode(filter.options()), "fingerprint": request.fingerprint}
    outcome, detail = script("store_one")(client, keys, args | {"score": request.score, "payload": request.payload})
    if outcome == b"layout":
        raise LayoutError(f"{keys.counters()}: another layout version: use the Trawl that crawls there")
    if outcome == b"filter":
        raise misfit(keys.fingerprints(), detail.decode(), filter.form)
    return bool(outcome == b"stored")


logger = logging.getLogger(__name__)


def _completed(own: Callable[[Any, Spider], Any]) -> Callable[[Any, Spider], Any]:
    """Return the `open` of a subclass, after which ours has run, with the queue and the dupefilter that it has made."""

    @wraps(own)
    def completed(self: StandaloneScheduler, spider: Spider) -> Any:
        self.spider, self._is_made, self._own_queue = spider, False, None
        if self._unfit is None:
            self._make_keys()  # its own `open` may call `flush`
        outcome = own(self, spider)
        if self._is_made:
            return outcome
        self._own_queue = vars(self).get("queue")
        ours: Any = next(base for base in type(self).__mro__ if is_plumbing(base))
        return ours.open(self, spider)

    return completed


def _failing_the_crawl(own: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of a subclass, after whose error the crawl does not end with exit code 0: a request is lost."""

    @wraps(own)
    def failing(self: StandaloneScheduler, *arguments: Any) -> Any:
        try:
            return own(self, *arguments)
        except Exception as exc:
            if (crawler := running_crawler(self.spider)) is not None:
                fail(crawler, f"{type(self).__qualname__}.{own.__name__}() failed ({type(exc).__name__}: {exc})")
            raise

    return failing


class StandaloneScheduler(BaseScheduler):
    """Constructor, attributes and methods of scrapy-redis 0.9.1. Every call waits for Redis, and raises what it raises; what is
    taken is not leased.
    """

    # The defaults are here, too: subclasses written for scrapy-redis do not call `__init__`.
    spider: Spider
    server: Any = None
    queue: Any
    df: Any = None
    stats: StatsCollector | None = None
    persist = False
    flush_on_start = False
    queue_key = defaults.SCHEDULER_QUEUE_KEY
    queue_cls: Any = defaults.SCHEDULER_QUEUE_CLASS
    dupefilter_key = defaults.SCHEDULER_DUPEFILTER_KEY
    dupefilter_cls: Any = defaults.SCHEDULER_DUPEFILTER_CLASS
    idle_before_close = 0
    serializer: Any = None
    _unfit: TrawlError | None = None
    _owner = ""  # name under which this process holds leases
    _keys: CrawlKeys
    _codec: Codec
    _own_score: Callable[[Request], float] | None
    _is_made = False
    _own_queue: Any = None  # made by a subclass whose `open` does not call ours

    def __init_subclass__(cls, **options: Any) -> None:
        """Make a subclass work that was written for scrapy-redis: its `open` need not call ours, and a method of it that fails
        makes the crawl fail.
        """
        super().__init_subclass__(**options)
        if is_plumbing(cls):
            return
        for name in ("enqueue_request", "next_request"):
            if (own := vars(cls).get(name)) is not None:
                setattr(cls, name, _failing_the_crawl(own))
        if (own := vars(cls).get("open")) is not None:
            setattr(cls, "open", _completed(own))  # noqa: B010 - mypy takes an assignment for an override

    def __init__(
        self,
        server: redis.Redis,
        persist: bool = False,
        flush_on_start: bool = False,
        queue_key: str = defaults.SCHEDULER_QUEUE_KEY,
        queue_cls: Any = defaults.SCHEDULER_QUEUE_CLASS,
        dupefilter: Any = None,
        dupefilter_key: str = defaults.SCHEDULER_DUPEFILTER_KEY,
        dupefilter_cls: Any = defaults.SCHEDULER_DUPEFILTER_CLASS,
        idle_before_close: int = 0,
        serializer: Any = None,
    ) -> None:
        """Take scrapy-redis's arguments: classes and serializer as objects or dotted paths, `idle_before_close` in seconds.

        Raises TypeError for a negative `idle_before_close`.
        """
        if idle_before_close < 0:
            raise TypeError("idle_before_close cannot be negative")
        self.server = server
        self.persist = persist
        self.flush_on_start = flush_on_start
        self.queue_key = queue_key
        self.queue_cls = queue_cls
        self.df = dupefilter
        self.dupefilter_cls = dupefilter_cls
        self.dupefilter_key = dupefilter_key
        self.idle_before_close = idle_before_close
        self.serializer = serializer

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Read the settings; nothing is sent to Redis yet. Raises ConfigError."""
        return cls(server=connection.from_settings(settings), **arguments_of(settings))

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Return the scheduler with the crawler's stats; Scrapy's own one for `scrapy fetch` and `parse`. Errors are raised in
        `open`: here they would only be a traceback.
        """
        if is_one_page(crawler.spider):
            queues: dict[str, Any] = {"mqclass": LifoMemoryQueue, "pqclass": ScrapyPriorityQueue}
            alone: Any = ScrapysScheduler(BaseDupeFilter(), stats=crawler.stats, crawler=crawler, **queues)
            return alone  # type: ignore[no-any-return]
        try:
            instance = cls.from_settings(crawler.settings)
        except TrawlError as error:
            instance = cls(server=None)  # type: ignore[arg-type]  # it will not be used
            instance._unfit = error
        instance.stats = crawler.stats
        return instance

    def open(self, spider: Spider) -> Deferred[None] | None:
        """Make queue and dupefilter; may be called again after `close`. Raises ConfigError."""
        self.spider = spider
        self._make_parts()
        if self.flush_on_start:
            self.flush()
        if waiting := len(self.queue):
            self._log_resuming(waiting)
        return None

    def _adapted(self, config: FrontierConfig) -> FrontierConfig:
        """Return the configuration with the keys and the order of the queue and the dupefilter."""
        keys = replace(
            config.keys,
            requests=self._keys.requests,
            dupefilter=self._keys.dupefilter,
            custom_queue=self._keys.custom_queue,
            custom_dupefilter=self._keys.custom_dupefilter,
        )
        kind = Notes() if keys.custom_dupefilter else self.df.filter
        return replace(config, keys=keys, filter=kind, order=order_of(type(self.queue)) or QueueOrder.ADVISED)

    def _make_keys(self) -> None:
        """Make the keys by the patterns. Raises ConfigError."""
        namespace = namespace_of(getattr(self.spider, "settings", None) or BaseSettings())
        self._keys = CrawlKeys.for_spider(
            crawl_name(self.spider), namespace=namespace, requests=self.queue_key, dupefilter=self.dupefilter_key
        )

    def _make_parts(self) -> None:
        """Make the parts. Raises ConfigError."""
        if self._unfit:
            raise self._unfit
        settings = getattr(self.spider, "settings", None) or BaseSettings()
        self.serializer = loaded(self.serializer, "SCHEDULER_SERIALIZER")
        codec = request_codec(self.spider, self.serializer, settings.getlist("SCHEDULER_REQUEST_CLASSES"))
        self._make_keys()
        self.queue = self._own_queue
        if self.queue is None:
            self.queue = make_queue(
                self.queue_cls, server=self.server, spider=self.spider, key=self._keys.requests, serializer=self.serializer
            )
        if isinstance(self.queue, Base):
            self.queue.use_codec(codec)
        self._codec = own_codec_of(self.queue) or codec
        self._own_score = own_score_of(self.queue)
        if self.df is None:
            self.df = make_dupefilter(self.dupefilter_cls, self.spider)
        self._keys = replace(  # a subclass may have changed its key
            self._keys,
            requests=getattr(self.queue, "key", self._keys.requests),
            dupefilter=self.df.key if is_fused(type(self.df)) else self._keys.dupefilter,
            custom_queue=order_of(type(self.queue)) is None,
            custom_dupefilter=not is_fused(type(self.df)),
        )
        self._is_made = True

    def close(self, reason: str) -> Deferred[None] | None:  # noqa: ARG002
        """Delete queue and dupefilter, unless `persist` is set."""
        if not self.persist:
            self.flush()
        return None

    def flush(self) -> None:
        """Delete the queue and the dupefilter, unless another process is crawling with them."""
        keys, clears_itself = self._keys, clears_by_itself(self.df)
        fingerprints = keys.custom_dupefilter or not clears_itself
        at_work = wipe(self.server, keys, but_not_for=self._owner, fingerprints=fingerprints)
        if at_work is not None:
            logger.warning("flush: not done, %s is crawling with this queue", at_work)
            return
        if keys.custom_queue:
            self.queue.clear()
        if clears_itself:
            self.df.clear()
        logger.info("flush: wiped")

    def enqueue_request(self, request: Request) -> bool:
        """Store a request; False where it was seen before. Raises Unserializable, LayoutError, ConfigError, RedisError, and what
        a queue or dupefilter class of the user's raises.
        """
        order = order_of(type(self.queue))
        if order is not None and is_fused(type(self.df)):
            mark = NO_FILTER if request.dont_filter else self.df.fingerprint(request)
            new = NewRequest(mark, self._score(request), self._codec.encode(request))
            is_new = store(self.server, self._keys, order, self.df.filter, new)
        else:
            is_new = request.dont_filter or not self.df.request_seen(request)
            if is_new:
                self.queue.push(request)
        if not is_new:
            log_duplicate(self.df, request, self.spider)
        elif self.stats:
            self.stats.inc_value("scheduler/enqueued/redis")
        return is_new

    def _score(self, request: Request) -> str:
        return score_of(request.priority) if self._own_score is None else exact_score(self._own_score(request))

    def next_request(self) -> Request | None:
        """Remove and return the next request, or None after `idle_before_close` seconds. Raises Undecodable, RedisError."""
        request: Request | None = self.queue.pop(self.idle_before_close)
        if request is not None:
            request.meta.pop(TOKEN, None)
            if self.stats:
                self.stats.inc_value("scheduler/dequeued/redis")
        return request

    def has_pending_requests(self) -> bool:
        """Return True if a request waits."""
        return len(self) > 0

    def __len__(self) -> int:
        """Return the number of requests that wait."""
        return len(self.queue)

    def _log_resuming(self, waiting: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ScrapyDeprecationWarning)  # scrapy-redis's users may listen to it here
            self.spider.log(f"Resuming crawl ({waiting} requests scheduled)")
