"""Recovery of a service whose spider does not use Trawl from deaths: seconds until it is whole, pages and items lost.

    python -m benchmarks.fleet.service_deaths [--repetitions 2] [--crawlers 2] [--away 60] [--only NAME ...]

For each run a new fleet as in `benchmarks.fleet.deaths`: two nodes (`celery worker`) and two beats on one machine, a Redis with
AOF, a site that counts, crawlers that ask for 4 pages of 0.2 s at a time, at work for 10 s. The spider imports nothing but
Scrapy (`scrapy.Spider` with `start_urls`), or scrapy-redis's names alone (`RedisSpider`, fed by a list); its project sets the
scheduler, the dupefilter, the stats and the pipeline of `redis_components`. It yields one item for each page, into a list
without a consumer. "Whole" is when every slot has a crawler that has asked for a page since the death (for Redis: since its
return). At the end the crawl runs out: a page that was linked and never fetched is lost, and so is an item that is not in the
list.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from benchmarks.fleet.deaths import tell_aims
from benchmarks.support.report import Report, options
from tests.support.deaths import Toll, measure_death
from tests.support.mortal_service import Kind, MortalService
from tests.support.processes import none_left
from tests.support.redis_server import RedisServer
from tests.support.watched_fleet import MARK
from tests.support.ways_to_die import CRAWLER_S, WORKER_S, Death
from workers.supervision.slot_history import RestartPolicy

DEATHS = (Death.CRAWLER_KILLED, Death.POOL_CHILD_KILLED, Death.WORKER_KILLED, Death.NODE_KILLED, Death.BROKER_AWAY)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One death of one service, and what was left when its fleet was stopped."""

    kind: Kind
    toll: Toll
    lost_items: int
    left: tuple[str, ...]


def run(kind: Kind, death: Death, crawlers: int, away_s: float) -> Run:
    """Run a new fleet with this death, to the end. Raises AssertionError or pytest's failure if the fleet does not recover."""
    with (
        tempfile.TemporaryDirectory(prefix="trawl-deaths-") as folder,
        none_left((MARK, folder)),
        MortalService(Path(folder), kind, size=crawlers) as fleet,
    ):
        toll = measure_death(death, fleet, away_s=away_s, lived_s=RestartPolicy.quick_s)
        lost_items = fleet.lost_items()
        return Run(kind=kind, toll=toll, lost_items=lost_items, left=tuple(fleet.stop()))


def main() -> int:
    """Run the deaths and print the report; exit code 1 if an aim was missed."""
    parser = options(__doc__)
    parser.add_argument("--repetitions", type=int, default=2, help="runs of each death (default: %(default)s)")
    parser.add_argument("--crawlers", type=int, default=2, help="crawlers of the fleet (default: %(default)s)")
    parser.add_argument("--away", type=float, default=60.0, metavar="S", help="how long Redis is away (default: %(default)s)")
    known = {death.label: death for death in DEATHS}
    parser.add_argument("--only", nargs="*", choices=list(known), default=list(known), metavar="NAME", help=", ".join(known))
    chosen = parser.parse_args()
    report = Report(title="Services of any spider and their deaths", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    with RedisServer() as server:
        report.served_by(server.client())
    runs: list[Run] = []
    failures: list[str] = []
    for kind, name in [(kind, name) for _ in range(chosen.repetitions) for kind in Kind for name in chosen.only]:
        try:
            runs.append(run(kind, known[name], chosen.crawlers, chosen.away))
        except (AssertionError, pytest.fail.Exception) as error:  # the others go on
            failures.append(f"{kind.label}: {name}")
            print(f"{failures[-1]} failed: {error}", file=sys.stderr, flush=True)
        else:
            result = asdict(runs[-1].toll) | {"death": name, "left": runs[-1].left, "lost_items": runs[-1].lost_items}
            print(kind.label, result, file=sys.stderr, flush=True)
    rows = [
        line(mine)
        for kind in Kind
        for name in chosen.only
        if (mine := [one for one in runs if one.kind is kind and one.toll.death is known[name]])
    ]
    head = ["spider", "death", "runs", "whole, s (median)", "worst", "orphans", "pages lost", "items lost", "pages twice"]
    report.table(head, rows)
    text = f"every fleet came back: {len(runs)} of {len(runs) + len(failures)}"
    report.target(f"{text}{f', not after {sorted(set(failures))}' if failures else ''}", not failures)
    reached = bool(runs) and judge(report, runs) and not failures
    report.caveats.append(f"{chosen.crawlers} crawlers; Redis away for {chosen.away:g} s.")
    report.caveats.append("Each crawler of a plain spider fetches its start page, so that page is counted twice without a death.")
    report.figures["runs"] = [
        asdict(one) | {"kind": one.kind.label, "toll": asdict(one.toll) | {"death": one.toll.death.label}} for one in runs
    ]
    report.finish(chosen)
    return int(not reached)


def line(runs: Sequence[Run]) -> list[object]:
    """One line of the table."""
    tolls = [one.toll for one in runs]
    whole, twice = [toll.whole_s for toll in tolls], [toll.twice for toll in tolls]
    return [
        runs[0].kind.label,
        tolls[0].death.label,
        len(runs),
        round(statistics.median(whole), 1),
        round(max(whole), 1),
        sum(toll.orphans for toll in tolls),
        sum(toll.lost for toll in tolls),
        sum(one.lost_items for one in runs),
        f"{min(twice)}-{max(twice)}",
    ]


def judge(report: Report, runs: Sequence[Run]) -> bool:
    """Add the aims; whether all are reached."""
    pages, items = sum(one.toll.lost for one in runs), sum(one.lost_items for one in runs)
    orphans, left = sum(one.toll.orphans for one in runs), sum(len(one.left) for one in runs)
    aims = [
        (f"nothing lost in {len(runs)} crawls: {pages} pages, {items} items", not pages and not items),
        (f"no orphans: {orphans}", not orphans),
        (f"no process, no lease, no held slot after the end: {left}", not left),
    ]
    limits = {CRAWLER_S: "a crawler or its supervisor", WORKER_S: "a worker, a node or Redis"}
    return tell_aims(report, aims, [one.toll for one in runs], limits)


if __name__ == "__main__":
    sys.exit(main())
