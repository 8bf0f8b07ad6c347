"""Pages that Scrapy ends without having finished them, and requests that live in one process only: neither is forgotten."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
import redis

from redis_components.admin.inspector import expire_owner, snapshot
from tests.support.crawl import Crawl, crawl
from tests.support.processes import wait_until

FULL_DISK = json.dumps({"tests.support.link_spiders.FullDisk": 100, "redis_components.pipelines.RedisPipeline": 300})


def expire_all(client: redis.Redis, run: Crawl) -> None:
    """As a supervisor does that saw its crawlers end."""
    for owner in client.zrange(run.keys.owners(), 0, 9):
        expire_owner(client, run.keys, owner.decode())


def test_a_page_whose_callback_raises_close_spider_is_crawled_again_by_a_later_run(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=40, spider="closing") as run:
        run.seed()
        assert run.start().wait(60) == 0, run.log()
        shot = snapshot(redis_client, "closing")
        assert (shot.leased, shot.dead, shot.owners) == (0, 0, 0)
        assert shot.ready >= 1
        assert "Spider closed (enough)" in run.log()
        assert run.start("-a", "at=").wait(60) == 0, run.log()
        assert run.missing() == ([], [])
        assert run.hits()[3] == 2


def test_a_page_whose_item_makes_a_pipeline_raise_close_spider_is_crawled_again_by_a_later_run(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=40) as run:
        run.seed()
        assert run.start(ITEM_PIPELINES=FULL_DISK).wait(60) == 0, run.log()
        shot = snapshot(redis_client, "links")
        assert (shot.leased, shot.dead, shot.owners) == (0, 0, 0)
        assert "Spider closed (disk full)" in run.log()
        assert run.start().wait(60) == 0, run.log()
        assert run.missing() == ([], [])
        assert run.hits()[3] == 2


def test_a_start_task_that_closes_the_spider_is_done(redis_url: str, redis_client: redis.Redis, tmp_path: Path) -> None:
    with crawl(redis_url, tmp_path, pages=3, spider="closing") as run:
        run.seed()
        assert run.start("-a", "at=task").wait(60) == 0, run.log()
        shot = snapshot(redis_client, "closing")
        assert (shot.start_tasks, shot.leased_tasks, shot.dead) == (0, 0, 0)
        assert "Spider closed (enough)" in run.log()


@pytest.mark.parametrize("spider", ["lambdas", "lambda-redirects"])
def test_requests_that_live_in_one_process_are_found_again_when_it_is_killed(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path, spider: str
) -> None:
    with crawl(redis_url, tmp_path, pages=31, latency_s=0.2, spider=spider) as run:
        run.seed()
        first = run.start(CONCURRENT_REQUESTS=2)
        wait_until(lambda: len(run.hits()) > 4, lambda: f"the crawl is under way\n{run.log()}", 60)
        first.kill()
        first.wait()
        assert snapshot(redis_client, spider).leased == 1  # page 1, of which all the others are parts
        expire_all(redis_client, run)
        assert run.start().wait(60) == 0, run.log()
        assert run.missing() == ([], [])
    shot = snapshot(redis_client, spider)
    assert (shot.ready, shot.leased, shot.dead, shot.acked) == (0, 0, 0, 1)


def test_requests_that_live_in_one_process_are_found_again_when_it_is_stopped(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=40, latency_s=0.1, spider="lambdas") as run:
        run.seed()
        first = run.start(CONCURRENT_REQUESTS=1)
        wait_until(lambda: len(run.hits()) > 3, lambda: f"the crawl is under way\n{run.log()}", 60)
        first.send_signal(signal.SIGTERM)
        assert first.wait(60) == 0, run.log()
        assert "the 1 pages they came from will be crawled again" in run.log()
        shot = snapshot(redis_client, "lambdas")
        assert (shot.ready, shot.leased, shot.owners) == (1, 0, 0)
        assert run.start().wait(60) == 0, run.log()
        assert run.missing() == ([], [])


def test_a_start_task_stays_leased_while_its_requests_live_in_one_process(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=7, latency_s=0.5, spider="lambda-tasks") as run:
        run.seed(run.site)
        first = run.start(CONCURRENT_REQUESTS=1)
        wait_until(lambda: len(run.hits()) > 1, lambda: f"the crawl is under way\n{run.log()}", 60)
        first.kill()
        first.wait()
        assert snapshot(redis_client, "lambda-tasks").leased_tasks == 1
        expire_all(redis_client, run)
        assert run.start().wait(60) == 0, run.log()
        assert run.missing() == ([1], [1])
    shot = snapshot(redis_client, "lambda-tasks")
    assert (shot.start_tasks, shot.leased_tasks, shot.dead) == (0, 0, 0)


def test_a_failure_of_a_request_kept_in_memory_keeps_the_page_it_came_from(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=5, spider="lambda-broken") as run:
        run.seed()
        assert run.start().wait(60) == 0, run.log()
        assert run.missing() == ([], [3])
    (dead,) = redis_client.lrange(run.keys.dead(), 0, 9)
    assert dead.partition(b"\n")[2].startswith(b"\x01")
    assert f"{run.site}/1".encode() in dead
    assert b"/3>, found here and kept in memory: value error: page 3 has changed its looks" in dead
