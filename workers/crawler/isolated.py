"""Runs an ordinary spider apart from the fleet: its queue, dupefilter and stats are in memory."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.utils.misc import load_object

from redis_components.pipelines import RedisPipeline
from redis_components.spiders import RedisMixin

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.settings import Settings

_SCRAPYS_OWN = {
    "SCHEDULER": "scrapy.core.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy.dupefilters.RFPDupeFilter",
    "STATS_CLASS": "scrapy.statscollectors.MemoryStatsCollector",
}

logger = logging.getLogger(__name__)


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
    settings.setdict(_SCRAPYS_OWN, priority="project")
    for pipeline in settings.getdict("ITEM_PIPELINES"):
        if issubclass(load_object(pipeline), RedisPipeline):
            settings.set("ITEM_PIPELINES", {**settings.getdict("ITEM_PIPELINES"), pipeline: None}, priority="project")
