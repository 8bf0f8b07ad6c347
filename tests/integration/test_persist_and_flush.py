"""What one process deletes or waits for when it starts and ends, beside others at work: real processes."""

from __future__ import annotations

import signal
from pathlib import Path

import redis
from scrapy import Request

from redis_components.admin.inspector import snapshot
from redis_components.queue import PriorityQueue
from tests.support.crawl import crawl
from tests.support.link_spiders import StartingSpider
from tests.support.processes import wait_until


def test_a_process_that_closes_or_flushes_takes_nothing_from_those_at_work_and_the_last_one_tidies_up(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=250, latency_s=0.05) as run:
        with run.kept_open():
            first = run.start(SCHEDULER_PERSIST=False)
            run.seed(f"{run.site}/60")
            wait_until(lambda: run.items() == [60, 120, 121, 240, 241, 242, 243], lambda: f"the first one works\n{run.log()}", 60)
            run.start(SCHEDULER_PERSIST=False, SCHEDULER_FLUSH_ON_START=True)
            run.wait_for(2)
            assert snapshot(redis_client, "links").fingerprints == 6
            run.seed()
            wait_until(lambda: len(run.hits()) > 60, lambda: f"both crawl\n{run.log()}", 60)
            first.send_signal(signal.SIGTERM)
            assert first.wait(60) == 0, run.log()
            assert snapshot(redis_client, "links").fingerprints > 20
        run.finish()
        assert run.hits() == dict.fromkeys(range(1, 251), 1) | {60: 2}  # a start task, which is not filtered
        assert "flush: not done" in run.log()
        assert run.log().count("flush: wiped") == 1
    assert redis_client.exists(run.keys.ready(), run.keys.fingerprints(), run.keys.counters(), run.keys.owners()) == 0


def test_a_process_waits_for_work_without_standing_still_before_it_closes(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=31, spider="starting") as run:
        process = run.start("-a", f"site={run.site}", SCHEDULER_IDLE_BEFORE_CLOSE=15)
        wait_until(lambda: len(run.hits()) == 30, lambda: f"the spider's own requests are done\n{run.log()}", 60)
        queue = PriorityQueue(redis_client, StartingSpider(), run.keys.requests)
        queue.push(Request(f"{run.site}/31", dont_filter=True))
        wait_until(lambda: 31 in run.hits(), lambda: f"it takes what comes while it waits\n{run.log()}", 12)
        assert process.wait(60) == 0, run.log()
        assert "Spider closed (finished)" in run.log()
