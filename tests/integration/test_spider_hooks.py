"""Spiders that override scrapy-redis's methods, in real crawls: they are fed, and what fails in them stops nobody."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path

import redis

from redis_components.admin.inspector import snapshot
from redis_components.keys import CrawlKeys
from tests.support import warm_start
from tests.support.crawl import ROOT, Crawl, crawl
from tests.support.hook_spiders import SPIDERS

FED = sorted(SPIDERS.keys() - {"no-setup"})
ITEM_KEYS = {"own-item-key": ["own-item-key:items:0", "own-item-key:items:1"]}
EXPECTED = {
    "rules": [6, 7],
    "mixed-crawl": [6, 7],
    "own-start": [*range(1, 6), 100],
    "own-start-and-idle": [*range(1, 6), 100],
    "own-start-requests": [*range(1, 6), 100],
    "own-push": [1, 2, 4, 5],
}


def crawled(run: Crawl, *names: str) -> str:
    """Crawl with all of these spiders in one process, to the end; its log."""
    done = warm_start.run(
        [sys.executable, "-W", "error", "-m", "tests.support.hook_spiders", run.site, run.redis_url, *names],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def items(client: redis.Redis, spider: str) -> Counter[int]:
    stored = [item for key in ITEM_KEYS.get(spider, [f"{spider}:items"]) for item in client.lrange(key, 0, 999)]
    return Counter(int(json.loads(item)["url"].rpartition("/")[2]) for item in stored)


def test_every_spider_is_fed_whatever_it_overrides(redis_url: str, redis_client: redis.Redis, tmp_path: Path) -> None:
    with crawl(redis_url, tmp_path, pages=100) as run:
        for spider in FED:
            tasks = [f"{run.site}/{page}" for page in range(1, 6)]
            key = CrawlKeys.for_spider(spider).start_tasks()
            redis_client.rpush(key, *(["1,2", "nothing", "an item", "3,4,5"] if spider == "own-format" else tasks))
        log = crawled(run, *FED, "no-setup")
        for spider in FED:
            assert items(redis_client, spider) == Counter(EXPECTED.get(spider, range(1, 6))), f"{spider}\n{log}"
            shot = snapshot(redis_client, spider)
            dead = int(spider in ("own-push", "own-format"))
            assert (shot.start_tasks, shot.leased_tasks, shot.leased, shot.ready, shot.dead) == (0, 0, 0, 0, dead), spider
        assert redis_client.llen("own-item-key:items:1") == 3
        assert redis_client.hlen("own-push:latest") == 4
        assert "the second call fails" in log
        assert "type error: make_request_from_data() gave {'url': 'http://" in log
        assert "own-scheduling scheduled 5" in log
        assert log.count("Spider closed (finished)") == len(FED)
        assert "NoSetup never called setup_redis(crawler): do so in its from_crawler" in log
        assert log.count("Spider closed (refused)") == 1
