"""The parts of a Scheduler: its arguments from the settings, its queue, its dupefilter, also of a user's class; its warnings,
and requests that cannot be stored.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy import Request, Spider

from redis_components.dupefilter import RFPDupeFilter, is_fused, named_dupefilter
from redis_components.errors import ConfigError
from redis_components.queue import Base
from redis_components.setting_values import loaded, number_of

from .page_tracker import Page, current_page

if TYPE_CHECKING:
    from collections.abc import Callable

    import redis
    from scrapy.settings import BaseSettings

    from redis_components.frontier.frontier import Frontier


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


def why_never_started(spider: type[Spider]) -> str:
    """Return why a spider of the years before Scrapy 2.13 fetches nothing, and the fix; "" for others."""
    if hasattr(Spider, "start_requests") or not hasattr(spider, "start_requests"):
        return ""
    if not spider.start.__module__.startswith("scrapy."):
        return ""
    return (
        f"{spider.__name__} has start_requests() and Scrapy {scrapy.__version__} does not call it: rename it"
        " `async def start(self)`, with the same lines"
    )


class UnstorableRequests:
    """Requests that no other process can get, kept in memory as parts of their pages; first in, first out."""

    def __init__(self) -> None:
        self._requests: deque[tuple[Request, Page | None]] = deque()
        self._reasons: set[str] = set()

    def __len__(self) -> int:
        """Return the number of requests that wait."""
        return len(self._requests)

    def add(self, request: Request, reason: str) -> None:
        """Keep `request` as a part of the page that is at work now."""
        field = reason.partition(":")[0]
        if field not in self._reasons:
            self._reasons.add(field)
            logger.warning(
                "%s is kept in memory: no other crawler gets it, and after a crash or a stop its page is crawled again: %s"
                " (logged once for each field)",
                request,
                reason,
            )
        self.wait(request)

    def wait(self, request: Request) -> None:
        """Keep `request` until it can be stored, as a part of the page that is at work now."""
        found_on = current_page.get()
        if found_on is not None:
            found_on.parts += 1
        self._requests.append((request, found_on))

    def take(self, but_not: Callable[[Request], bool] = lambda request: False) -> tuple[Request, Page | None] | None:
        """Return the next request that `but_not` does not exclude, and the page that it is a part of; None where
        there is none.
        """
        for place, (request, _) in enumerate(self._requests):
            if not but_not(request):
                found = self._requests[place]
                del self._requests[place]
                return found
        return None

    def enqueue_again(self, enqueue: Callable[[Request], object], frontier: Frontier) -> bool:
        """Enqueue each, as a part of the page that it was found on, until one waits again; return True if none does."""
        for left in reversed(range(len(self))):
            request, found_on = self._requests.popleft()
            around = current_page.set(found_on)
            try:
                enqueue(request)
            finally:
                current_page.reset(around)
            if found_on is not None:
                found_on.finish_part(frontier)
            if len(self) > left:
                return False
        return True

    @property
    def pages(self) -> set[Page]:
        """The pages of the requests that wait."""
        return {page for _, page in self._requests if page is not None}

    def release_pages(self, frontier: Frontier) -> None:
        """Give the pages of these requests back, to be crawled again, as the process ends."""
        if not self._requests:
            return
        logger.warning(
            "%d requests that could not be stored end with this process; the %d pages they came from will be crawled again",
            len(self._requests),
            len(self.pages),
        )
        for page in self.pages:
            page.release(frontier)
