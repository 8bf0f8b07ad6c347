"""One measured crawl in a fresh process: `python -m benchmarks.peers.crawl JOB_FILE` prints one line of JSON.

Started by `benchmarks/support/peer.py`; runs in the peers' own environment too.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess

from .job import Job
from .spiders import spider_class

CONCURRENCY = {"CONCURRENT_REQUESTS": 32, "CONCURRENT_REQUESTS_PER_DOMAIN": 32}
"""The fleet's; the same for each peer in every profile but Scrapy's defaults."""
QUIET = {"LOG_LEVEL": "WARNING", "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False, "STATS_DUMP": False}
SHARED = {"MAX_IDLE_TIME_BEFORE_CLOSE": 1, "SCHEDULER_PERSIST": True}
SCRAPY_REDIS = {
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
    "ITEM_PIPELINES": {"scrapy_redis.pipelines.RedisPipeline": 300},
    **SHARED,
}
PEERS: dict[str, dict[str, Any]] = {
    "vanilla": {},
    "trawl": {
        "SCHEDULER": "redis_components.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "redis_components.dupefilter.RFPDupeFilter",
        "STATS_CLASS": "redis_components.stats.RedisStatsCollector",
        "ITEM_PIPELINES": {"redis_components.pipelines.RedisPipeline": 300},
        **SHARED,
    },
    "scrapy-redis": SCRAPY_REDIS,
    "scrapy-redis+stats": {**SCRAPY_REDIS, "STATS_CLASS": "scrapy_redis.stats.RedisStatsCollector"},
}


def settings_of(job: Job) -> dict[str, Any]:
    """Return the settings: the profile, then those of the peer, then the job's own."""
    profiles: dict[str, Callable[[], dict[str, Any]]] = {
        "equal": lambda: {**QUIET, "CONCURRENT_ITEMS": 8, "COOKIES_ENABLED": False},
        "defaults": dict,
        "quiet": lambda: QUIET,
        "fleet": lambda: _fleet(job.peer),
    }
    of_the_peer = {**profiles[job.profile](), **PEERS[job.peer], **({} if job.profile == "defaults" else CONCURRENCY)}
    settings = laid_over(of_the_peer, job.settings)
    if job.redis_url:
        settings["REDIS_URL"] = job.redis_url
    return {name: value for name, value in settings.items() if value is not None}


def laid_over(settings: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Merge `changes` into `settings`; dicts are merged, so that a changed middleware does not drop the fleet's."""
    changed = dict(settings)
    for name, value in changes.items():
        theirs = settings.get(name)
        changed[name] = {**theirs, **value} if isinstance(theirs, dict) and isinstance(value, dict) else value
    return changed


def _fleet(peer: str) -> dict[str, Any]:
    from workers import settings as fleet

    of_the_frontier = {"SPIDER_MODULES", "NEWSPIDER_MODULE", "REDIS_URL", *(PEERS["trawl"] if peer != "trawl" else ())}
    settings = {name: getattr(fleet, name) for name in dir(fleet) if name.isupper() and name not in of_the_frontier}
    # The benchmarks' site is on this machine; it has no robots.txt, which would count as a page.
    return {**settings, "ROBOTSTXT_OBEY": False, "ALLOW_PRIVATE_ADDRESSES": True}


def main() -> None:
    """Crawl, and print the number of pages and the time from the first page to the last."""
    job = Job.load(Path(sys.argv[1]))
    process = AsyncCrawlerProcess(settings_of(job))
    crawler = process.create_crawler(spider_class(job))
    stamps: list[float] = []
    cpu = [0.0, 0.0]

    def response(**_: Any) -> None:
        stamps.append(time.monotonic())
        cpu[len(stamps) > 1] = time.process_time()

    crawler.signals.connect(response, signals.response_received, weak=False)
    process.crawl(crawler)
    process.start()
    figures: dict[str, Any] = {"pages": len(stamps), "wall_s": 0.0, "cpu_s": max(0.0, cpu[1] - cpu[0])}
    if stamps:
        figures["wall_s"] = stamps[-1] - stamps[0]
    figures["most_kib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if job.stamps:
        figures["stamps"] = stamps
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
