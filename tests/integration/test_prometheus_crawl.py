"""A real Prometheus watches a real fleet that crawls: each query of each dashboard and recording rule finds its figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from demo.forum.process import ForumProcess
from demo.processes import PACE
from tests.integration.test_exporter_process import running_exporter
from tests.support.dashboards import queries
from tests.support.forum_fleet import BOARDS, ForumFleet
from tests.support.processes import none_left, wait_until
from tests.support.prometheus import MISSING, PROMETHEUS, hastened, prometheus, rules_of
from tests.support.watched_fleet import MARK

SIZES = "forum_list=1,forum_detail=1"
OF_TROUBLE = re.compile(r"trawl_site_breaker|trawl_site_blocked|trawl_redis_memory")
"""What has no figures in a fleet that is well, or whose Redis has no limit."""


@pytest.mark.processes
@pytest.mark.skipif(PROMETHEUS is None, reason=MISSING)
def test_every_query_finds_its_figures_in_a_crawl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_FLEET", SIZES)
    asked = [re.sub(r"\$\w+", ".*", query) for _, query in queries()]
    asked += [rule["record"] for rule in rules_of("recording.yml")]
    left = [query for query in asked if not OF_TROUBLE.search(query)]
    with (
        none_left((MARK, str(tmp_path))),
        ForumProcess(seed=18, forums=BOARDS, threads=20, comments=4, pace=PACE) as forum,
        ForumFleet(tmp_path, forum, sizes=SIZES, nodes="ab", beats=1) as fleet,
        running_exporter(fleet.redis.url) as (_, port),
        prometheus(tmp_path, port, hastened) as server,
    ):
        forum.control(rate=5, edit_rate=0.1, delete_rate=0.1, latency_ms=20, error_rate=0.02)

        def found() -> bool:
            left[:] = [query for query in left if not server.values(query)]
            return not left

        wait_until(found, lambda: f"figures of {left}\n{fleet.said()}", 120, every_s=1.0)
        for query in filter(OF_TROUBLE.search, asked):
            server.values(query)  # an HTTP error where it is wrong
