"""One measured crawl in a fresh process; prints one line of JSON.

Started by `benchmarks/crawl_speed.py`, with the peer's name in BENCH_PEER.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from scrapy import signals
from scrapy.crawler import CrawlerProcess

from benchmarks.peers.spider import PEER, BenchSpider

QUIET = {
    "LOG_LEVEL": "WARNING",
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "CONCURRENT_REQUESTS": 32,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 32,
    "CONCURRENT_ITEMS": 8,
    "COOKIES_ENABLED": False,
    "STATS_DUMP": False,
}
PEERS: dict[str, dict[str, Any]] = {
    "vanilla": {},
    "trawl": {
        "SCHEDULER": "redis_components.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "redis_components.dupefilter.RFPDupeFilter",
        "STATS_CLASS": "redis_components.stats.RedisStatsCollector",
        "ITEM_PIPELINES": {"redis_components.pipelines.RedisPipeline": 300},
        "MAX_IDLE_TIME_BEFORE_CLOSE": 1,
        "SCHEDULER_PERSIST": True,
    },
    "scrapy-redis": {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "ITEM_PIPELINES": {"scrapy_redis.pipelines.RedisPipeline": 300},
        "MAX_IDLE_TIME_BEFORE_CLOSE": 1,
        "SCHEDULER_PERSIST": True,
    },
}


def main() -> None:
    """Crawl the forum in BENCH_FORUM; BENCH_SETTINGS (JSON) overrides settings."""
    settings = {
        **QUIET,
        **PEERS[PEER],
        "REDIS_URL": os.environ.get("BENCH_REDIS"),
        **json.loads(os.environ.get("BENCH_SETTINGS", "{}")),
    }
    if settings["REDIS_URL"] is None:
        del settings["REDIS_URL"]
    process = CrawlerProcess(settings)
    crawler = process.create_crawler(BenchSpider)
    seen = {"pages": 0, "first": 0.0, "last": 0.0, "cpu_first": 0.0, "cpu_last": 0.0}

    def response(**_: Any) -> None:
        seen["pages"] += 1
        seen["last"], seen["cpu_last"] = time.perf_counter(), time.process_time()
        if seen["pages"] == 1:
            seen["first"], seen["cpu_first"] = seen["last"], seen["cpu_last"]

    crawler.signals.connect(response, signals.response_received, weak=False)
    process.crawl(crawler)
    process.start()
    wall_s, cpu_s = seen["last"] - seen["first"], seen["cpu_last"] - seen["cpu_first"]
    print(json.dumps({"pages": seen["pages"], "wall_s": wall_s, "cpu_s": cpu_s}))


if __name__ == "__main__":
    sys.exit(main())
