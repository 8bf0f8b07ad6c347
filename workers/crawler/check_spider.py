"""Makes a service's spider and asks it for its first request, as a crawl does, and reports what would starve or end the crawl.

Only for a separate process (`check_service`): it runs the project's code, in that process's reactor.
"""

from __future__ import annotations

import ast
import inspect
import signal
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from pydispatch.dispatcher import getAllReceivers, liveReceivers
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.settings import BaseSettings, Settings
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.reactor import verify_installed_asyncio_event_loop, verify_installed_reactor
from twisted.python.failure import Failure

from redis_components.errors import TrawlError
from redis_components.scrapy_glue.scheduler_parts import why_never_started
from redis_components.setting_values import object_of
from redis_components.spiders import RedisMixin

from .doors import ClosedDoor, Doors, close_doors

MAKE_S = START_S = 30
"""Within so long a spider is made, and its start() yields."""
_FEEDING = (signals.spider_idle, signals.spider_opened, signals.engine_started, signals.scheduler_empty)
"""A spider that listens to one of these may get requests, or stay open, by it."""
_NOT_PROJECTS = ("scrapy.", "redis_components.", "workers.", "forums.")


class TooLong(BaseException):
    """A step takes too long. No Exception: code of the project would catch it."""


class _NeedsEngine(BaseException):
    """The code of a spider asks for the engine, which only a crawl has."""


class _NoEngine:
    def __getattr__(self, name: str) -> NoReturn:
        raise _NeedsEngine(name)


@contextmanager
def within(seconds: float, step: str) -> Iterator[None]:
    """Raise TooLong in this block after `seconds`."""

    def end(*_: object) -> NoReturn:
        raise TooLong(f"{step} takes longer than {seconds:g} s: start() and callbacks may wait, a module and __init__ may not")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def check_reactor(own: BaseSettings) -> None:
    """Compare the spider's reactor with the installed one, which the project's settings name. Raises TrawlError."""
    if not own.getbool("TWISTED_REACTOR_ENABLED", True):
        raise TrawlError("TWISTED_REACTOR_ENABLED = False: a crawler of the fleet runs Scrapy in a reactor; remove the setting")
    path, loop = own["TWISTED_REACTOR"], own["ASYNCIO_EVENT_LOOP"]
    try:
        if path:
            verify_installed_reactor(path)
        if loop and path and issubclass(load_object(path), load_object(Settings()["TWISTED_REACTOR"])):
            verify_installed_asyncio_event_loop(loop)
    except RuntimeError as error:
        raise TrawlError(
            f"{error}: name TWISTED_REACTOR and ASYNCIO_EVENT_LOOP in the settings of the project or of the service, not of the"
            " spider, and import twisted.internet.reactor within functions"
        ) from None


class MadeSpider:
    """A spider as a crawl makes it."""

    def __init__(self, kind: type[Spider], settings: Settings, arguments: Mapping[str, str]) -> None:
        settings = settings.copy()
        close_doors(settings, kind)
        self._crawler = Crawler(kind, settings)
        self._own = self._crawler.settings
        with within(MAKE_S, f"making {kind.__name__}"):
            self._spider = self._crawler.spider = kind.from_crawler(self._crawler, **arguments)
        self._is_fed = isinstance(self._spider, RedisMixin)
        self._may_be_fed = self._is_fed or any(self._ways_of_feeding())

    def check(self) -> Iterator[str]:
        """Yield the faults of its beginning. Raises TrawlError for a spider that fetches nothing, and what start() raises."""
        kind = type(self._spider)
        if isinstance(self._spider, RedisMixin):
            if self._spider.server is None:
                raise TrawlError(f"{kind.__name__} never calls setup_redis(crawler), so it is fed nothing: do so in from_crawler")
            return
        if why := why_never_started(kind):
            raise TrawlError(why)
        found = self._first()
        if found is None and not self._may_be_fed:
            raise TrawlError(
                f"{kind.__name__} fetches nothing: its start() yields nothing with these arguments; give it start_urls, or"
                " inherit redis_components.spiders.RedisSpider to feed it by trawl seed-urls"
            )
        if isinstance(found, Request):
            try:
                Doors(self._crawler).process_request(found)
            except ClosedDoor as closed:
                yield f"its first request would not be sent: {closed}"

    def ends(self) -> str:
        """Return why its crawls end, one after the other, and the fix; "" where they go on."""
        if isinstance(self._spider, RedisMixin):
            idle_s = self._spider.max_idle_time
            return (
                f"it ends after {idle_s} s without work{_AGAIN}unset max_idle_time and MAX_IDLE_TIME_BEFORE_CLOSE"
                if idle_s
                else ""
            )
        if self._may_be_fed or _may_go_on(type(self._spider).start):
            return ""
        return (
            f"it ends when the requests of its start() are done{_AGAIN}run it as a job (size 0 and trawl job start), or inherit"
            " redis_components.spiders.RedisSpider to feed it"
        )

    def _ways_of_feeding(self) -> Iterator[bool]:
        """Yield for each way, other than start(), if the project may have requests by it."""
        yield not object_of(self._own, "SCHEDULER").__module__.startswith(_NOT_PROJECTS)
        for one in _FEEDING:
            yield any(liveReceivers(getAllReceivers(self._crawler, one)))
        for name in ("EXTENSIONS", "SPIDER_MIDDLEWARES", "DOWNLOADER_MIDDLEWARES", "ITEM_PIPELINES"):
            for path, place in self._own.getdict(name).items():
                part = load_object(path) if place is not None else None
                if inspect.isclass(part) and not f"{part.__module__}.".startswith(_NOT_PROJECTS):
                    yield "spider_idle" in _source(part) or hasattr(part, "process_start")

    def _first(self) -> Any:
        """Return what start() yields first, None for nothing; Ellipsis where only a crawl would show it."""
        from twisted.internet import reactor as installed

        reactor: Any = installed
        self._crawler.stats = MemoryStatsCollector(self._crawler)
        fingerprinter = load_object(self._own["REQUEST_FINGERPRINTER_CLASS"])
        self._crawler.request_fingerprinter = build_from_crawler(fingerprinter, self._crawler)
        self._crawler.engine = _NoEngine()  # type: ignore[assignment]
        found: list[Any] = []
        failed: list[BaseException] = []

        async def ask() -> None:
            async for one in self._spider.start():
                found.append(one)
                return
            found.append(None)

        def keep(failure: Failure) -> None:
            failed.extend(filter(None, [failure.value]))

        def begin() -> None:
            asked = deferred_from_coro(ask())
            asked.addErrback(keep)
            asked.addBoth(lambda _: end())
            reactor.callLater(START_S, end)

        def end() -> None:
            with suppress(Exception):  # it has ended
                reactor.stop()

        reactor.callWhenRunning(begin)
        with within(2 * START_S, "start(), which never waits,"):
            reactor.run(installSignalHandlers=False)
        for error in failed:
            if not isinstance(error, _NeedsEngine | CloseSpider):
                raise error
        return found[0] if found else ...


_AGAIN = ", and the fleet starts it again for ever: "


def _may_go_on(start: Any) -> bool:
    """Return True where a `start()` has a loop that may never end, or cannot be read."""
    try:
        tree = ast.parse(textwrap.dedent(_source(start)))
    except SyntaxError:
        return True
    return not tree.body or any(isinstance(one, ast.While | ast.AsyncFor) for one in ast.walk(tree))


def _source(part: Any) -> str:
    try:
        return inspect.getsource(part)
    except (OSError, TypeError):
        return ""
