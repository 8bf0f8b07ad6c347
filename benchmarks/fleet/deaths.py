"""Recovery of a fleet from each kind of death: seconds until noticed and until whole, orphans, pages lost and fetched twice.

    python -m benchmarks.fleet.deaths [--repetitions 3] [--crawlers 2] [--away 60] [--only NAME ...]

For each run a new fleet: two nodes (`celery worker`, each with room for all crawlers) and two beats on one machine, in sessions
of their own, a Redis with AOF, a site that counts, and crawlers on the shared frontier, 4 requests of 0.2 s at a time, at work
for 10 s. "Noticed" is when the fleet's records in Redis first show it (for Redis away: the nodes' logs), "whole" when every
slot has a crawler that has asked for a page since. "In one slot" is the most crawler processes in one slot at a time, from
/proc a hundred times a second; a process that was frozen does not count any more, and "late" are crawlers that asked for a
page after their successor had. "Orphans" are crawlers without a supervisor two seconds later. At the end the crawl runs out: a
page that was linked and never fetched is lost. Then everything gets SIGTERM, and what is left is counted: processes, leases,
slots that are held.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from benchmarks.support.report import Report, options
from tests.support.deaths import Toll, measure_death
from tests.support.mortal_fleet import MortalFleet
from tests.support.processes import none_left
from tests.support.redis_server import RedisServer
from tests.support.watched_fleet import MARK
from tests.support.ways_to_die import CRAWLER_S, WORKER_S, Death
from workers.supervision.slot_history import RestartPolicy

PROTOTYPE_S = {Death.CRAWLER_KILLED: 1.3, Death.POOL_CHILD_KILLED: 3.9, Death.NODE_KILLED: 16.0}
"""Seconds until whole in the prototype that was made before this project."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One death of one fleet, and what was left when it was stopped."""

    toll: Toll
    left: tuple[str, ...]


def run(death: Death, crawlers: int, away_s: float, lived_s: float) -> Run:
    """Run a new fleet with this death, to the end. Raises AssertionError or pytest's failure if the fleet does not recover."""
    with (
        tempfile.TemporaryDirectory(prefix="trawl-deaths-") as folder,
        none_left((MARK, folder)),
        MortalFleet(Path(folder), size=crawlers) as fleet,
    ):
        toll = measure_death(death, fleet, away_s=away_s, lived_s=lived_s)
        return Run(toll=toll, left=tuple(fleet.stop()))


def main() -> int:
    """Run the deaths and print the report; exit code 1 if an aim was missed."""
    parser = options(__doc__)
    parser.add_argument("--repetitions", type=int, default=3, help="runs of each death (default: %(default)s)")
    parser.add_argument("--crawlers", type=int, default=2, help="crawlers of the fleet (default: %(default)s)")
    parser.add_argument("--away", type=float, default=60.0, metavar="S", help="how long Redis is away (default: %(default)s)")
    text = "how long crawlers have crawled before (default: %(default)s; an earlier end makes the next start wait)"
    parser.add_argument("--lived", type=float, default=RestartPolicy.quick_s, metavar="S", help=text)
    known = {death.label: death for death in Death}
    parser.add_argument("--only", nargs="*", choices=list(known), default=list(known), metavar="NAME", help=", ".join(known))
    chosen = parser.parse_args()
    report = Report(title="A fleet and each way to die", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    with RedisServer() as server:
        report.served_by(server.client())
    runs: list[Run] = []
    failures: list[str] = []
    for name in chosen.only * chosen.repetitions:
        try:
            runs.append(run(known[name], chosen.crawlers, chosen.away, chosen.lived))
        except (AssertionError, pytest.fail.Exception) as error:  # the others go on
            failures.append(name)
            print(f"{name} failed: {error}", file=sys.stderr, flush=True)
        else:
            toll = asdict(runs[-1].toll) | {"death": name, "left": runs[-1].left}
            print(toll, file=sys.stderr, flush=True)
    report.table(
        [
            "death",
            "runs",
            "noticed, s",
            "whole, s (median)",
            "worst",
            "prototype, s",
            "in one slot",
            "late",
            "orphans",
            "lost",
            "twice",
        ],
        [line(known[name], tolls) for name in chosen.only if (tolls := [t.toll for t in runs if t.toll.death is known[name]])],
    )
    report.table(["death", "what happens"], [[name, known[name].what] for name in chosen.only])
    came_back = f"every fleet came back: {len(runs)} of {len(runs) + len(failures)}"
    report.target(f"{came_back}{f', not after {sorted(set(failures))}' if failures else ''}", not failures)
    reached = bool(runs) and judge(report, runs) and not failures
    report.caveats.append(
        f"{chosen.crawlers} crawlers; Redis away for {chosen.away:g} s. A crawler needs over a second to start."
    )
    report.caveats.append(
        "A heartbeat comes every 2 s, a slot runs out after 10 s, beat looks every 2 s: node deaths wait for that."
    )
    report.figures["runs"] = [asdict(one) | {"toll": asdict(one.toll) | {"death": one.toll.death.label}} for one in runs]
    report.finish(chosen)
    return int(not reached)


def line(death: Death, tolls: Sequence[Toll]) -> list[object]:
    """One line of the table."""
    noticed = [toll.noticed_s for toll in tolls if toll.noticed_s is not None]
    whole = [toll.whole_s for toll in tolls]
    twice = [toll.twice for toll in tolls]
    return [
        death.label,
        len(tolls),
        round(statistics.median(noticed), 1) if noticed else "",
        round(statistics.median(whole), 1),
        round(max(whole), 1),
        PROTOTYPE_S.get(death, ""),
        max(toll.most for toll in tolls),
        sum(toll.late for toll in tolls),
        sum(toll.orphans for toll in tolls),
        sum(toll.lost for toll in tolls),
        f"{min(twice)}-{max(twice)}",
    ]


def judge(report: Report, runs: Sequence[Run]) -> bool:
    """Add the aims; whether all are reached."""
    tolls = [one.toll for one in runs]
    lost, orphans = sum(toll.lost for toll in tolls), sum(toll.orphans for toll in tolls)
    most, late = max(toll.most for toll in tolls), sum(toll.late for toll in tolls)
    left = sum(len(one.left) for one in runs)
    aims = [
        (f"nothing lost in {len(runs)} crawls: {lost} pages", not lost),
        (f"never two crawlers in one slot: at most {most}, {late} late", most <= 1 and not late),
        (f"no orphans: {orphans}", not orphans),
        (f"no process, no lease, no held slot after the end: {left}", not left),
    ]
    return tell_aims(report, aims, tolls, {CRAWLER_S: "a crawler", WORKER_S: "a worker, a node, a beat or Redis"})


def tell_aims(report: Report, aims: list[tuple[str, bool]], tolls: Sequence[Toll], limits: Mapping[float, str]) -> bool:
    """Add these aims, and for each limit (s) that whose death it is for was over in time; whether all are reached."""
    for limit_s, whose in limits.items():
        meant = [toll for toll in tolls if toll.death.limit_s == limit_s]
        if meant:
            worst = max(meant, key=lambda toll: toll.whole_s)
            text = f"whole within {limit_s:g} s of the death of {whose}: worst {worst.whole_s:.1f} s, {worst.death.label}"
            aims.append((text, worst.whole_s <= limit_s))
    for text, reached in aims:
        report.target(text, reached)
    return all(reached for _, reached in aims)


if __name__ == "__main__":
    sys.exit(main())
