"""The fleet's changes of a crawl's settings, after those of its project, its spider and the command line.

`hand_over` gives it the fleet's Redis unless its project names one; `check_redis` refuses another one; `crawl_alone` runs an
ordinary spider apart from the fleet; `share_job` lets several crawlers share one crawl that ends.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import redis
from itemadapter import ItemAdapter
from scrapy import Request, signals
from scrapy.settings import default_settings
from scrapy.utils.misc import load_object
from scrapy.utils.python import to_bytes

from redis_components import defaults
from redis_components.connection import connect, from_settings, name_of, names_redis
from redis_components.errors import ConfigError
from redis_components.frontier.stock import shared_clock
from redis_components.keys import filled
from redis_components.pipelines import RedisPipeline, default_serialize
from redis_components.scheduler import Scheduler
from redis_components.scrapy_glue.engine import ForCrawler
from redis_components.scrapy_glue.page_tracker import current_page
from redis_components.server.names import crawl_name, fleet_namespace, service_name
from redis_components.server.printable import masked
from redis_components.server.scripts import retried
from redis_components.setting_values import number_of, object_of
from redis_components.spiders import RedisMixin
from workers.breaker.hosts import first_url, verdict_on
from workers.process.stat_metrics import SETTING, stat_patterns
from workers.raw_pages.store import RawPage, RawStore, prune, raw_dir
from workers.state.group_runs import (
    ELSEWHERE,
    ERROR,
    FIELDS,
    KEPT_AS,
    LOST,
    MEMBER,
    MOST_FIELDS,
    PAGES,
    RAISED,
    RUN,
    URL,
    WALL,
    WALLS,
)
from workers.state.keys import FleetKeys

from .crawl_record import bound_items

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings, Settings
    from twisted.python.failure import Failure

    from workers.process.options import CrawlerOptions


MET_S = 60  # longer than the slowest client waits for an answer

logger = logging.getLogger(__name__)


def hand_over(settings: Settings, url: str) -> None:
    """Give a crawler the fleet's Redis and namespace, where neither the project nor the spider names one.

    The values get the lowest priority: settings of the project, the spider and the command line override them. A project that
    sets a part of a connection, such as REDIS_HOST, names another Redis, so REDIS_URL, which would override it, is not set.
    """
    if not names_redis(settings):
        settings.set("REDIS_URL", url, priority="default")
    if namespace := fleet_namespace():
        settings.set("REDIS_NAMESPACE", namespace, priority="default")


def check_redis(settings: BaseSettings, spider: type[Spider], url: str) -> None:
    """Raise ConfigError where the crawl would share its queue in another Redis than that of its fleet, at `url`: the fleet sees
    nothing there. Asks both servers, and waits for the fleet's.
    """
    shared = fed_from_redis(spider) or issubclass(load_object(settings["SCHEDULER"]), Scheduler)
    if shared and settings.get("REDIS_URL") != url and not _is_fleets(settings, url):
        raise ConfigError(
            f"its project names another Redis, {name_of(settings)}, than the fleet, {masked(url)}: leave REDIS_URL, REDIS_HOST,"
            " REDIS_PORT, REDIS_DB and the address in REDIS_PARAMS out of its settings"
        )


def _is_fleets(settings: BaseSettings, url: str) -> bool:
    """Return True if both are one database: a value written through one address is read through the other. Names do not prove
    it.
    """
    fleet, word = connect(url), secrets.token_hex(16)
    key = FleetKeys().met(word)
    retried(lambda: fleet.set(key, word, ex=MET_S))
    try:
        found = from_settings(settings).get(key)
    except redis.exceptions.NoPermissionError:  # an account for the crawl's keys only: then the names have to do
        return name_of(settings).rpartition("@")[2] == masked(url).rpartition("@")[2]
    except Exception as error:  # it does not answer, or a client class of the project's has no such method
        logger.warning("%s cannot be asked whether it is the fleet's Redis: %s", name_of(settings), type(error).__name__)
        return False
    return found in (word, word.encode())


SCRAPYS_OWN = {
    "SCHEDULER": "scrapy.core.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy.dupefilters.RFPDupeFilter",
    "STATS_CLASS": "scrapy.statscollectors.MemoryStatsCollector",
}


def fed_from_redis(spider: type[Spider]) -> bool:
    """Return True if the spider gets its start tasks from Redis; without them it has nothing to crawl."""
    return issubclass(spider, RedisMixin)


def crawl_alone(settings: Settings, spider: type[Spider]) -> None:
    """Change the project's settings so that each crawl of an ordinary spider starts fresh and ends with its requests.

    In the fleet's frontier it would find its pages seen by the crawl before, and wait for other processes. Its items go through
    the project's pipelines, but not into the item stream, which has no consumer for it. Its `custom_settings` and the command
    line's settings stay. A spider that is fed from Redis is left as it is.
    """
    if fed_from_redis(spider):
        logger.info("%s is fed from Redis: it works on the shared queue until it is stopped", spider.name)
        return
    settings.setdict(SCRAPYS_OWN, priority="project")
    for pipeline in settings.getdict("ITEM_PIPELINES"):
        if issubclass(load_object(pipeline), RedisPipeline):
            settings.set("ITEM_PIPELINES", {**settings.getdict("ITEM_PIPELINES"), pipeline: None}, priority="project")


FIRST = "JOB_START_ITEMS"
_SHARED = {
    "SCHEDULER": "redis_components.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "redis_components.dupefilter.RFPDupeFilter",
    "STATS_CLASS": "redis_components.stats.RedisStatsCollector",
}
"""Instead of Scrapy's own, which know one process only; a class of the project's stays."""
_OWN = {
    "SCHEDULER_QUEUE_KEY": defaults.SCHEDULER_QUEUE_KEY,
    "SCHEDULER_DUPEFILTER_KEY": defaults.SCHEDULER_DUPEFILTER_KEY,
    "STATS_KEY": defaults.STATS_KEY,
    "SCHEDULER_PERSIST": True,  # the fleet lets the keys expire; a cancelled job is resumed from them
    "SCHEDULER_FLUSH_ON_START": False,
}
"""Keys named after the job, over the project's own; `trawl job start` names the start key."""


