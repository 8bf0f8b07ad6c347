"""A spider's crawl in the reactor's thread, watched from the main thread.

crochet's reactor thread is started without two loops that run ten times a second for as long as the process lives. One collects
ended child processes, the other looks if the main thread is alive. In an idle crawler they were a third of all wake-ups. The
first runs once a second here, the second waits.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import crochet
from crochet import _shutdown
from scrapy import Spider, signals
from scrapy.crawler import CrawlerRunner
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.reactor import install_reactor, is_reactor_installed
from twisted.internet.task import LoopingCall

from redis_components.errors import ConfigError, there_are
from redis_components.scheduler import scheduler_of
from redis_components.scrapy_glue.engine import name_owner
from workers.targets import consumer_of

from . import scrapy_internals
from .crawl_record import ServiceSpider, record_of
from .doors import close_doors

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import Settings

    from redis_components.keys import CrawlRecord


REAP_S = 1.0
NAME = "CrochetReactor"


def start() -> None:
    """Call `crochet.setup`, once.

    Assumed of crochet: `EventLoop.setup` lets the reactor run in a thread named CrochetReactor, in which it calls
    `_startReapingProcesses`, a LoopingCall of `_reapAllProcesses`; `Watchdog.run` polls `_canary`, the main thread, and then
    calls `_shutdown_function`, which stops the reactor.
    """
    loop: Any = vars(crochet)["_main"]
    watchdog: Any = _shutdown._watchdog
    if not loop._started:
        loop._startReapingProcesses = lambda: _reap(loop)
        watchdog.run = lambda: _stop_after(watchdog._canary, watchdog._shutdown_function)
    crochet.setup()


def is_gone() -> bool:
    """Return True where the thread has ended: SystemExit in a callback ends it without a word."""
    return not any(thread.name == NAME for thread in threading.enumerate())


def _reap(loop: Any) -> None:
    looping = LoopingCall(loop._reapAllProcesses)
    looping.clock = loop._reactor
    looping.start(REAP_S, now=False)


def _stop_after(main: threading.Thread, stop: Any) -> None:
    main.join()
    stop()


_installing = threading.Lock()
_tuned = False

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The crawl's figures from the last answer of the reactor."""

    pages: int = 0  # responses received
    items: int = 0  # items scraped
    answered: int = 0  # responses other than HTTP errors
    raised: int = 0  # exceptions of callbacks
    in_flight: int = 0  # requests that Scrapy has begun with and is not done with
    oldest_s: float = 0.0  # since the one of them that waits longest gave a sign of life
    oldest: str = ""  # the event that it waits for


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The end of the crawl."""

    reason: str  # Scrapy's finish reason: `finished`, `shutdown`, `start_error`, ...
    error: BaseException | None = None  # it could not be started, or the reactor is gone

    @property
    def failed(self) -> bool:
        """True when it could not be started, or could not go on."""
        return self.error is not None or self.reason == "start_error"


class Crawl:
    """A spider's crawl: `start` it, `poll` it from the main thread, `stop` it. No method ever waits for the reactor."""

    def __init__(
        self, runner: CrawlerRunner, spider: type[Spider], arguments: Mapping[str, Any], *, owner: str = "", keep_items: int = 0
    ) -> None:
        self._runner = runner
        self._spider = spider
        self._arguments = dict(arguments)
        self._owner = owner
        self._keep_items = keep_items
        self.kept: list[Any] = []  # the first `keep_items` items
        self._crawler: Crawler | None = None
        self._pages = 0
        self._items = self._answered = self._raised = 0
        self._reason = ""
        self._result: crochet.EventualResult[Any] | None = None
        self._giving: crochet.EventualResult[Any] | None = None
        self._asks = self._stop_asked = False
        self._answered_at = time.monotonic()
        self.running = False  # the engine runs: the crawl is open and has no order to stop
        self.lag_s = 0.0  # how long the last answer of the reactor took
        self.figures = Figures()
        self.outcome: Outcome | None = None  # None while it runs
        self.record: CrawlRecord | None = None  # None until its spider is opened
        self.on_end: Callable[[], object] = lambda: None  # called in the reactor's thread, once `poll` would find an outcome

    def start(self) -> None:
        """Start the reactor's thread, and the crawl in it; its errors come as an `outcome`."""
        start()
        self._answered_at = time.monotonic()
        self._result = crochet.run_in_reactor(self._begin)()

    def poll(self) -> None:
        """Check for the end of the crawl, and ask the reactor for its figures, if it has answered."""
        if self.outcome is None:
            if not self._asks:
                self._asks = True
                crochet.run_in_reactor(self._answer)(time.monotonic())
            self._poll_result()  # last: it knows the last figures

    def silent_s(self) -> float:
        """Return the seconds since the reactor last answered."""
        return time.monotonic() - self._answered_at

    def excuse(self, seconds: float) -> None:
        """Do not count `seconds` of silence: the whole process was frozen, not the reactor."""
        self._answered_at += seconds

    def stop(self) -> None:
        """Let the pages in flight finish, then close the spider; call it until there is an outcome."""
        # Not before the engine runs: such a call is lost. Once it was stopped, it does not run any more.
        if self.running and not self._stop_asked:
            self._stop_asked = True
            crochet.run_in_reactor(self._halt)()

    def stats(self) -> dict[str, Any]:
        """Return Scrapy's stats of this crawl, once it has an outcome; empty when it did not come so far."""
        return scrapy_internals.stats_of(self._crawler)

    def give_back(self) -> bool:
        """Return the pages in flight to the queue, without time to finish them. Call it until it returns True: Redis has them."""
        if self._giving is None:
            self._giving = crochet.run_in_reactor(self._hand_over)()
        try:
            self._giving.wait(0)
        except crochet.TimeoutError:
            return False
        except Exception:
            logger.warning("the leases of pages in flight could not be returned; they will expire", exc_info=True)
        return True

    # in the reactor's thread

    def _begin(self) -> Any:
        _tune_reactor(self._runner)
        crawler = self._crawler = self._runner.create_crawler(self._spider)
        if self._owner:
            name_owner(crawler, self._owner)
        # Counted here and not read from the stats: those may be shared with other processes.
        crawler.signals.connect(self._count_page, signals.response_received)
        crawler.signals.connect(self._count_item, signals.item_scraped)
        crawler.signals.connect(self._count_error, signals.spider_error)
        crawler.signals.connect(self._keep_reason, signals.spider_closed)
        crawler.signals.connect(self._find_itself, signals.spider_opened)
        crawling = self._runner.crawl(crawler, **self._arguments)
        return crawling.addBoth(scrapy_internals.in_a_later_turn, self.on_end)

    def _find_itself(self) -> None:
        assert self._crawler is not None
        self.record = record_of(self._crawler)

    def _count_page(self, response: Response) -> None:
        self._pages += 1
        self._answered += response.status < 400

    def _count_error(self) -> None:
        self._raised += 1

    def _count_item(self, item: Any) -> None:
        self._items += 1
        if len(self.kept) < self._keep_items:
            self.kept.append(item)

    def _keep_reason(self, reason: str) -> None:
        self._reason = reason

    def _answer(self, asked_at: float) -> None:
        engine = scrapy_internals.engine_of(self._crawler)
        scheduler = scheduler_of(self._crawler) if self._crawler and engine else None
        oldest_s, oldest = scheduler.ages.oldest() if scheduler is not None and scheduler.ages else (0.0, "")
        in_flight = scrapy_internals.pages_in_flight(engine) if engine else 0
        self.figures = replace(self._counted(), in_flight=in_flight, oldest_s=round(oldest_s, 1), oldest=oldest)
        self.running = bool(engine and engine.running)
        self._answered_at = time.monotonic()
        self.lag_s = self._answered_at - asked_at
        self._asks = False

    def _counted(self) -> Figures:
        return Figures(pages=self._pages, items=self._items, answered=self._answered, raised=self._raised)

    def _halt(self) -> None:
        stopping = scrapy_internals.stop(self._crawler) if self._crawler else None
        if stopping is not None:  # the crawl's own result decides; a failure of this one only must not be dropped unseen
            deferred_from_coro(stopping).addErrback(
                lambda failure: logger.warning("the engine did not stop cleanly: %s", failure.getTraceback())
            )

    def _hand_over(self) -> Any:
        scheduler = scheduler_of(self._crawler) if self._crawler and scrapy_internals.engine_of(self._crawler) else None
        return None if scheduler is None else scheduler.give_back()  # an empty one is false

    # in the main thread

    def _poll_result(self) -> None:
        if self._result is None:
            return
        try:
            self._result.wait(0)
        except crochet.TimeoutError:
            return
        except Exception as error:  # a spider or a component can raise anything while it is opened
            logger.exception("the crawl could not be run")
            self.outcome = Outcome(reason=self._reason or "error", error=error)
        else:
            self.outcome = Outcome(reason=self._reason or "finished")
        self.running, self.figures = False, self._counted()  # final


