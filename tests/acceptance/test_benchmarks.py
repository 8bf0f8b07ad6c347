"""Every benchmark works and its figures make sense, in its shortest form; how fast anything is, no test can say."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from benchmarks.peers.crawl import laid_over
from tests.support.benchmark import lines_of, run_benchmark

SHORT = {
    "scaling": ["--rounds=1", "--crawlers", "1", "2", "--seconds=1.5", "--page-ms=20", "--concurrency=4"],
    "settings_share": ["--rounds=1", "--threads=4", "--only"],
    "kill_table": ["--repetitions=1", "--pages=40", "--page-ms=60", "--only", "the same at the crawl's end"],
    "start_tasks": ["--rounds=1", "--pages=40", "--slow-ms=100", "--tasks=2", "--without-scrapy-redis"],
    "crawl_speed": ["--rounds=1", "--threads=4", "--slow-threads=1", "--delays", "1", "--without-scrapy-redis"],
    "chains": ["--rounds=1", "--chains", "4", "--pages=24", "--delays", "0"],
    "memory": ["--requests=5000", "--without-scrapy-redis"],
    "holds": ["--rounds=1", "--crawlers=1", "--backlog=300", "--only=idle"],
    "writer_rows": ["--rounds=1", "--rows=500", "--only=SQLite"],
    "dupefilters": ["--entries", "10000", "--checked=1000"],
    "sizes": ["--threads=2000", "--rows=400", "--chromium="],
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[dict[str, Any]]]]:
    """What each benchmark wrote; three run at a time, because they mostly wait. `make test` asks for few of them, and
    runs no others.
    """
    with ThreadPoolExecutor(3) as pool:
        results = _Results(pool, tmp_path_factory.mktemp("benchmarks"))
        for name in () if os.environ.get("SHORT_TESTS") else SHORT:
            results[name]
        yield results


class _Results(dict[str, "Future[dict[str, Any]]"]):
    """Runs a benchmark when its result is first asked for."""

    def __init__(self, pool: ThreadPoolExecutor, folder: Path) -> None:
        super().__init__()
        self._pool, self._folder = pool, folder

    def __missing__(self, name: str) -> Future[dict[str, Any]]:
        return self.setdefault(name, self._pool.submit(run_benchmark, name, SHORT[name], self._folder))


def rows(result: Future[dict[str, Any]], table: int = 0) -> dict[str, dict[str, Any]]:
    """The lines of a table by their first cell."""
    return lines_of(result.result(), table)


def test_a_crawler_is_compared_with_vanilla_on_the_same_pages(results: dict[str, Future[dict[str, Any]]]) -> None:
    table = rows(results["crawl_speed"])
    assert table["vanilla"]["pages"] == table["trawl 1 ms"]["pages"] > 30
    assert table["vanilla"]["÷ vanilla"] == 1
    assert 0 < table["trawl 1 ms"]["÷ vanilla"] < 10
    assert 0 < table["trawl 1 ms"]["sent per page"] < table["trawl 1 ms"]["commands per page"]
    assert table["trawl 1 ms"]["redis cpu us per page"] > 0


def test_the_fleets_settings_are_compared_with_scrapys_defaults(results: dict[str, Future[dict[str, Any]]]) -> None:
    table = rows(results["settings_share"])
    assert table["vanilla, Scrapy's defaults"]["÷ Scrapy's defaults"] == 1
    assert 0 < table["the fleet's settings"]["÷ Scrapy's defaults"] < 100


def test_two_crawlers_share_one_frontier(results: dict[str, Future[dict[str, Any]]]) -> None:
    table = rows(results["scaling"])
    assert table["1"]["÷ linear"] == 1
    assert table["2"]["÷ linear"] > 0  # how fast is the long form's business: here others are at work
    assert 0 < table["1"]["÷ what the latency allows"] < 2


def test_what_a_thread_and_a_row_take_is_measured(results: dict[str, Future[dict[str, Any]]]) -> None:
    table = rows(results["sizes"])
    assert 50 < table["threads in Redis"]["B each"] < 500
    assert 500 < table["rows in SQLite"]["B each"] < 5000


def test_chains_are_followed_to_their_end(results: dict[str, Future[dict[str, Any]]]) -> None:
    table = rows(results["chains"])
    assert {row["pages"] for row in table.values()} == {25}
    assert all(row["step, ms"] > 0 for row in table.values())


def test_start_tasks_are_all_fetched_and_an_idle_crawler_picks_one_up(results: dict[str, Future[dict[str, Any]]]) -> None:
    assert {row["pages"] for row in rows(results["start_tasks"]).values()} == {40}
    picked_up = rows(results["start_tasks"], table=1)["trawl"]
    assert 0 < picked_up["picked up after, s (median)"] <= picked_up["longest, s"] < 60


def test_a_pause_and_a_paused_sites_backlog_are_measured(results: dict[str, Future[dict[str, Any]]]) -> None:
    (row,) = rows(results["holds"]).values()
    assert 0 <= row["longest, s"] < 3
    (row,) = rows(results["holds"], table=1).values()
    assert all(0 < row[name] < 60 for name in ("another site's first page, s", "all parked, s", "all back, s"))


def test_every_request_and_fingerprint_takes_memory(results: dict[str, Future[dict[str, Any]]]) -> None:
    row = rows(results["memory"])["trawl"]
    assert row["queued"] == row["fingerprints"] == 5000
    assert 50 < row["B per queued request"] < 2000
    assert 4 < row["B per fingerprint"] < 500


def test_nothing_is_missing_after_redis_forgot_its_last_second(results: dict[str, Future[dict[str, Any]]]) -> None:
    (row,) = rows(results["kill_table"]).values()
    assert (row["pages missing"], row["items missing"]) == (0, 0)


def test_a_variant_changes_only_the_middlewares_that_it_names() -> None:
    fleet = {"DOWNLOADER_MIDDLEWARES": {"allowed": 50, "offsite": None}, "CONCURRENT_ITEMS": 4}
    changed = laid_over(fleet, {"DOWNLOADER_MIDDLEWARES": {"offsite": 50, "lean": 850}, "CONCURRENT_ITEMS": 100})
    assert changed == {"DOWNLOADER_MIDDLEWARES": {"allowed": 50, "offsite": 50, "lean": 850}, "CONCURRENT_ITEMS": 100}
    assert fleet["CONCURRENT_ITEMS"] == 4


def test_every_dupefilter_is_filled_and_checked(results: dict[str, Future[dict[str, Any]]]) -> None:
    table = rows(results["dupefilters"])
    assert len(table) == 9
    assert {name: row["entries"] for name, row in table.items() if name.startswith(("exact", "plain"))} == dict.fromkeys(
        ("plain set", "exact of 64 bits", "exact", "exact of 80 bits"), 10_000
    )
    assert 7500 <= table["rolling"]["entries"] <= 10_000
    assert table["exact"]["B per entry"] < table["plain set"]["B per entry"]
    assert all(row["us, new"] > 0 < row["us, seen"] for row in table.values())


def test_rows_are_stored_and_drained(results: dict[str, Future[dict[str, Any]]]) -> None:
    table = rows(results["writer_rows"])
    assert table.keys() == {"fresh", "unchanged", "edited", "whole drain, fresh"}
    assert all(row["Trawl, rows/s"] > 0 for row in table.values())