def share_job(settings: Settings, service: str, *, first: bool) -> None:
    """Change the settings of a crawler of a job of `service`; its items go where those of the service go.

    `first`: whether items of the spider's `start()`, which every crawler runs, are this one's to keep. Raises ConfigError.
    """
    changed: dict[str, Any] = {
        setting: ours for setting, ours in _SHARED.items() if settings.get(setting) == getattr(default_settings, setting)
    }
    items = settings.get("REDIS_ITEMS_KEY", defaults.PIPELINE_KEY)
    changed |= {**_OWN, "REDIS_ITEMS_KEY": filled(items, service).replace("%", "%%"), FIRST: int(first)}
    if member := settings.get(MEMBER):
        changed |= _to_files(settings, member)
    evidence = {Evidence: 1} if settings.get(RUN) else {}
    changed["SPIDER_MIDDLEWARES"] = {**settings.getdict("SPIDER_MIDDLEWARES"), StartOnce: 0, **evidence}
    settings.setdict(changed, priority="cmdline")


def _to_files(settings: BaseSettings, member: str) -> dict[str, Any]:
    """Return the settings by which the items of a member go to the run's consumer, also where the project sends none to Redis."""
    changed: dict[str, Any] = {"REDIS_ITEMS_SERIALIZER": ItemOfMember(member, object_of(settings, "REDIS_ITEMS_SERIALIZER"))}
    pipelines = settings.getdict("ITEM_PIPELINES")
    if not any(issubclass(load_object(path), RedisPipeline) for path, place in pipelines.items() if place is not None):
        changed["ITEM_PIPELINES"] = {**pipelines, RedisPipeline: 1000}
    return changed


class ItemOfMember:
    """Serializes an item with the names of its member and of its class, which a file of the run is made from."""

    def __init__(self, member: str, serialize: Callable[[Any], str | bytes] | None) -> None:
        self._member, self._serialize = member.encode(), serialize or default_serialize

    def __call__(self, item: Any) -> bytes:
        """Return the line."""
        kind = type(item)
        named = "" if kind is dict else f"{kind.__module__}:{kind.__qualname__}"
        return b'{"spider":"%b","class":"%b","item":%b}' % (self._member, named.encode(), to_bytes(self._serialize(item)))


