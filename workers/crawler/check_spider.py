"""Faults that make a project's spider a bad service of the fleet, a line with the fix for each: in its settings, and in what it
does when it is made and asked for its first request, as a crawl does.

Only for a separate process (`check_service`): it runs the project's code, in that process's reactor.
"""

from __future__ import annotations

import ast
import inspect
import re
import signal
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from pydispatch.dispatcher import getAllReceivers, liveReceivers
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.dupefilters import RFPDupeFilter as ScrapysDupeFilter
from scrapy.exceptions import CloseSpider
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, Settings, default_settings
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.reactor import verify_installed_asyncio_event_loop, verify_installed_reactor
from twisted.python.failure import Failure

from redis_components.connection import name_of, names_redis
from redis_components.dupefilter import dupefilter_class
from redis_components.embedded import redis_url
from redis_components.errors import TrawlError
from redis_components.pipelines import RedisPipeline
from redis_components.scheduler import Scheduler
from redis_components.scrapy_glue.scheduler_parts import why_never_started
from redis_components.server.url import masked
from redis_components.setting_values import loaded, object_of
from redis_components.spiders import RedisMixin
from redis_components.start_tasks.seeding import WEB
from redis_components.stats import RedisStatsCollector
from workers.http.public_addresses import allowance_in, private_addresses_allowed

from .doors import GUARDED, OF_TWISTED, ClosedDoor, Doors, close_doors

_MEANT = "; where that is meant, put it into the service's settings"
_SWITCHES = {
    "TELNETCONSOLE_ENABLED": "runs Python of a caller",
    "REMOTE_CONTROL_ENABLED": "runs Python of a caller",
}
_BOUNDS = ("REDIS_ITEMS_MAX_WAITING", "REDIS_ITEMS_MAX_MB")
_ENDS = ("CLOSESPIDER_TIMEOUT", "CLOSESPIDER_TIMEOUT_NO_ITEM", "CLOSESPIDER_ITEMCOUNT", "CLOSESPIDER_PAGECOUNT")
_GUARDS = (
    "workers.crawler.doors.Doors",
    "redis_components.scrapy_glue.robots.RobotsTxt",
    "redis_components.scrapy_glue.retry_after.RetryAfterMiddleware",
    "workers.breaker.hosts.HostWatch",
)
_PLACEHOLDER = re.compile(r"%\((\w+)\)")
_SHARED_PLACEHOLDERS = {"name", "time", "batch_id"}
"""What several crawlers of one service have alike; `time` is in whole seconds."""


def missing(settings: BaseSettings) -> Iterator[str]:
    """Yield the settings of docs/services.md that are missing, and the consequence of each."""
    if not (shared := is_ours(settings, "SCHEDULER", Scheduler)):
        yield (
            "its queue is not in Redis, so a crawler that dies loses it and each crawler crawls everything:"
            ' SCHEDULER = "redis_components.scheduler.Scheduler"'
        )
    if shared and issubclass(dupefilter_class(settings), ScrapysDupeFilter):
        yield (
            "its dupefilter is not in Redis, so each crawler fetches what others have fetched:"
            ' DUPEFILTER_CLASS = "redis_components.dupefilter.RFPDupeFilter"'
        )
    if not is_ours(settings, "STATS_CLASS", RedisStatsCollector):
        yield (
            "its stats are not in Redis, so trawl status shows no pages and items of it:"
            ' STATS_CLASS = "redis_components.stats.RedisStatsCollector"'
        )
    if not any(is_pipeline(path) for path in settings.getdict("ITEM_PIPELINES")):
        yield (
            "its items go to no item stream, so trawl items consume sees none:"
            ' ITEM_PIPELINES = {"redis_components.pipelines.RedisPipeline": 300}'
        )


def other_redis(settings: BaseSettings) -> Iterator[str]:
    """Yield a warning for a Redis of another name. Two names may be one server: a crawler tests that by a write, a check may
    not.
    """
    fleet = re.sub(r"//[^/]*@", "//", masked(redis_url()))
    if names_redis(settings) and (named := re.sub(r"//[^/]*@", "//", name_of(settings))) != fleet:
        yield (
            f"its project names {named}, the fleet's Redis is {fleet}: if these are two, its crawlers are refused; remove"
            " REDIS_URL, REDIS_HOST and the like from the project's settings"
        )


