"""A BBSCollector as a scrapy-redis project has it, as a declared service: without a consumer at first, then with plain ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from redis_components.admin.inspector import CrawlSnapshot, snapshot
from tests.support.collected_forums import FORUMS, ITEMS, SERVICE, TASKS, CollectorFleet, forums_site, plain_consumers, truth
from tests.support.processes import wait_until

pytestmark = pytest.mark.usefixtures("no_process_left")
MAX_ITEMS = 200
CONSUMERS = 3


def test_three_forums_are_569_items_for_plain_consumers_and_none_is_lost_while_there_is_no_consumer(tmp_path: Path) -> None:
    expected = truth(FORUMS)
    assert len(expected) == 569
    with forums_site(FORUMS) as site, CollectorFleet(tmp_path, site, max_items=MAX_ITEMS) as fleet:
        client = fleet.redis.client()

        def shot() -> CrawlSnapshot:
            return snapshot(client, SERVICE)

        fleet.beat()
        fleet.node()
        fleet.wait_whole(f"{SERVICE}/0", f"{SERVICE}/1")
        fleet.crawl(FORUMS)

        # No consumer: crawlers start no page, which is said, and what was found waits.
        wait_until(lambda: shot().backed_up, lambda: f"items back up; {shot()}\n{fleet.said()}")
        fleet.wait_nothing_in_flight()
        waiting = shot()
        assert MAX_ITEMS <= waiting.items < 569
        assert waiting.ready + waiting.leased, "there is more to crawl"
        code, said = fleet.status()
        assert code == 1
        assert f"{SERVICE} starts no page" in said.replace("\n", " ")
        assert "another Redis" not in said, "REDIS_PARAMS name the fleet's"

        # Consumers come: the crawl goes on, and each item is there once.
        with plain_consumers(fleet, CONSUMERS) as taken:
            wait_until(lambda: len(taken) >= 569, lambda: f"all come; {len(taken)}; {shot()}\n{fleet.said()}")
            wait_until(lambda: not (shot().ready or shot().leased), lambda: f"the crawl runs out; {shot()}\n{fleet.said()}")
        items = [json.loads(item) for item in taken]
        assert sorted((item["kind"], item["id"]) for item in items) == sorted(expected)
        assert (client.llen(ITEMS), client.llen(TASKS), shot().dead) == (0, 0, 0)
        wait_until(lambda: fleet.status()[0] == 0, lambda: f"the alarm ends\n{fleet.status()[1]}")
