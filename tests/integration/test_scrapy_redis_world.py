"""What projects for scrapy-redis do that its own tests do not: values in `meta`, stop messages, `scrapy fetch`."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from subprocess import DEVNULL, PIPE

import redis

from tests.support import warm_start
from tests.support.crawl import ROOT, crawl, link_site
from tests.support.processes import wait_until

STATES = {"Row": ["x"], "Data": ["x", "made"], "Frozen": ["x"], "PageMethod": ["x"], "NoneType": []}


def test_objects_of_the_project_in_meta_are_stored_exactly_and_shared_and_a_sigterm_fetches_nothing_twice(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=127, latency_s=0.05, spider="meta-values") as run:
        first, second = (run.start(CONCURRENT_REQUESTS=4) for _ in range(2))
        run.wait_for(2)
        run.seed()
        wait_until(lambda: len(run.hits()) > 30, lambda: f"30 pages\n{run.log()}", 60)
        first.send_signal(signal.SIGTERM)
        run.finish()
        assert (first.returncode, second.returncode) == (0, 0), run.log()
        assert run.hits() == dict.fromkeys(range(1, 128), 1)
        assert run.items() == list(range(1, 128))
        assert "kept in memory" not in run.log()
        items = [json.loads(one) for one in redis_client.lrange(run.keys.item_stream(), 0, -1)]
    assert {one["kind"] for one in items} == set(STATES)
    assert all(one["state"] == STATES[one["kind"]] for one in items)


def test_a_stop_message_ends_one_crawl_and_is_gone(redis_url: str, redis_client: redis.Redis, tmp_path: Path) -> None:
    with crawl(redis_url, tmp_path, pages=3, spider="stop-message") as run:
        run.seed("STOP", f"{run.site}/2")
        assert run.start().wait(60) == 0, run.log()
        assert "Spider closed (asked to)" in run.log()
        assert redis_client.lrange(run.keys.start_tasks(), 0, -1) == [f"{run.site}/2".encode()]
        assert redis_client.llen(run.keys.dead()) == 0


def test_scrapy_fetch_ends_without_redis_and_takes_nothing_from_the_queue(tmp_path: Path) -> None:
    with link_site(tmp_path, pages=3) as site:
        environment = {
            **os.environ,
            "TRAWL_REDIS_URL": "redis://127.0.0.1:1",  # nothing listens there
            "SCRAPY_SETTINGS_MODULE": "tests.support.link_settings",
        }
        command = [sys.executable, "-m", "tests.support.scrapy_command"]
        for arguments in (["fetch", "--spider", "links", f"{site}/1"], ["parse", "--spider", "links", f"{site}/1"]):
            done = warm_start.run([*command, *arguments], cwd=ROOT, env=environment, stdout=PIPE, stderr=DEVNULL, timeout=60)
            assert done.returncode == 0
            assert b"/2" in done.stdout
