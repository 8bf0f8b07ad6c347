"""Faults that make a project's spider a bad service of the fleet, a line with the fix for each: in its settings, and in the
spider as a crawl makes it.

Only for a separate process (`check_service`): it runs the project's code.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydispatch.dispatcher import getAllReceivers, liveReceivers
from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.dupefilters import RFPDupeFilter as ScrapysDupeFilter
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, Settings, default_settings
from scrapy.utils.misc import load_object
from scrapy.utils.reactor import verify_installed_asyncio_event_loop, verify_installed_reactor

from redis_components.dupefilter import dupefilter_class
from redis_components.errors import TrawlError
from redis_components.pipelines import RedisPipeline
from redis_components.scheduler import Scheduler
from redis_components.scrapy_glue.scheduler_parts import why_never_started
from redis_components.server.printable import masked
from redis_components.setting_values import loaded, object_of
from redis_components.spiders import RedisMixin
from redis_components.start_tasks.seeding import WEB
from redis_components.stats import RedisStatsCollector
from workers.crawler.doors import GUARDED, OF_TWISTED, close_doors
from workers.http.public_addresses import allowance_in, private_addresses_allowed

_MEANT = ": remove it; where that is meant, put it into the service's settings"
_CLOSED = {"TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False, "ROBOTSTXT_OBEY": True}
_ENDS = (
    *("CLOSESPIDER_TIMEOUT", "CLOSESPIDER_TIMEOUT_NO_ITEM", "CLOSESPIDER_ITEMCOUNT", "CLOSESPIDER_PAGECOUNT"),
    "SCHEDULER_IDLE_BEFORE_CLOSE",
)
_PLACEHOLDER = re.compile(r"%\((\w+)\)")
_SHARED_PLACEHOLDERS = {"name", "time", "batch_id"}
"""What several crawlers of one service have alike; `time` is in whole seconds."""
_AGAIN = ", and the fleet starts it again for ever: "


def missing(settings: BaseSettings) -> Iterator[str]:
    """Yield the settings of docs/services.md that are missing."""
    shared = is_ours(settings, "SCHEDULER", Scheduler)
    found = {
        'SCHEDULER = "redis_components.scheduler.Scheduler"': shared,
        'DUPEFILTER_CLASS = "redis_components.dupefilter.RFPDupeFilter"': not (
            shared and issubclass(dupefilter_class(settings), ScrapysDupeFilter)
        ),
        'STATS_CLASS = "redis_components.stats.RedisStatsCollector"': is_ours(settings, "STATS_CLASS", RedisStatsCollector),
        'ITEM_PIPELINES = {"redis_components.pipelines.RedisPipeline": 300}': any(
            is_pipeline(path) for path in settings.getdict("ITEM_PIPELINES")
        ),
    }
    for setting, is_there in found.items():
        if not is_there:
            yield f"its crawlers do not share it: {setting} is missing (docs/services.md)"


def opened(own: BaseSettings) -> Iterator[str]:
    """Yield what the project or the spider opens of docs/services.md#closed-doors. What the service's own settings open is
    meant.
    """
    for name, closed in _CLOSED.items():
        if _chosen(own, name) and own.getbool(name) is not closed:
            yield f"{name} = {not closed} opens what the fleet closes{_MEANT}"
    opens_all = _chosen(own, "ALLOW_PRIVATE_ADDRESSES") and allowance_in(own.get("ALLOW_PRIVATE_ADDRESSES")).everything
    if opens_all and not private_addresses_allowed():
        yield f"ALLOW_PRIVATE_ADDRESSES = True opens every private address: name the hosts that it needs{_MEANT}"
    if _chosen(own, "DOWNLOAD_HANDLERS"):
        handlers = {scheme: path for scheme, path in own.getdict("DOWNLOAD_HANDLERS").items() if path is not None}
        if schemes := sorted(scheme for scheme, path in handlers.items() if scheme not in WEB or path != GUARDED):
            yield f"DOWNLOAD_HANDLERS opens {', '.join(f'{one}:' for one in schemes)}{_MEANT}"
    for name in (*OF_TWISTED, "DOWNLOADER"):
        if _chosen(own, name) and own.get(name) != getattr(default_settings, name):
            yield f"{name} has requests sent by another client, which may reach private addresses{_MEANT}"


def log_elsewhere(own: BaseSettings) -> Iterator[str]:
    """Yield what takes the crawler's log from `trawl logs`."""
    if own.get("LOG_FILE") or not own.getbool("LOG_ENABLED"):
        yield "LOG_FILE, or LOG_ENABLED = False: trawl logs shows nothing: remove it"


def shared_files(own: BaseSettings) -> Iterator[str]:
    """Yield the files that several crawlers of the service would write at the same time."""
    for key, options in own.getdict("FEEDS").items():
        uri = str(key)
        changes_name = dict(options or {}).get("uri_params") or own.get("FEED_URI_PARAMS")
        if not (uri.startswith("stdout:") or changes_name or set(_PLACEHOLDER.findall(uri)) - _SHARED_PLACEHOLDERS):
            yield (
                f"FEEDS: several crawlers write {masked(uri)}: put %(batch_time)s into its name, or remove it and declare"
                ' consumer = "jsonl:FILE" for the service'
            )
    if job := own.get("JOBDIR"):
        yield f"JOBDIR = {str(job)!r:.100}: several crawlers write it: remove it, the queue is in Redis"


def closing(own: BaseSettings) -> str:
    """Return the setting that ends each crawl, with the fix; "" for none."""
    for name in _ENDS:
        if _chosen(own, name) and own.getfloat(name):
            return f"{name} = {own.get(name)} ends it{_AGAIN}remove it; max_pages and max_age of the service replace a crawler"
    return ""


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


_FEEDING = (signals.spider_idle, signals.spider_opened, signals.engine_started, signals.scheduler_empty)
"""A spider that listens to one of these may get requests, or stay open, by it."""
_NOT_PROJECTS = ("scrapy.", "redis_components.", "workers.", "fleet_operations.", "forums.")


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
        close_doors(settings)
        self._crawler = Crawler(kind, settings)
        self._own = self._crawler.settings
        self._spider = self._crawler.spider = kind.from_crawler(self._crawler, **arguments)
        self._may_be_fed = isinstance(self._spider, RedisMixin) or any(self._ways_of_feeding())

    def check(self) -> None:
        """Raise TrawlError for a spider that fetches nothing."""
        kind = type(self._spider)
        if isinstance(self._spider, RedisMixin) and self._spider.server is None:
            raise TrawlError(f"{kind.__name__} never calls setup_redis(crawler), so it is fed nothing: do so in from_crawler")
        if why := why_never_started(kind):
            raise TrawlError(why)
        if kind.start is Spider.start and not self._spider.start_urls and not self._may_be_fed:
            raise TrawlError(
                f"{kind.__name__} fetches nothing: give it start_urls or a start(), or inherit"
                " redis_components.spiders.RedisSpider to feed it by trawl seed-urls"
            )

    def ends(self) -> str:
        """Return why its crawls end, one after the other, and the fix; "" where they go on."""
        if isinstance(self._spider, RedisMixin) and (idle_s := self._spider.max_idle_time):
            return f"it ends after {idle_s} s without work{_AGAIN}unset max_idle_time and MAX_IDLE_TIME_BEFORE_CLOSE"
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


def _may_go_on(start: Any) -> bool:
    """Return True where a `start()` has a loop that may never end, or cannot be read."""
    source = _source(start)
    return not source or "while " in source or "async for " in source


def _source(part: Any) -> str:
    try:
        return inspect.getsource(part)
    except (OSError, TypeError):
        return ""
