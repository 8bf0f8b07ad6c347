"""Spiders that override scrapy-redis's methods, in real crawls: they are fed, and what fails in them stops nobody."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import redis

from redis_components.inspector import snapshot
from redis_components.keys import CrawlKeys
from tests.support.crawl import ROOT, Crawl, crawl
from tests.support.hook_spiders import SPIDERS

FED = sorted(SPIDERS.keys() - {"no-setup"})
PAGES = {"own-start": [100], "own-start-requests": [100]}


def crawled(run: Crawl, *names: str) -> str:
    """Crawl with all of these spiders in one process, to the end; its log."""
    done = subprocess.run(
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
    stored = client.lrange(CrawlKeys.for_spider(spider).item_stream(), 0, 999)
    return Counter(int(item.decode().rstrip('"}').rpartition("/")[2]) for item in stored)


def test_every_spider_is_fed_whatever_it_overrides(redis_url: str, redis_client: redis.Redis, tmp_path: Path) -> None:
    with crawl(redis_url, tmp_path, pages=100) as run:
        for spider in FED:
            tasks = [f"{run.site}/{page}" for page in range(1, 6)]
            key = CrawlKeys.for_spider(spider).start_tasks()
            redis_client.rpush(key, *(["1,2", "3,4,5"] if spider == "own-format" else tasks))
        log = crawled(run, *FED)
        for spider in FED:
            expected = [6, 7] if spider in ("rules", "mixed-crawl") else [*range(1, 6), *PAGES.get(spider, [])]
            assert items(redis_client, spider) == Counter(expected), f"{spider}\n{log}"
            shot = snapshot(redis_client, spider)
            assert (shot.start_tasks, shot.leased_tasks, shot.leased, shot.ready, shot.dead) == (0, 0, 0, 0, 0), spider
        assert "the second call fails" in log
        assert "own-scheduling scheduled 5" in log
        assert log.count("Spider closed (finished)") == len(FED)


def test_a_mixin_that_was_never_set_up_ends_with_one_line(redis_url: str, tmp_path: Path) -> None:
    with crawl(redis_url, tmp_path, pages=1) as run:
        log = crawled(run, "no-setup")
    assert "NoSetup never called setup_redis(crawler): do so in its from_crawler" in log
    assert "Spider closed (refused)" in log
    assert "Traceback" not in log
