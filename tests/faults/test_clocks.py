"""Clocks that jump: Redis's own, by which leases run out, and that of a machine with crawlers."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from redis_components.admin.inspector import snapshot
from tests.faults.test_promises import nothing_is_missing, reach
from tests.support.crawl import crawl
from tests.support.faked_clock import Clock, RedisWithClock, needs_compiler
from tests.support.redis_server import RedisServer

pytestmark = needs_compiler

PAGES = 150
HOUR_S, DAY_S = 3600, 86_400


@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S], ids=["an hour ahead", "an hour back"])
def test_redis_clock_jumps_and_a_crawler_dies_then_nothing_is_missing(tmp_path: Path, jump_s: int) -> None:
    with RedisWithClock(tmp_path, aof=True) as server, crawl(server.url, tmp_path, pages=PAGES, latency_s=0.05) as run:
        run.seed()
        first, second = run.start(), run.start()
        run.wait_for(2)
        reach(run, 0.2)
        server.set_to(time.time() + jump_s)
        reach(run, 0.5)
        second.kill()
        assert first.wait(60) == 0, run.log()  # the killed one's leases are back long before an hour
        shot = snapshot(server.client(), run.spider)
        assert (*run.missing(), shot.ready, shot.leased, shot.leased_tasks) == ([], [], 0, 0, 0), run.log()
        assert max(run.hits().values()) <= 3, "what was in flight is fetched again, at the jump and at the death"


@pytest.mark.parametrize("jump_s", [DAY_S, -DAY_S], ids=["a day ahead", "a day back"])
def test_the_clock_of_a_machine_with_crawlers_jumps_and_each_page_is_fetched_once(
    tmp_path: Path, jump_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(tmp_path)
    with RedisServer() as server, crawl(server.url, tmp_path, pages=PAGES, latency_s=0.05) as run:
        run.seed()
        right = run.start()
        with monkeypatch.context() as environment:
            for name, value in clock.environment.items():
                environment.setenv(name, value)
            wrong = run.start()
        run.wait_for(2)
        reach(run, 0.2)
        clock.jump(jump_s)
        assert (right.wait(60), wrong.wait(60)) == (0, 0), run.log()
        nothing_is_missing(run)
        assert set(run.hits().values()) == {1}
        days = re.findall(r"^(\d{4}-\d\d-\d\d) ", (tmp_path / "crawler-1.log").read_text(), re.MULTILINE)
        assert days[0] != days[-1], "its clock has jumped"