def opened(own: BaseSettings) -> Iterator[str]:
    """Yield what the project or the spider opens of docs/services.md#closed-doors. What the service's own settings open is
    meant.
    """
    for name, what in _SWITCHES.items():
        if _chosen(own, name) and own.getbool(name):
            yield f"{name} = True {what}: remove it{_MEANT}"
    opens_all = _chosen(own, "ALLOW_PRIVATE_ADDRESSES") and allowance_in(own.get("ALLOW_PRIVATE_ADDRESSES")).everything
    if opens_all and not private_addresses_allowed():
        yield f"ALLOW_PRIVATE_ADDRESSES = True opens every private address: name the hosts that it needs{_MEANT}"
    if _chosen(own, "DOWNLOAD_HANDLERS"):
        handlers = {scheme: path for scheme, path in own.getdict("DOWNLOAD_HANDLERS").items() if path is not None}
        if schemes := sorted(handlers.keys() - WEB):
            yield f"DOWNLOAD_HANDLERS opens {', '.join(f'{one}:' for one in schemes)}: remove it{_MEANT}"
        if any(path != GUARDED for scheme, path in handlers.items() if scheme in WEB):
            yield f"DOWNLOAD_HANDLERS has its own HTTP client, which may reach private addresses: remove http and https{_MEANT}"
    for name in (*OF_TWISTED, "DOWNLOADER"):
        if _chosen(own, name) and own.get(name) != getattr(default_settings, name):
            yield f"{name} has requests sent by another client, which may reach private addresses: remove it{_MEANT}"
    if _chosen(own, "ROBOTSTXT_OBEY") and not own.getbool("ROBOTSTXT_OBEY"):
        yield f"ROBOTSTXT_OBEY = False: write True{_MEANT}"
    for path, place in own.getdict("DOWNLOADER_MIDDLEWARES").items() if _chosen(own, "DOWNLOADER_MIDDLEWARES") else ():
        if place is None and (named := path if isinstance(path, str) else f"{path.__module__}.{path.__name__}") in _GUARDS:
            yield f"DOWNLOADER_MIDDLEWARES removes {named}: remove that entry{_MEANT}"
    for name in _BOUNDS:
        if _chosen(own, name) and not own.getfloat(name):
            yield f"{name} = 0 removes a bound of the fleet: remove it{_MEANT}"


def log_elsewhere(own: BaseSettings) -> Iterator[str]:
    """Yield what takes the crawler's log from `trawl logs`."""
    if own.get("LOG_FILE"):
        yield f"LOG_FILE = {str(own.get('LOG_FILE'))!r:.100}: all crawlers write it, and trawl logs shows nothing: remove it"
    if not own.getbool("LOG_ENABLED"):
        yield "LOG_ENABLED = False: trawl logs shows nothing: remove it"


def overwritten(own: BaseSettings) -> Iterator[str]:
    """Yield the feeds that the next start of a crawler overwrites."""
    for uri, options in _alike_feeds(own):
        overwrites = options.get("overwrite", "://" in uri and not uri.startswith("file:"))
        if overwrites:
            yield f"FEEDS: each start of a crawler overwrites {masked(uri)}: put %(batch_time)s into its name{_CONSUME}"


def shared_files(own: BaseSettings) -> Iterator[str]:
    """Yield the files that several crawlers of the service would write at the same time."""
    for uri, _ in _alike_feeds(own):
        yield f"FEEDS: several crawlers write {masked(uri)}: put %(batch_time)s into its name{_CONSUME}"
    if job := own.get("JOBDIR"):
        yield f"JOBDIR = {str(job)!r:.100}: several crawlers write it: remove it, the queue is in Redis"


_CONSUME = ', or remove it and declare consumer = "jsonl:FILE" for the service'


def closing(own: BaseSettings) -> str:
    """Return the setting that ends each crawl, with the fix; "" for none."""
    for name in _ENDS:
        if _chosen(own, name) and own.getfloat(name):
            return (
                f"{name} = {own.get(name)} ends it, and the fleet starts it again for ever: remove it; max_pages and max_age"
                " of the service replace a crawler"
            )
    if _chosen(own, "SCHEDULER_IDLE_BEFORE_CLOSE") and own.getfloat("SCHEDULER_IDLE_BEFORE_CLOSE"):
        return "SCHEDULER_IDLE_BEFORE_CLOSE ends it when it has no work, and the fleet starts it again for ever: remove it"
    return ""


def _alike_feeds(own: BaseSettings) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield name and options of each feed whose name is the same in all crawlers."""
    for key, options in own.getdict("FEEDS").items():
        uri, options = str(key), dict(options or {})
        changes_name = options.get("uri_params") or own.get("FEED_URI_PARAMS")
        if not (uri.startswith("stdout:") or changes_name or set(_PLACEHOLDER.findall(uri)) - _SHARED_PLACEHOLDERS):
            yield uri, options


def _chosen(own: BaseSettings, name: str) -> bool:
    """Return True if the project or the spider sets it, and not Scrapy, Trawl or the service."""
    return SETTINGS_PRIORITIES["default"] < (own.getpriority(name) or 0) < SETTINGS_PRIORITIES["cmdline"]


def is_ours(settings: BaseSettings, name: str, kind: type) -> bool:
    """Return True if a setting names `kind` or a subclass."""
    return kind in getattr(object_of(settings, name), "__mro__", ())  # to issubclass every scheduler is a subclass of every other


def is_pipeline(path: object) -> bool:
    """Return True if an entry of ITEM_PIPELINES sends items to Redis."""
    named = loaded(path, "ITEM_PIPELINES")
    return isinstance(named, type) and issubclass(named, RedisPipeline)


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
