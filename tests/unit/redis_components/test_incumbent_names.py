"""Names of scrapy-redis 0.9.1 and its head that projects import, override, or patch in their own tests.

Its own test suite runs by `make test-scrapy-redis`.
"""

from __future__ import annotations

from importlib import import_module

import pytest

PACKAGE = "redis_components"
KEYS = "DUPEFILTER_KEY PIPELINE_KEY STATS_KEY SCHEDULER_QUEUE_KEY SCHEDULER_DUPEFILTER_KEY START_URLS_KEY"
NAMES = {
    "": "get_redis get_redis_from_settings __author__ __email__ __version__",
    "connection": "SETTINGS_PARAMS_MAP get_redis get_redis_from_settings from_settings",
    "defaults": f"{KEYS} REDIS_CLS REDIS_ENCODING REDIS_PARAMS REDIS_CONCURRENT_REQUESTS REDIS_KEY_CHECK_INTERVAL MAX_IDLE_TIME "
    "SCHEDULER_QUEUE_CLASS SCHEDULER_DUPEFILTER_CLASS SCHEDULER_PERSIST START_URLS_AS_SET START_URLS_AS_ZSET",
    "dupefilter": "get_redis_from_settings logger",
    "dupefilter.RFPDupeFilter": "from_settings from_crawler from_spider request_seen request_fingerprint close clear log logger",
    "picklecompat": "loads dumps",
    "pipelines": "default_serialize",
    "pipelines.RedisPipeline": "from_settings from_crawler process_item _process_item item_key",
    "queue": "PriorityQueue FifoQueue LifoQueue SpiderQueue SpiderStack SpiderPriorityQueue",
    "queue.Base": "_encode_request _decode_request push pop clear __len__",
    "scheduler.Scheduler": "from_settings from_crawler open close flush enqueue_request next_request has_pending_requests "
    "__len__",
    "spiders": "connection time RedisSpider RedisCrawlSpider",
    "spiders.RedisMixin": "redis_key redis_batch_size redis_encoding server spider_idle_start_time max_idle_time "
    "redis_key_check_interval start_requests setup_redis pop_list_queue pop_priority_queue next_requests "
    "make_request_from_data schedule_next_requests spider_idle",
    "stats.RedisStatsCollector": "from_crawler from_spider _get_key get_value get_stats set_value set_stats inc_value max_value "
    "min_value clear_stats open_spider close_spider",
    "utils": "TextColor bytes_to_str is_dict convert_bytes_to_str",
}


@pytest.mark.parametrize("place", NAMES)
def test_every_name_is_there(place: str) -> None:
    module, _, cls = place.partition(".")
    found = import_module(f"{PACKAGE}.{module}".rstrip("."))
    holder = getattr(found, cls) if cls else found
    assert [name for name in NAMES[place].split() if not hasattr(holder, name)] == []
