"""The parts of a Scheduler: its arguments from the settings, its queue, its dupefilter, also of a user's class."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy import signals

from redis_components.dupefilter import RFPDupeFilter, is_fused, named_dupefilter
from redis_components.errors import ConfigError
from redis_components.queue import Base
from redis_components.setting_values import loaded, number_of

if TYPE_CHECKING:
    import redis
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings


def arguments_of(settings: BaseSettings) -> dict[str, Any]:
    """Return the constructor's arguments, but `server`; those without a setting are left to their defaults. Raises
    ConfigError.
    """
    idle_s = number_of(settings, "SCHEDULER_IDLE_BEFORE_CLOSE", 0)
    if idle_s < 0:
        raise ConfigError(f"SCHEDULER_IDLE_BEFORE_CLOSE = {idle_s} is out of range: 0 or more")
    arguments: dict[str, Any] = {
        "persist": settings.getbool("SCHEDULER_PERSIST"),
        "flush_on_start": settings.getbool("SCHEDULER_FLUSH_ON_START"),
        "idle_before_close": idle_s,
        "queue_key": settings.get("SCHEDULER_QUEUE_KEY"),
        "queue_cls": settings.get("SCHEDULER_QUEUE_CLASS"),
        "dupefilter_key": settings.get("SCHEDULER_DUPEFILTER_KEY"),
        "dupefilter_cls": named_dupefilter(settings),
        "serializer": settings.get("SCHEDULER_SERIALIZER"),
    }
    return {name: value for name, value in arguments.items() if value not in (None, "")}


def make_queue(cls: Any, *, server: redis.Redis, spider: Spider, key: str, serializer: Any) -> Any:
    """Make a queue of the class (or dotted path) `cls`. Raises ConfigError for anything but a queue class."""
    queue_class = loaded(cls, "SCHEDULER_QUEUE_CLASS")
    lacking = [name for name in ("push", "pop", "__len__", "clear") if not hasattr(queue_class, name)]
    if lacking:
        raise ConfigError(
            f"SCHEDULER_QUEUE_CLASS = {cls!r} has no {' and no '.join(lacking)}; name a class of redis_components.queue"
            " (PriorityQueue, FifoQueue, LifoQueue, RandomQueue), a subclass of one, or a class with these methods"
        )
    if isinstance(queue_class, type) and issubclass(queue_class, Base):
        key = key.replace("%", "%%")  # it is a pattern to them
    try:
        return queue_class(server=server, spider=spider, key=key, serializer=serializer)
    except TypeError as exc:
        raise ConfigError(f"Failed to instantiate queue class '{cls}' (SCHEDULER_QUEUE_CLASS): {exc}") from exc


def make_dupefilter(cls: Any, spider: Spider) -> Any:
    """Make a dupefilter of the class (or dotted path) `cls`, by the first of its constructors that fits. Raises ConfigError for
    anything but a dupefilter.
    """
    named = loaded(cls, "DUPEFILTER_CLASS")
    if not hasattr(named, "request_seen"):
        raise ConfigError(
            f"DUPEFILTER_CLASS = {cls!r} has no request_seen; name a class of redis_components.dupefilter, or your own"
        )
    if hasattr(named, "from_spider"):
        return named.from_spider(spider)
    if hasattr(named, "from_settings"):
        return named.from_settings(spider.settings)
    if hasattr(named, "from_crawler"):
        return named.from_crawler(spider.crawler)
    return named()


def clears_by_itself(dupefilter: object) -> bool:
    """Return True if only the dupefilter's own `clear` can delete its keys: a class of the user's, or a subclass that defines
    it.
    """
    cls = type(dupefilter)
    return hasattr(cls, "clear") and not (is_fused(cls) and cls.clear is RFPDupeFilter.clear)


def is_scrapys_kind(dupefilter: object) -> bool:
    """Return True if a dupefilter is opened and closed with each crawl; scrapy-redis's kind lives on in Redis, and
    has `clear`.
    """
    return hasattr(dupefilter, "open") and hasattr(dupefilter, "close") and not hasattr(dupefilter, "clear")


def log_duplicate(dupefilter: Any, request: Any, spider: Spider) -> None:
    """Call the dupefilter's `log` for a filtered `request`, where it has one."""
    log = getattr(dupefilter, "log", None)
    if log is not None and getattr(log, "__qualname__", "") != "BaseDupeFilter.log":  # that one only warns of itself
        log(request, spider)


logger = logging.getLogger(__name__)

IGNORED = "depth/request_ignored_count"
"""The stat in which Scrapy's DepthMiddleware counts them; shared, it is the sum over all processes."""


def watch_depth_limit(crawler: Crawler) -> None:
    """Let the crawl warn once, when it closes, how many requests this process has ignored, where there are any."""

    def warn() -> None:
        assert crawler.stats is not None
        ignored = crawler.stats.get_value(IGNORED, 0)
        if ignored:
            logger.warning(
                "DEPTH_LIMIT = %s: %s requests that lie deeper were ignored by this process (stat %s);"
                " each page of a chain lies one deeper than the page before, so raise the limit or set it to 0",
                crawler.settings.get("DEPTH_LIMIT"),
                ignored,
                IGNORED,
            )

    crawler.signals.connect(warn, signals.spider_closed, weak=False)
