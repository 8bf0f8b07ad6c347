"""Pages that never answer, in a real crawl: each is given back with an attempt, and its place is free."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis

from redis_components.admin.dead_letters import newest
from redis_components.admin.inspector import snapshot
from redis_components.keys import CrawlKeys
from tests.support.crawl import crawl, link_site
from tests.support.fleet import program, toy_environment
from tests.support.processes import wait_until
from tests.support.silent_spiders import SETTINGS
from workers.state.registry import Registry

REASONS = {
    2: "an item pipeline",
    3: "the callback",
    4: "the callback",
    5: "the download",
    6: "the callback",
    7: "an item pipeline",
}


@pytest.mark.parametrize(
    "way", [{}, {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"}], ids=["asyncio", "select"]
)
def test_a_page_that_never_answers_is_set_aside_with_its_reason_and_the_rest_is_crawled(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path, way: dict[str, Any]
) -> None:
    with crawl(redis_url, tmp_path, pages=40, spider="silent") as run:
        run.seed(*(f"{run.site}/{page}" for page in range(1, 41)))
        settings = {**SETTINGS, "SCHEDULER_MAX_PAGE_AGE": 1.5, "SCHEDULER_MAX_ATTEMPTS": 1, "CONCURRENT_REQUESTS": 3}
        assert run.start(**settings, **way).wait(60) == 0, run.log()
        dead = {int(one.url.rpartition("/")[2]): one.reason for one in newest(redis_client, run.keys, 99)[0]}
        assert dead == {
            page: f"attempts spent: 1, the last one: {step} gave no sign of life for 1.5 s (SCHEDULER_MAX_PAGE_AGE)"
            for page, step in REASONS.items()
        }, run.log()
        assert set(range(1, 41)) - set(run.items()) == {2, 4, 5, 6}
        assert "CRITICAL" not in run.log()
    shot = snapshot(redis_client, "silent")
    assert (shot.ready, shot.leased, shot.leased_tasks, shot.owners, shot.stats["scheduler/page_too_old"]) == (0, 0, 0, 0, "6")


@pytest.mark.parametrize("taken", [0, 1])
def test_a_crawler_whose_start_is_not_asked_any_more_ends_and_its_start_task_is_another_ones(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path, taken: int
) -> None:
    with crawl(redis_url, tmp_path, pages=3, spider="silent") as run:
        run.seed(f"{run.site}/1", f"{run.site}/8")
        silent = {**SETTINGS, "SPIDER_MIDDLEWARES": '{"tests.support.silent_spiders.SilentStart": 500}', "SILENT_START": taken}
        assert run.start(**silent, SCHEDULER_MAX_PAGE_AGE=1, REDIS_START_URLS_BATCH_SIZE=1).wait(60) == 0, run.log()
        assert "start() was not asked for 1 s (SCHEDULER_MAX_PAGE_AGE)" in run.log()
        shot = snapshot(redis_client, "silent")
        assert (shot.start_tasks, shot.leased, shot.leased_tasks, shot.dead, shot.owners) == (2, 0, 0, 0, 0)
        assert redis_client.hvals(run.keys.start_deaths()) == [b"1"] * taken


def test_pages_whose_items_no_pipeline_answers_for_are_in_flight_and_the_oldest_is_named(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    keys, registry = CrawlKeys.for_spider("silent"), Registry(redis_client)
    environment = toy_environment(redis_url, tmp_path, SCRAPY_SETTINGS_MODULE="tests.support.link_settings")
    options = [part for setting in SETTINGS.items() for part in ("-s", "=".join(setting))]
    command = ["-m", "workers.crawler", "silent", "-s", "HEARTBEAT_INTERVAL=0.2", *options]
    with link_site(tmp_path, pages=7) as site, program(command, environment, tmp_path / "log") as crawler:
        redis_client.rpush(keys.start_tasks(), f"{site}/2", f"{site}/7")

        def figures() -> list[tuple[int, bool, str]]:
            return [(one.in_flight, one.oldest_s > 0, one.oldest) for one in registry.crawlers()]

        oldest = [f"an item pipeline of {site}/{page}" for page in (2, 7)]
        wait_until(lambda: any((2, True, one) in figures() for one in oldest), lambda: f"{figures()}\n{crawler.said()}")
        crawler.process.kill()
        crawler.wait()