class StartOnce(ForCrawler):
    """Spider middleware: what the `start()` of several crawlers of one job yields is crawled once.

    Start requests pass Scrapy's filter unasked. Here the first one of each fingerprint is asked for: it is stored once, also when
    a crawler that dies is replaced. Further ones of the same `start()` (a login for each of several sessions) are the first
    crawler's.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._is_first = bool(number_of(crawler.settings, FIRST, 1))

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Pass on what is to be crawled by this process, or filtered by Redis."""
        known: set[bytes] = set()
        fingerprinter = self._crawler.request_fingerprinter
        assert fingerprinter is not None
        async for one in start:
            if current_page.get() is not None:  # made of a start task, which is leased to this process alone
                yield one
            elif not isinstance(one, Request):
                if self._is_first:
                    yield one
            elif (fingerprint := fingerprinter.fingerprint(one)) not in known:
                known.add(fingerprint)
                if one.dont_filter:  # which is of two filters: that of sites stays passed
                    one.meta.setdefault("allow_offsite", True)
                one.dont_filter = False
                yield one
            elif self._is_first:
                yield one


def adapt(settings: Settings, spider: type[Spider], options: CrawlerOptions, url: str) -> None:
    """Adapt a crawl's settings, which have the spider's own, to the fleet. `url`: the fleet's Redis. Raises ConfigError."""
    stat_patterns(settings.get(SETTING))  # what is wrong there is refused before anything runs
    bound_items(settings)
    if options.job_of:
        first = options.slot is None or options.slot.number == 0
        share_job(settings, options.job_of, first=first)
    hand_over(settings, url)
    if options.alone:
        crawl_alone(settings, spider)
    check_redis(settings, spider, url)


KEEP_DAYS = 30.0
_MOST_ERROR = 1500


class Evidence(ForCrawler):
    """Spider middleware, nearest to the engine: it is given each response before Scrapy leaves out those with a bad status."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        assert crawler.stats is not None
        self._stats = crawler.stats
        self._name = service_name(crawl_name(crawler.spidercls))
        self._fields: set[str] = set()
        self._kept: set[str] = set()
        self._raw = RawStore(raw_dir(), rounds=lambda: prune(raw_dir(), {KEPT_AS: KEEP_DAYS}))
        crawler.signals.connect(self._item, signals.item_scraped)
        crawler.signals.connect(self._raised, signals.spider_error)
        crawler.signals.connect(self._lost, signals.item_error)
        crawler.signals.connect(self._raw.close, signals.spider_closed)

    def process_spider_input(self, response: Response, spider: Spider | None = None) -> None:  # noqa: ARG002
        """Count the response."""
        self._stats.inc_value(f"{PAGES}{response.status}")
        if wall := self._wall(response):
            self._stats.inc_value(WALLS)
            self._first("wall", response)
            self._stats.set_value(WALL, wall)
        elif response.status >= 400:
            self._first(str(response.status), response)
        else:
            if response.request is not None and _host(response.url) != _host(first_url(response.request)):
                self._stats.inc_value(ELSEWHERE)
                self._first("elsewhere", response)
            self._first("page", response)

    def _wall(self, response: Response) -> str:
        found = verdict_on(response)
        return found.reason[:300] if found is not None and found.cause in ("challenge", "login") else ""

    def _first(self, fault: str, response: Response) -> None:
        """Store the first page of a fault, and its URL."""
        if fault in self._kept:
            return
        self._kept.add(fault)
        self._stats.set_value(f"{URL}{fault}", response.url[:2000])
        if response.body and response.request is not None:
            at = datetime.fromtimestamp(shared_clock.time(), UTC).isoformat(timespec="milliseconds")
            self._raw.keep(RawPage.of(response, KEPT_AS, {"kind": fault, "job": self._name}, at))

    def _item(self, item: Any) -> None:
        try:
            fields = ItemAdapter(item).items()
        except TypeError:  # of a class that only the project's pipelines know
            return
        for name, value in fields:
            if value is None or (isinstance(value, str | bytes | list | tuple | dict | set) and not value):
                continue
            if name in self._fields or len(self._fields) < MOST_FIELDS:
                self._fields.add(name)
                self._stats.inc_value(f"{FIELDS}{str(name)[:100]}")

    def _raised(self, failure: Failure, response: Response) -> None:
        self._stats.inc_value(RAISED)
        self._failed(failure, response)

    def _lost(self, failure: Failure, response: Response | None) -> None:
        self._stats.inc_value(LOST)
        self._failed(failure, response)

    def _failed(self, failure: Failure, response: Response | None) -> None:
        if "raised" not in self._kept:
            self._stats.set_value(ERROR, str(failure.getTraceback()).strip()[-_MOST_ERROR:])
        if response is not None:  # an item of the spider's start has none
            self._first("raised", response)


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""
