"""The promises about crawlers that die, each on real processes."""

from __future__ import annotations

from pathlib import Path

import redis

from tests.support.crawl import crawl
from tests.support.processes import wait_until


def test_a_crawler_killed_three_times_loses_no_page_and_no_item(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=400, latency_s=0.02) as run:
        run.seed()
        for death in range(1, 4):
            victim = run.start(SCHEDULER_OWNER_TTL=2)
            wait_until(lambda death=death: len(run.hits()) > 80 * death, lambda: f"the crawl is under way\n{run.log()}", 30)  # type: ignore[misc]
            victim.kill()
            victim.wait()
        assert run.start(SCHEDULER_OWNER_TTL=2).wait(60) == 0, run.log()
        assert run.missing() == ([], [])
        again = sum(count - 1 for count in run.hits().values())
        assert again <= 3 * (16 + 32), "only what was in flight, or finished and not acked yet, is fetched again"


def test_when_one_of_two_crawlers_is_killed_the_other_one_finishes_its_work(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=400, latency_s=0.02) as run:
        run.seed()
        victim = run.start(SCHEDULER_OWNER_TTL=2)
        survivor = run.start(SCHEDULER_OWNER_TTL=2)
        wait_until(lambda: len(run.hits()) > 100, lambda: f"the crawl is under way\n{run.log()}", 30)
        victim.kill()
        assert survivor.wait(60) == 0, run.log()
        assert run.missing() == ([], [])
