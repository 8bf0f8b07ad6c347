"""`crawl_once`: a small crawl inside a worker, on the reactor in crochet's thread; one process can run any number.

It is watched from the thread of its task, which never waits for the reactor: so a time limit, a revoked task or a cancelled crawl
is obeyed at once, and the crawl is stopped and awaited before that thread goes on. No crawl is ever left running unseen.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec
from itemadapter.adapter import ItemAdapter
from scrapy.utils.project import get_project_settings

from redis_components.errors import ConfigError, TrawlError
from redis_components.pipelines import default_serialize
from redis_components.server.printable import in_words
from workers.crawler.adapt_settings import crawl_alone, fed_from_redis
from workers.crawler.crawl import Crawl, make_crawl
from workers.crawler.crawl_record import ServiceSpider
from workers.crawler.orders import check_settings
from workers.process import pipes

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.settings import Settings

TICK_S = 0.05
LONGEST_S = 3600.0
MOST_BYTES = 1024 * 1024  # of items in a result, as JSON
SLOWEST_PAGE_S = 30.0  # DOWNLOAD_TIMEOUT is at most this: so long may the end of a crawl take
CLOSING_S = 10.0  # more, for pipelines and extensions to close
MOST_ITEMS = 1000  # that can be asked for
STDERR = 2
SILENCE_S = 15.0  # a reactor that has not answered for this time hangs

_WORDY = ("scrapy.addons", "scrapy.crawler", "scrapy.middleware")  # 40 lines of each crawl in the worker's log

logger = logging.getLogger(__name__)


class OnceOutcome(StrEnum):
    """The end of a small crawl."""

    FINISHED = "finished"  # the crawl ended unasked, for any finish reason of Scrapy
    CRASHED = "crashed"  # it could not be started, or not continued
    TIMEOUT = "timeout"  # its time was over; pages in flight were finished
    CANCELLED = "cancelled"  # its worker was shut down


@dataclass(frozen=True, kw_only=True)
class OnceResult:
    """Result of `crawl_once`, as JSON."""

    spider: str
    outcome: OnceOutcome
    reason: str  # Scrapy's finish reason
    error: str | None = None  # the cause of a crash, in one line
    pages: int = 0  # responses received
    items: int = 0  # items scraped
    seconds: float = 0.0
    stats: dict[str, Any] = field(default_factory=dict)  # Scrapy's; times in ISO 8601
    kept: list[Any] = field(default_factory=list)  # the first items, as many as were asked for


class ReactorHung(TrawlError):
    """The reactor does not answer, so a crawl can be neither watched nor stopped; only the end of the process helps."""


@dataclass(frozen=True, kw_only=True)
class OnceOrder:
    """The order of a small crawl. Raises ConfigError if it is invalid."""

    spider: str
    arguments: Mapping[str, Any] = field(default_factory=dict)  # of the spider
    settings: Mapping[str, Any] = field(default_factory=dict)  # Scrapy's, of the allowed ones
    timeout_s: float = 60.0
    items: int = 0  # how many to return

    def __post_init__(self) -> None:
        if not isinstance(self.spider, str) or not self.spider or not self.spider.isprintable():
            raise ConfigError(f"spider = {self.spider!r}: must be the name of a spider")
        for what, given in (("arguments", self.arguments), ("settings", self.settings)):
            if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
                raise ConfigError(f"{what} = {given!r}: must be a mapping of names to values")
        if not _number(self.timeout_s) or not 0 < self.timeout_s <= LONGEST_S:
            raise ConfigError(f"timeout = {self.timeout_s!r}: must be a number of seconds, at most {LONGEST_S:.0f}")
        if not _number(self.items) or self.items != int(self.items) or not 0 <= self.items <= MOST_ITEMS:
            raise ConfigError(f"items = {self.items!r}: must be a whole number from 0 to {MOST_ITEMS}")
        check_settings(self.settings)


def crawl_once(order: OnceOrder, *, cancelled: Callable[[], bool] = lambda: False) -> OnceResult:
    """Crawl in this process until the spider is finished, `cancelled` returns True, or the time is over.

    Raises ConfigError for an impossible crawl, and ReactorHung. An exception in this thread, such as Celery's soft time limit,
    comes out of here when the crawl has ended.
    """
    for name in _WORDY:
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        return _crawl(order, cancelled)
    except ReactorHung as error:
        logger.error("%s: %s; stacks of all threads:", order.spider, error)
        faulthandler.dump_traceback(STDERR, all_threads=True)  # Celery has put something else into sys.stderr
        raise


def _crawl(order: OnceOrder, cancelled: Callable[[], bool]) -> OnceResult:
    began = time.monotonic()
    crawl = make_crawl(
        get_project_settings(),
        order.spider,
        order.arguments,
        owner="",
        service=ServiceSpider(),
        adapt=_adapter(order),
        keep_items=order.items,
    )
    crawl.start()
    try:
        stopped = _watch(crawl, began + order.timeout_s, cancelled)
    finally:
        _end(crawl)
    return _result(order, crawl, stopped, time.monotonic() - began)


def _adapter(order: OnceOrder) -> Callable[[Settings, type[Spider]], None]:
    def adapt(settings: Settings, spider: type[Spider]) -> None:
        if fed_from_redis(spider):
            raise ConfigError(
                f"{order.spider} is fed from Redis and has no start requests: give the fleet a start task for it "
                f"(trawl seed), or run it as one more crawler of the fleet (python -m workers.crawler {order.spider})"
            )
        crawl_alone(settings, spider)
        # What belongs to the whole worker is not for one of its crawls to tune or to judge.
        settings.setdict({"GC_THRESHOLD": [], "MEMUSAGE_ENABLED": False}, priority="project")
        settings.setdict(dict(order.settings), priority="cmdline")
        slowest_s = min(settings.getfloat("DOWNLOAD_TIMEOUT"), SLOWEST_PAGE_S)
        settings.set("DOWNLOAD_TIMEOUT", slowest_s, priority="cmdline")

    return adapt


def _watch(crawl: Crawl, deadline: float, cancelled: Callable[[], bool]) -> OnceOutcome | None:
    """Poll the crawl. Returns None when it has ended, else why it has to be stopped."""
    while crawl.outcome is None:
        if cancelled():
            return OnceOutcome.CANCELLED
        if time.monotonic() > deadline:
            return OnceOutcome.TIMEOUT
        _tick(crawl)
    return None


def _end(crawl: Crawl) -> None:
    """Stop it if it runs, and wait for its end."""
    deadline = time.monotonic() + SLOWEST_PAGE_S + CLOSING_S
    while crawl.outcome is None:
        crawl.stop()
        _tick(crawl)
        if time.monotonic() > deadline:
            raise ReactorHung(f"a crawl did not end within {SLOWEST_PAGE_S + CLOSING_S:.0f} s after the order to stop")


def _tick(crawl: Crawl) -> None:
    crawl.poll()
    if crawl.silent_s() > SILENCE_S:
        raise ReactorHung(f"the reactor has not answered for {SILENCE_S:.0f} s: a callback blocks it")
    crawl.excuse(pipes.sleep(TICK_S))


def _result(order: OnceOrder, crawl: Crawl, stopped: OnceOutcome | None, seconds: float) -> OnceResult:
    ended = crawl.outcome
    assert ended is not None
    crashed = OnceOutcome.CRASHED if ended.failed else OnceOutcome.FINISHED
    return OnceResult(
        spider=order.spider,
        outcome=stopped or crashed,
        reason=ended.reason,
        error=in_words(ended.error) if ended.error else None,
        pages=crawl.figures.pages,
        items=crawl.figures.items,
        seconds=round(seconds, 3),
        stats=msgspec.to_builtins(dict(sorted(crawl.stats().items())), enc_hook=str),
        kept=list(_within(MOST_BYTES, crawl.kept)),
    )


def _within(size: int, items: Iterable[Any]) -> Iterator[Any]:
    """Yield the first items, as JSON has them or else as text, that have so many bytes together."""
    for item in items:
        fields = ItemAdapter(item).asdict()
        try:
            text = default_serialize(fields)
        except (TypeError, ValueError):  # a value or key that JSON has no form for
            text = json.dumps(str(fields))
        size -= len(text)
        if size < 0:
            return
        yield json.loads(text)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
