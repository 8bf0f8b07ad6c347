"""Settings of the crawls in tests: the three components by name alone, as a user of `redis_components` has them."""

import os

from tests.support.light_scrapy import *  # noqa: F403 - settings are the module's names

SPIDER_MODULES = ["tests.support.link_spiders"]
REDIS_URL = os.environ["TRAWL_REDIS_URL"]
SCHEDULER = "redis_components.scheduler.Scheduler"
DUPEFILTER_CLASS = "redis_components.dupefilter.RFPDupeFilter"
STATS_CLASS = "redis_components.stats.RedisStatsCollector"
ITEM_PIPELINES = {"redis_components.pipelines.RedisPipeline": 300}
SCHEDULER_PERSIST = True
MAX_IDLE_TIME_BEFORE_CLOSE = 1
CONCURRENT_ITEMS = 4
LOG_LEVEL = "INFO"
STATS_DUMP = False
CONCURRENT_REQUESTS_PER_DOMAIN = 16
