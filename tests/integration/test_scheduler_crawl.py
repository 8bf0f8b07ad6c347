"""Stock Scrapy with Trawl's components by settings alone: real processes, a real site, a real Redis."""

from __future__ import annotations

import signal
from pathlib import Path

import redis

from redis_components.admin.inspector import snapshot
from tests.support.crawl import crawl
from tests.support.processes import wait_until
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer


def test_a_crawl_fetches_every_page_once_and_leaves_nothing_open(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=100) as run:
        run.seed()
        assert run.start().wait(60) == 0, run.log()
        assert run.hits() == dict.fromkeys(range(1, 101), 1)
        assert run.items() == list(range(1, 101))
    shot = snapshot(redis_client, "links")
    assert (shot.ready, shot.leased, shot.leased_tasks, shot.owners, shot.dead) == (0, 0, 0, 0, 0)
    assert shot.acked == 100
    assert shot.stats["downloader/response_count"] == "100"
    assert shot.stats["item_scraped_count"] == "100"


def test_two_processes_share_one_crawl_and_both_end_when_all_of_it_is_done(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=150, latency_s=0.1) as run:
        run.start()
        run.start()
        run.wait_for(2)
        run.seed()
        run.finish()
        assert run.hits() == dict.fromkeys(range(1, 151), 1)
    stats = snapshot(redis_client, "links").stats
    assert (stats["downloader/response_count"], "start_time" in stats, stats["finish_reason"]) == ("150", True, "finished")
    assert redis_client.keys("links:stats:*") == []


def test_a_bad_start_task_is_set_aside_and_its_neighbours_are_crawled(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=9) as run:
        run.seed(
            "not a url",
            f"{run.site}/4",
            '{"url": 3}',
            '{"url": "http://127.0.0.1/", "colour": "red"}',
            f'{{"url": "{run.site}/5"}}',
        )
        assert run.start().wait(60) == 0, run.log()
        assert sorted(run.hits()) == [4, 5, 8, 9]
    reasons = b"\n".join(redis_client.lrange(run.keys.dead(), 0, 9)).decode()
    for reason in ("neither a URL with a scheme", "field 'url': expected `str`, got `int`", "unknown field 'colour'"):
        assert reason in reasons


def test_callbacks_that_cannot_be_stored_stay_in_the_process_and_are_said_once(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=30, spider="lambdas") as run:
        run.seed()
        assert run.start().wait(60) == 0, run.log()
        assert run.missing() == ([], [])
        assert run.log().count("is not a method of spider 'lambdas'") == 1
    assert snapshot(redis_client, "lambdas").stats["scheduler/unserializable"] == "29"


def test_a_page_that_the_spider_does_not_understand_is_kept_with_the_reason(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=10, spider="broken") as run:
        run.seed()
        assert run.start().wait(60) == 0, run.log()
        assert sorted(run.hits()) == [1, 2, 3, 4, 5, 8, 9, 10]
    (dead,) = redis_client.lrange(run.keys.dead(), 0, 9)
    assert b"page 3 has changed its looks" in dead
    assert f"{run.site}/3".encode() in dead


def test_an_undecodable_request_is_set_aside_and_the_crawl_goes_on(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=5) as run:
        redis_client.zadd(run.keys.ready(), {bytes(9) + b"\x80\x04pickle": 0, b"short": 0})
        run.seed()
        assert run.start().wait(60) == 0, run.log()
        assert run.missing() == ([], [])
    assert snapshot(redis_client, "links").dead == 2


def test_sigterm_finishes_what_is_in_flight_and_nothing_is_fetched_twice(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=300, latency_s=0.1) as run:
        run.seed()
        first = run.start()
        wait_until(lambda: len(run.hits()) > 60, lambda: f"the crawl is under way\n{run.log()}", 60)
        first.send_signal(signal.SIGTERM)
        assert first.wait(60) == 0, run.log()
        shot = snapshot(redis_client, "links")
        assert (shot.leased, shot.owners) == (0, 0)
        assert shot.ready > 0
        assert run.start(LOG_LEVEL="DEBUG").wait(60) == 0, run.log()
        assert run.log().count(f"Resuming crawl ({shot.ready} requests scheduled)") == 1
        assert run.hits() == dict.fromkeys(range(1, 301), 1)
        assert run.items() == list(range(1, 301))


def test_a_callback_that_computes_for_longer_than_the_time_to_live_keeps_its_lease(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=5, spider="slow") as run:
        for _ in range(2):
            run.start(SCHEDULER_OWNER_TTL=3)
        run.wait_for(2)
        run.seed()
        run.finish()
        assert run.hits() == dict.fromkeys(range(1, 6), 1)


def test_sigterm_in_the_middle_of_a_start_task_loses_and_leaves_nothing(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=10, latency_s=0.05, spider="ten") as run:
        run.seed(run.site)
        assert run.start().wait(60) == 0, run.log()
        shot = snapshot(redis_client, "ten")
        assert (shot.start_tasks, shot.leased, shot.leased_tasks, shot.owners) == (0, 0, 0, 0)
        assert shot.ready + len(run.hits()) == 10


def test_requests_that_cannot_be_stored_are_kept_also_while_redis_is_away(
    redis_server: RedisServer, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with Proxy(redis_server.port) as proxy, crawl(redis_server.url, tmp_path, pages=7, latency_s=0.5, spider="lambdas") as run:
        run.seed()
        run.redis_url = redis_server.url.replace(f":{redis_server.port}/", f":{proxy.port}/")
        process = run.start()
        run.redis_url = redis_server.url
        # Not only leased in Redis: the crawler must have read that answer before its connection is cut.
        wait_until(run.hits, lambda: f"the first page is being fetched\n{run.log()}", 60)
        proxy.refuse = True
        wait_until(lambda: len(run.hits()) >= 3, lambda: f"the crawl goes on without Redis\n{run.log()}", 60)
        proxy.refuse = False
        assert process.wait(60) == 0, run.log()
        assert run.missing() == ([], [])


def test_an_item_that_cannot_be_serialized_does_not_let_its_page_be_forgotten(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=5, spider="bad-item") as run:
        run.seed()
        assert run.start().wait(60) == 0, run.log()
        assert run.items() == [1, 2, 4, 5]
    (dead,) = redis_client.lrange(run.keys.dead(), 0, 9)
    assert f"{run.site}/3".encode() in dead


def test_the_pipeline_alone_stores_every_item_and_leases_nothing(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=30, spider="starting") as run:
        redis_client.zadd(run.keys.ready(), {bytes(9) + b"another crawl's request": 0})
        assert run.start("-a", f"site={run.site}", SCHEDULER="scrapy.core.scheduler.Scheduler").wait(60) == 0, run.log()
        assert run.items() == list(range(1, 31))
    assert redis_client.zcard(run.keys.ready()) == 1


def test_a_layout_from_the_future_ends_the_crawl_with_a_clear_line(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=3) as run:
        redis_client.hset(run.keys.counters(), "layout", 99)
        run.start().wait(60)
        assert "layout version 99, this process knows 1: upgrade it" in run.log()
        assert "did not answer" not in run.log()
