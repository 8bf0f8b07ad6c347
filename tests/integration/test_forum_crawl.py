"""The two forum services against the demo's forum: everything it knows arrives, in the vertical split."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import redis

from demo.forum.process import ForumProcess
from redis_components.inspector import snapshot
from redis_components.keys import CrawlKeys
from workers.seeding import seed
from workers.spiders.task_data import ForumTask, PostTask, encode

ROOT = Path(__file__).parents[2]
LISTS, DETAILS = (CrawlKeys.for_spider(spider) for spider in ("forum_list", "forum_detail"))


def crawl(redis_url: str, forum: ForumProcess, *spiders: str) -> None:
    """Run the spiders until the crawl is idle."""
    environment = {
        **os.environ,
        "TRAWL_REDIS_URL": redis_url,
        "TRAWL_DEMO_URL": forum.url,
        "TRAWL_SITES_DIR": str(ROOT / "sites"),
    }
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "scrapy", "crawl", spider, "-s", "MAX_IDLE_TIME_BEFORE_CLOSE=2"],
            cwd=ROOT,
            env=environment,
            stderr=subprocess.PIPE,
        )
        for spider in spiders
    ]
    for process in processes:
        _, said = process.communicate(timeout=90)
        assert process.returncode == 0, said.decode()


def stored(client: redis.Redis, keys: CrawlKeys) -> list[dict[str, Any]]:
    return [json.loads(item) for item in client.lrange(keys.item_stream(), 0, 100_000)]


@pytest.fixture
def _demo_site(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(ROOT / "sites"))


@pytest.mark.usefixtures("_demo_site")
def test_every_post_and_comment_arrives_though_the_site_stumbles(redis_url: str, redis_client: redis.Redis) -> None:
    with ForumProcess(seed=3, forums=4, threads=25, comments=5) as forum:
        forum.control(error_rate=0.05, throttle_rate=0.02, reset_rate=0.01)
        assert set(seed(redis_client, site="demo").values()) == {"seeded"}
        crawl(redis_url, forum, "forum_list", "forum_detail")
        truth = forum.truth()
    items = stored(redis_client, DETAILS)
    for kind in ("post", "comment"):
        assert {item["id"] for item in items if item["kind"] == kind} == set(truth[f"{kind}s"])
    scans = stored(redis_client, LISTS)
    assert [(scan["outcome"], scan["threads"]) for scan in scans] == [("complete", 25)] * 4


@pytest.mark.usefixtures("_demo_site")
def test_a_second_scan_makes_tasks_only_for_threads_that_changed(redis_url: str, redis_client: redis.Redis) -> None:
    with ForumProcess(seed=3, forums=4, threads=10, comments=3, rate=0) as forum:
        seed(redis_client, ["f1"], "demo")
        crawl(redis_url, forum, "forum_list")
        assert redis_client.llen(DETAILS.start_tasks()) == 10
        redis_client.delete(LISTS.pending())
        seed(redis_client, ["f1"], "demo")
        crawl(redis_url, forum, "forum_list")
        assert redis_client.llen(DETAILS.start_tasks()) == 10


@pytest.mark.usefixtures("_demo_site")
def test_bad_start_tasks_are_set_aside_and_the_good_one_is_scanned(redis_url: str, redis_client: redis.Redis) -> None:
    bad = [
        b"not json",
        b'{"site": "demo"}',
        b'{"site": "demo", "forum": 7}',
        b'{"site": "nope", "forum": "f1"}',
        b'{"site": "demo", "forum": "f99"}',
    ]
    with ForumProcess(seed=3, forums=4, threads=5, comments=1) as forum:
        redis_client.rpush(LISTS.start_tasks(), *bad, encode(ForumTask(site="demo", forum="f1")))
        crawl(redis_url, forum, "forum_list")
    reasons = [json.loads(entry.split(b"\n")[0])["reason"] for entry in redis_client.lrange(LISTS.dead(), 0, 9)]
    for reason, said in zip(
        reasons,
        (
            "malformed",
            "missing required field `forum`",
            "Expected `str`, got `int`",
            "unknown site 'nope'",
            "unknown forum 'f99'",
        ),
        strict=True,
    ):
        assert said in reason
    assert [scan["outcome"] for scan in stored(redis_client, LISTS)] == ["complete"]


@pytest.mark.usefixtures("_demo_site")
def test_a_thread_that_is_gone_is_reported_so_and_what_fails_is_kept_with_the_reason(
    redis_url: str, redis_client: redis.Redis
) -> None:
    with ForumProcess(seed=3, forums=4, threads=5, comments=1) as forum:
        redis_client.rpush(DETAILS.start_tasks(), encode(PostTask(site="demo", post="p99999")))
        crawl(redis_url, forum, "forum_detail")
        forum.control(error_rate=1.0)
        redis_client.rpush(DETAILS.start_tasks(), encode(PostTask(site="demo", post="p1")))
        crawl(redis_url, forum, "forum_detail")
    checks = [(check["id"], check["gone"], check["whole"], check["reason"]) for check in stored(redis_client, DETAILS)]
    assert checks == [("p99999", True, False, "HTTP 404"), ("p1", False, False, "HTTP 500")]
    assert snapshot(redis_client, "forum_detail").dead == 1
    assert b"HTTP 500" in redis_client.lrange(DETAILS.dead(), 0, 0)[0]
