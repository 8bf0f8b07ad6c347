"""The same crawl on every way in which Scrapy can run: without asyncio, and without a reactor."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
import redis

from redis_components.admin.inspector import expire_owner, snapshot
from tests.support.crawl import crawl
from tests.support.processes import wait_until

WAYS: list[dict[str, Any]] = [
    {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"},
    {"TWISTED_REACTOR": "twisted.internet.epollreactor.EPollReactor"},
    {"TWISTED_REACTOR_ENABLED": False},
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: str(*way.values()).rpartition(".")[2])
def test_a_crawl_is_complete_and_stops_in_good_order(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path, way: dict[str, Any]
) -> None:
    with crawl(redis_url, tmp_path, pages=150, latency_s=0.15) as run:
        run.seed()
        first = run.start(**way)
        wait_until(lambda: len(run.hits()) > 30, lambda: f"the crawl is under way\n{run.log()}", 60)
        first.send_signal(signal.SIGTERM)
        assert first.wait(60) == 0, run.log()
        shot = snapshot(redis_client, "links")
        assert (shot.leased, shot.owners) == (0, 0)
        assert run.start(**way).wait(60) == 0, run.log()
        assert run.hits() == dict.fromkeys(range(1, 151), 1)
        assert run.items() == list(range(1, 151))
        assert "Traceback" not in run.log()
    shot = snapshot(redis_client, "links")
    assert (shot.ready, shot.leased, shot.leased_tasks, shot.owners, shot.dead) == (0, 0, 0, 0, 0)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: str(*way.values()).rpartition(".")[2])
def test_requests_that_cannot_be_stored_are_crawled(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path, way: dict[str, Any]
) -> None:
    with crawl(redis_url, tmp_path, pages=15, spider="lambdas") as run:
        run.seed()
        assert run.start(**way).wait(60) == 0, run.log()
        assert run.missing() == ([], [])
    shot = snapshot(redis_client, "lambdas")
    assert (shot.leased, shot.acked) == (0, 1)


@pytest.mark.parametrize("way", [{}, *WAYS], ids=lambda way: str(*way.values()).rpartition(".")[2] or "asyncio")
def test_a_second_signal_ends_it_at_once_and_what_was_cut_off_is_crawled_again(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path, way: dict[str, Any]
) -> None:
    with crawl(redis_url, tmp_path, pages=1, latency_s=6) as run:
        run.seed()
        first = run.start(**way)
        wait_until(lambda: run.hits(), lambda: f"the page is being fetched\n{run.log()}", 60)
        for _ in range(2):
            first.send_signal(signal.SIGTERM)
            wait_until(lambda: "SIGTERM" in run.log(), lambda: f"the signal is heard\n{run.log()}", 60)
        first.wait(60)
        assert "forcing unclean shutdown" in run.log()
        assert snapshot(redis_client, "links").acked == 0
        for owner in redis_client.zrange(run.keys.owners(), 0, 9):
            expire_owner(redis_client, run.keys, owner.decode())
        assert run.start(**way).wait(60) == 0, run.log()
        assert run.items() == [1]
        assert run.hits() == {1: 2}


class FailsToOpen:
    """A pipeline whose database is away."""

    def open_spider(self) -> None:
        raise RuntimeError("no database")

    def process_item(self, item: Any) -> Any:
        return item


@pytest.mark.parametrize("way", [{}, *WAYS[:1]], ids=["asyncio", "SelectReactor"])
def test_a_crawl_that_never_starts_says_good_bye(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path, way: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with crawl(redis_url, tmp_path, pages=1) as run:
        monkeypatch.setenv("COLD_STARTS", "1")  # Twisted tells the error when Python takes its Deferred apart, at the end
        run.seed()
        run.start(ITEM_PIPELINES='{"tests.integration.test_other_reactors.FailsToOpen": 1}', **way).wait(60)
        assert "no database" in run.log()
    shot = snapshot(redis_client, "links")
    assert (shot.owners, shot.leased, shot.start_tasks, shot.leased_tasks) == (0, 0, 1, 0)
