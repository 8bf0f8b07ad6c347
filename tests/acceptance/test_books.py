"""One's own project with consumers in the ways to start a fleet; `make test-deployments` takes all six, and kills each part."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.fleet.books import BATCH, IN_FLIGHT, books, run
from tests.support.deployments import WAYS

ALL = os.environ.get("DEPLOYMENTS") == "all"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("way", ["compose"])
def test_what_is_declared_is_crawled_consumed_and_seen(way: str, tmp_path: Path) -> None:
    with books(way, tmp_path, pages=20, replicas=1, latency_s=0.0) as case:
        row = case.row(1)
        assert (row.lines_missing, row.rows_missing, row.rows_twice, row.copies, row.fetched_twice) == (0, 0, 0, 0, 0)
        for service in ("books", "shelf"):
            assert "written: " in case.deployment.trawl("services", "show", service)
        status = case.deployment.trawl("status")
        assert "no node serves" not in status
        assert "none runs" not in status


@pytest.mark.timeout(900)
@pytest.mark.skipif(not ALL, reason="a long form: make test-deployments")
@pytest.mark.parametrize("way", WAYS)
def test_no_item_is_lost_in_any_way_when_each_part_is_killed(way: str) -> None:
    row = run(way, pages=900, replicas=3)
    assert (row.lines_missing, row.rows_missing, row.rows_twice) == (0, 0, 0)
    assert row.copies <= 4 * IN_FLIGHT + BATCH
