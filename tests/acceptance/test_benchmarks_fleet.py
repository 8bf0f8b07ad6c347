"""The benchmarks of the fleet work and their figures make sense, in their shortest form."""

from __future__ import annotations

from pathlib import Path

from tests.support.benchmark import lines_of, run_benchmark


def test_a_fleet_comes_through_a_death(tmp_path: Path) -> None:
    (row,) = lines_of(run_benchmark("deaths", ["--repetitions=1", "--lived=0", "--only", "SIGKILL crawler"], tmp_path)).values()
    assert (row["in one slot"], row["late"], row["orphans"], row["lost"]) == (1, 0, 0, 0)
    assert 0 < row["whole, s (median)"] == row["worst"] < 30


def test_supervision_costs_what_the_heartbeats_cost(tmp_path: Path) -> None:
    short = ["--seconds=2", "--settle=1", "--crawlers", "1", "--simulated", "2", "--rounds-of", "1", "3"]
    figures = run_benchmark("supervision", short, tmp_path)
    sizes, cpu, sent, slots = (lines_of(figures, table) for table in range(4))
    assert sizes["1"]["frontier, sent"] > 0 == sizes["2 simulated"]["frontier, sent"]
    assert cpu["1"]["of a crawler"] > 0
    assert sent["slot_renew"]["1 crawlers"] > 0 == sent["slot_renew"]["no crawler"]
    assert slots["3"]["its commands"] > slots["1"]["its commands"]


def test_a_service_of_any_spider_comes_through_a_death(tmp_path: Path) -> None:
    figures = run_benchmark("service_deaths", ["--repetitions=1", "--only", "SIGKILL crawler"], tmp_path)
    rows = figures["tables"][0]
    assert [row["spider"] for row in rows] == ["scrapy.Spider", "scrapy-redis"]
    assert {(row["pages lost"], row["items lost"], row["orphans"]) for row in rows} == {(0, 0, 0)}
