"""The stats of several real processes together: each thing is counted once, whoever counted it."""

from __future__ import annotations

from pathlib import Path

import redis

from redis_components.admin.inspector import snapshot
from tests.support.crawl import crawl

PAGES = 120
PARSED = PAGES + 1  # page 1 is a start task, which is not filtered, and is then found once more as a link


def test_sums_maxima_and_minima_are_those_of_all_processes_and_what_was_set_is_the_last_ones(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=PAGES, latency_s=0.05, spider="counting") as run:
        for _ in range(2):
            run.start()
        run.wait_for(2)
        run.seed()
        run.finish()
        assert run.missing() == ([], [])
    stats = snapshot(redis_client, "counting").stats
    assert float(stats["my/sum"]) == PARSED * 0.25
    assert (stats["my/max"], stats["my/min"]) == (str(PAGES), "0.5")
    assert stats["downloader/response_count"] == stats["scheduler/dequeued"] == str(PARSED)
    found = (PAGES - 1 + 2) + PARSED  # links, those of page 1 twice; and page 1 on each page
    assert stats["dupefilter/filtered"] == str(found - PAGES)
    assert redis_client.keys("counting:stats:*") == [], "what was a process's own went with it"
    assert stats["my/when"] == "1769860800.0"  # in epoch seconds, as by scrapy-redis; of the last one that left
    assert stats["my/nothing"] == "None"
    assert stats["my/text"] == "\\ud800 \N{CHECK MARK}"
    assert stats["finish_reason"] == "finished"  # set last of all
    assert stats["start_time"] < stats["finish_time"]


def test_a_later_process_goes_on_counting(redis_url: str, redis_client: redis.Redis, tmp_path: Path) -> None:
    with crawl(redis_url, tmp_path, pages=3) as run:
        for task in (4, 5):
            run.seed(f"{run.site}/{task}")
            assert run.start().wait(60) == 0, run.log()
    assert snapshot(redis_client, "links").stats["downloader/response_count"] == "2"
