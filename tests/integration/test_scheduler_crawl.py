"""Stock Scrapy with Trawl's components by settings alone: real processes, a real site, a real Redis."""

from __future__ import annotations

import signal
from pathlib import Path

import redis

from redis_components.inspector import snapshot
from tests.support.crawl import crawl
from tests.support.processes import wait_until


def test_a_crawl_fetches_every_page_once_and_leaves_nothing_open(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=200) as run:
        run.seed()
        assert run.start().wait(60) == 0, run.log()
        assert run.hits() == dict.fromkeys(range(1, 201), 1)
        assert run.items() == list(range(1, 201))
    shot = snapshot(redis_client, "links")
    assert (shot.ready, shot.leased, shot.leased_tasks, shot.owners, shot.dead) == (0, 0, 0, 0, 0)
    assert shot.acked == 200
    assert shot.stats["downloader/response_count"] == "200"
    assert shot.stats["item_scraped_count"] == "200"


def test_two_processes_share_one_crawl_and_both_end_when_all_of_it_is_done(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=300, latency_s=0.05) as run:
        run.start()
        run.start()
        wait_until(lambda: snapshot(redis_client, "links").owners == 2, lambda: f"both crawlers are there\n{run.log()}", 30)
        run.seed()
        run.finish()
        assert run.hits() == dict.fromkeys(range(1, 301), 1)
    assert snapshot(redis_client, "links").stats["downloader/response_count"] == "300"
    own = [redis_client.hgetall(key) for key in redis_client.keys("links:stats:*")]
    assert [(b"start_time" in stats, stats[b"finish_reason"]) for stats in own] == [(True, b"finished")] * 2


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
    for reason in ("Missing scheme in request url: not%20a%20url", "Expected `str`, got `int`", "unknown field `colour`"):
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
    with crawl(redis_url, tmp_path, pages=300, latency_s=0.05) as run:
        run.seed()
        first = run.start()
        wait_until(lambda: len(run.hits()) > 60, lambda: f"the crawl is under way\n{run.log()}", 30)
        first.send_signal(signal.SIGTERM)
        assert first.wait(30) == 0, run.log()
        shot = snapshot(redis_client, "links")
        assert (shot.leased, shot.owners) == (0, 0)
        assert shot.ready > 0
        assert run.start().wait(60) == 0, run.log()
        assert run.hits() == dict.fromkeys(range(1, 301), 1)
        assert run.items() == list(range(1, 301))