def make_crawl(
    settings: Settings,
    spider: str,
    arguments: Mapping[str, Any],
    *,
    owner: str,
    service: ServiceSpider,
    adapt: Callable[[Settings, type[Spider]], object],
    keep_items: int = 0,
) -> Crawl:
    """Install the reactor that the settings name, if there is none, and find the spider. Raises ConfigError for an unknown one.

    `service`: what the service declares of its spider.
    `owner`: id under which the frontier keeps its leases; "": a new one. `keep_items`: how many items to keep. `adapt` may
    change the settings once the spider is known.

    In this order: a spider's module may import `twisted.internet.reactor`, and then it is too late for another one.
    """
    ensure_reactor(settings)
    try:
        runner = CrawlerRunner(settings)
    except (ImportError, SyntaxError) as error:
        logger.exception("a module of SPIDER_MODULES cannot be imported")
        raise ConfigError(f"the spiders cannot be imported: {type(error).__name__}: {error}") from error
    try:
        found = service.named(spider, runner.spider_loader.load(service.loads or spider))
    except KeyError:
        names = runner.spider_loader.list()
        where = "" if names else "; is this the folder of scrapy.cfg?"
        wanted = service.loads or spider
        raise ConfigError(f"unknown spider {wanted!r}; {there_are(wanted, names)}{where}") from None
    consumer_of(found)  # an unknown consumer is refused before anything is crawled
    found.update_settings(settings)  # as Scrapy does once more; what follows asks for the spider's own, too
    adapt(settings, found)
    close_doors(settings)
    return Crawl(runner, found, arguments, owner=owner, keep_items=keep_items)


def ensure_reactor(settings: Settings) -> None:
    """Install the one reactor of this process. Its kind is the first crawl's; Scrapy itself refuses a spider that
    needs another.
    """
    with _installing:  # threads of one worker may begin small crawls at the same time
        if not is_reactor_installed():
            install_reactor(settings["TWISTED_REACTOR"], settings["ASYNCIO_EVENT_LOOP"])


def _tune_reactor(runner: CrawlerRunner) -> None:
    """Do the part of Scrapy's CrawlerProcess that CrawlerRunner lacks; in the reactor's thread, once."""
    global _tuned
    if not _tuned:
        _tuned = True
        scrapy_internals.tune_reactor(runner)
        scrapy_internals.call_once_an_interval()
        scrapy_internals.start_tasks_as_needed()
