"""The primary is killed in the middle of a crawl and its replica takes over: nothing is missing. Real servers, real processes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from redis_components.inspector import snapshot
from tests.support.crawl import crawl
from tests.support.processes import wait_until
from tests.support.redis_groups import TAG, ClusterGroup, Group, SentinelGroup

WITHOUT_A_LOOP = {"TWISTED_REACTOR": "twisted.internet.epollreactor.EPollReactor"}  # its exchanges travel in a thread


@pytest.mark.parametrize("group_of", [partial(SentinelGroup, sentinels=1), ClusterGroup], ids=["Sentinel", "Cluster"])
def test_a_failover_in_mid_crawl_loses_no_page_and_no_item(group_of: Callable[[], Group], tmp_path: Path) -> None:
    with group_of() as group, crawl(group.url, tmp_path, pages=300, latency_s=0.1, namespace=TAG) as run:
        run.start()
        run.start(**WITHOUT_A_LOOP)
        with run.client() as client:
            wait_until(lambda: snapshot(client, "links", run.keys).owners == 2, lambda: f"both are there\n{run.log()}", 30)
        run.seed()
        wait_until(lambda: len(run.hits()) > 90, lambda: f"a third of the pages is fetched\n{run.log()}", 30)
        group.primary().kill()
        run.finish()
        assert run.missing() == ([], []), run.log()
        with run.client() as client:
            shot = snapshot(client, "links", run.keys)
        assert run.log().count("Redis answers again after") == 2, "both have noticed, and told it once"
        assert (shot.ready, shot.leased, shot.leased_tasks, shot.owners) == (0, 0, 0, 0)
