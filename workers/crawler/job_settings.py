"""Changes of a job's crawlers to their project's settings, so that several crawlers share one crawl that ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Self

from scrapy import Request
from scrapy.settings import default_settings

from redis_components import defaults
from redis_components.keys.crawl import filled
from redis_components.scrapy_glue.page_tracker import current_page
from redis_components.setting_values import number_of

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import Settings

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


def share_job(settings: Settings, spider: type[Spider], service: str, *, first: bool) -> None:
    """Change the settings of a crawler of a job of `service`; its items go where those of the service go.

    `first`: whether items of the spider's `start()`, which every crawler runs, are this one's to keep. Raises ConfigError.
    """
    named = settings.copy()
    spider.update_settings(named)
    changed: dict[str, Any] = {
        setting: ours for setting, ours in _SHARED.items() if named.get(setting) == getattr(default_settings, setting)
    }
    items = named.get("REDIS_ITEMS_KEY", defaults.PIPELINE_KEY)
    changed |= {**_OWN, "REDIS_ITEMS_KEY": filled(items, service).replace("%", "%%"), FIRST: int(first)}
    changed["SPIDER_MIDDLEWARES"] = {**named.getdict("SPIDER_MIDDLEWARES"), StartOnce: 0}
    settings.setdict(changed, priority="cmdline")


class StartOnce:
    """Spider middleware: what the `start()` of several crawlers of one job yields is crawled once.

    Start requests pass Scrapy's filter unasked. Here the first one of each fingerprint is asked for: it is stored once, also when
    a crawler that dies is replaced. Further ones of the same `start()` (a login for each of several sessions) are the first
    crawler's.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._is_first = bool(number_of(crawler.settings, FIRST, 1))

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

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
                one.dont_filter = False
                yield one
            elif self._is_first:
                yield one
