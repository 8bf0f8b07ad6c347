"""`trawl nodes capacity`: its constants are those of benchmarks/results, and its plan grows with the demand."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from workers.fleet import capacity_plan as plans
from workers.fleet.capacity_plan import Demand, plan

RESULTS = Path(__file__).parents[4] / "benchmarks/results"
USUAL = Demand(pages_per_s=100)


def _row(file: str, first: str) -> list[float]:
    """The figures of the first row with that heading."""
    for line in (RESULTS / file).read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == first:
            return [float(cell.replace(",", "")) for cell in cells[1:] if re.fullmatch(r"-?[\d,.]+", cell)]
    raise AssertionError(f"{file} has no row {first!r}: name the constants' new source")


def test_the_constants_are_the_measured_ones_within_a_third() -> None:
    crawl = _row("crawl_speed.md", "trawl 0 ms")
    supervision = _row("supervision.md", "10")
    memory = _row("memory.md", "trawl")
    for constant, measured in (
        (plans.PAGES_PER_CORE_S, crawl[1]),
        (plans.REDIS_COMMANDS_PER_PAGE, crawl[-2]),
        (plans.REDIS_CPU_PER_PAGE_S, crawl[-1] * 1e-6),
        (plans.REDIS_COMMANDS_PER_CRAWLER_S, supervision[2] / 60),
        (plans.REDIS_COMMANDS_OF_FLEET_S, _row("supervision.md", "none (whole fleet)")[2] / 60),
        (plans.BYTES_PER_QUEUED, memory[2]),
        (plans.BYTES_PER_SEEN, memory[3]),
        (plans.ROWS_PER_S, _row("writer_rows.md", "new rows, SQLite")[1]),
        (plans.READ_PAGE_S["json"], _row("reading.md", "discourse, list")[1] / 1000),
        (plans.READ_PAGE_S["browser"], _row("sizes.md", "Chromium, headless")[0] / 1000),
        (plans.BROWSER_MIB, _row("sizes.md", "Chromium, headless")[1]),
        (plans.BYTES_PER_THREAD, _row("sizes.md", "threads in Redis")[1]),
        (plans.BYTES_PER_ROW, _row("sizes.md", "rows in SQLite")[1]),
        (plans.READ_PAGE_S["html"], _row("reading.md", "xenforo, comments")[1] / 1000),
    ):
        assert constant == pytest.approx(measured, rel=0.33)


@pytest.mark.processes  # of the libraries that the settings look for
def test_a_crawler_has_as_many_requests_at_a_time_as_the_plan_counts() -> None:
    from workers.settings import CONCURRENT_REQUESTS  # importing it starts the private Redis

    assert CONCURRENT_REQUESTS == plans.CONCURRENCY


@pytest.mark.parametrize("change", ["pages_per_s", "queued", "seen", "threads", "rows_per_page", "latency_s", "stored"])
def test_a_larger_demand_never_needs_less(change: str) -> None:
    more = plan(replace(USUAL, **{change: 10 * getattr(USUAL, change) + 1_000_000}))
    less = plan(USUAL)
    assert all(getattr(more, name) >= getattr(less, name) for name in vars(less))
    assert vars(more) != vars(less)


def test_a_slow_site_needs_more_crawlers_and_html_more_cores() -> None:
    assert plan(replace(USUAL, latency_s=10)).crawlers > plan(USUAL).crawlers
    assert plan(replace(USUAL, kind="browser")).cores > plan(USUAL).cores > plan(replace(USUAL, kind="json")).cores
    assert plan(Demand(pages_per_s=0.001)).crawlers == 1


def test_what_one_redis_or_one_writer_cannot_do_is_said() -> None:
    assert plan(USUAL).warnings == ()
    assert len(plan(Demand(pages_per_s=50_000, rows_per_page=100)).warnings) == 2
