"""The spider of a service that is declared with another name, or other keys, than its class has."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from scrapy import Spider

from redis_components.keys import CrawlRecord
from redis_components.scrapy_glue.engine import keys_of, known_frontier
from redis_components.server.names import crawl_name
from redis_components.spiders import RedisMixin
from redis_components.start_tasks.seeding import WEB
from workers.process.stat_metrics import SETTING, stat_patterns
from workers.targets import NO_CONSUMER, consumer_of

from .doors import open_schemes

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import Settings

    from redis_components.keys import CrawlKeys


JOB_IDLE_S = 2
"""After so long without anything to do, in all of its crawlers, a job of a spider that is fed from Redis is over."""


@dataclass(frozen=True, kw_only=True)
class ServiceSpider:
    """A service's declarations for its spider; "" where the class decides."""

    loads: str = ""
    consumer: str = ""
    start_key: str = ""
    job_of: str = ""
    """Its service, if it is a job: it ends when the whole crawl has nothing to do, where a spider that is fed from Redis would
    wait for start tasks for ever, and has the service's name.
    """

    def named(self, service: str, found: type[Spider]) -> type[Spider]:
        """Return the class itself, or a subclass with the service's name, and with a job's for its keys."""
        changed: dict[str, Any] = {}
        if self.job_of:
            changed |= {"name": self.job_of, "trawl_crawl_name": service}
        elif self.loads:
            changed["name"] = service
        if self.consumer:
            changed["item_consumer"] = "" if self.consumer == NO_CONSUMER else self.consumer
        if self.start_key and getattr(found, "redis_key", None):
            changed["redis_key"] = self.start_key
        if self.job_of and issubclass(found, RedisMixin) and not found.max_idle_time:
            changed["max_idle_time"] = JOB_IDLE_S
        return type(found.__name__, (found,), {**changed, "__module__": found.__module__}) if changed else found


FLEET_SETTINGS = {"REDIS_ITEMS_MAX_WAITING": 100_000, "REDIS_ITEMS_MAX_MB": 1024}
"""Bounds of a crawler of the fleet where its project sets none: a fleet runs unattended, and Redis would fill up."""


def bound_items(settings: Settings) -> None:
    """Give the settings the fleet's bounds of what waits for a consumer; the project's own go before them."""
    settings.setdict(FLEET_SETTINGS, priority="default")


def record_of(crawler: Crawler) -> CrawlRecord:
    """Return the public record of the crawl of an opened spider. Raises ConfigError."""
    frontier, spider = known_frontier(crawler), crawler.spider
    assert spider is not None
    config = frontier.config if frontier else None
    keys, consumer = config.keys if config else _keys_without_frontier(crawler), consumer_of(spider)
    name = crawl_name(spider)
    return CrawlRecord(
        spider=name,
        keys=keys,
        consumer=consumer,
        max_items=config.max_items if config else 0,
        max_item_bytes=config.max_item_bytes if config else 0,
        metrics=dict.fromkeys(stat_patterns(crawler.settings.get(SETTING)), "counter"),
        schemes=tuple(sorted(open_schemes(crawler.settings) - WEB)),
        at=time.time(),
    )


def _keys_without_frontier(crawler: Crawler) -> CrawlKeys:
    """Return the keys of a crawl with Scrapy's scheduler, or another package's: by the settings' patterns and the spider's
    `redis_key`.
    """
    keys, key = keys_of(crawler), getattr(crawler.spider, "redis_key", None)
    if getattr(crawler.spider, "start_keys", ()) or not isinstance(key, str) or not key:
        return keys
    assert crawler.spider is not None
    return replace(keys, start_urls=key.replace("%(name)s", crawl_name(crawler.spider)))
