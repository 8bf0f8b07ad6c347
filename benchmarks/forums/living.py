"""A fleet follows a living forum: is everything there, how soon, and for how many requests?

    python -m benchmarks.forums.living [--seconds 600] [--pace 60] [--runs undisturbed killed] [--rescan 60]

A forum of our own (`demo/forum`) that lives PACE times faster than the wall: eight boards whose activity follows a power law that
moves on each day, with nights, bursts and sticky threads; of its events some edit, delete (with and without a trace, single
comments and whole threads) or move something. The fleet (worker, beat, one list and two detail crawlers, Redis with AOF, SQLite)
first reads all of it while it stands still; then the forum lives, and its requests are counted. The site file is the demo's, its
schedule as accelerated as the forum: the default budget of 1,200 requests an hour is 72,000 at a pace of 60. What the first crawl
took is taken out of the ledger of requests, which counts by the hour of the wall. Afterwards the forum stands still, every thread
is checked once more, and the database is compared with what the forum knows: each post and comment, each edit (the present
version as the row, each version that was stored once as a revision), each deletion. A run "killed" gets SIGKILLs meanwhile, of
crawlers, their supervisors, workers and whole nodes.

"Delay" is from the moment of an event in the forum until it is in the database, which is looked at every half second. A uniform
rescan reads every page (list pages; of each thread the post and all pages of comments) once in a period. To have the same mean
delay from "published" to "stored", its period is twice that delay. What it asks for is computed from the pages that the forum
had in the course of the run, in the rescan's favour: without any time for fetching and storing. With --rescan it is also run for
real.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict
from pathlib import Path
from statistics import mean, median, quantiles

import pytest

from benchmarks.support.following import MIX, Plan, Run, run
from benchmarks.support.full_rescan import Rescan, pages_of, requests_per_s
from benchmarks.support.report import Report, options
from benchmarks.support.sightings import delays
from demo.compare import Coverage

SHARE = 0.35  # of the rescan's requests


def rescan(plan: Plan, period_s: float, seconds: float) -> tuple[int, float]:
    """Run a uniform rescan of a similar forum; return its requests, and their number as computed."""
    with plan.forum() as forum:
        forum.control(rate=plan.rate, latency_ms=20, **MIX)
        pages = [pages_of(forum.stats())]
        crawler = Rescan(forum.url, pages[0], period_s)
        asyncio.run(crawler.run(seconds))
        pages.append(pages_of(forum.stats()))
        found = delays(forum.truth(), crawler.seen)
        return crawler.requests, requests_per_s(pages, mean(found.published)) * seconds


def main() -> int:
    """Run the benchmark and print the report; exit code 1 if an aim was missed."""
    parser = options(__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="how long the forum lives (default: %(default)s)")
    parser.add_argument("--pace", type=float, default=60.0, help="seconds of forum time in a second (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=5.0, help="events per second (default: %(default)s)")
    parser.add_argument("--boards", type=int, default=8, help="boards (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=100, help="threads in each at the start (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the forum and of the deaths (default: %(default)s)")
    kinds = ("undisturbed", "killed")
    parser.add_argument("--runs", nargs="+", choices=kinds, default=list(kinds), help="which (default: both)")
    parser.add_argument("--rescan", type=float, default=60.0, metavar="S", help="run a rescan for so long; 0: not (default: 60)")
    budget = Plan.__dataclass_fields__["budget"].default
    parser.add_argument("--budget", type=float, default=budget, help="requests per hour of forum time (default: %(default)g)")
    checks = Plan.__dataclass_fields__["checks"].default
    parser.add_argument("--checks", type=float, default=checks, help="checks for each other request (default: %(default)g)")
    parser.add_argument("--signals", action="store_true", help="the site file has the page of the newest messages")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="copy the last run's database, logs and truth there")
    chosen = parser.parse_args()
    plan = Plan(**{name: getattr(chosen, name) for name in Plan.__dataclass_fields__})
    report = Report(title="A living forum", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    runs: list[Run] = []
    for kind in chosen.runs:
        try:
            runs.append(run(plan, killed=kind == "killed", log=_log))
        except (AssertionError, pytest.fail.Exception) as error:
            report.target(f"the run {kind} comes to its end: {str(error)[:200]}", False)
            print(error, file=sys.stderr, flush=True)
    if runs:
        add_tables(report, plan, runs)
        if chosen.rescan:
            _tell_rescan(report, plan, runs[0], chosen.rescan)
    report.finish(chosen)
    return int(not all(reached for _, reached in report.targets))


def add_tables(report: Report, plan: Plan, runs: list[Run]) -> None:
    """Add the tables and the aims."""
    report.table(
        ["run", "table", "in the forum", "stored as shown", "edited", "deleted", "wrong", "missing", "not noticed", "buried"],
        [_coverage_line(one, table) for one in runs for table in one.coverage],
    )
    report.table(
        ["run", "event", "number", "delay, s: mean", "median", "95 %", "mean in forum time, min"],
        [line for one in runs for line in _delay_lines(one, plan.pace)],
    )
    report.table(
        [
            "run",
            "seconds",
            "events",
            "requests",
            "per event",
            "rescan's",
            "share",
            "share, all events",
            "rescan's delay for as many, s",
        ],
        [
            [
                _name(one),
                round(one.seconds),
                one.events,
                one.requests,
                one.requests / one.events,
                round(one.rescan_requests),
                f"{one.share:.1%}",
                f"{one.share_of_all:.1%}",
                mean(one.pages) * one.seconds / one.requests / 2,
            ]
            for one in runs
        ],
    )
    for one in runs:
        name = _name(one)
        report.target(f"{name}: every post and comment, edit and deletion: {_verdict(one)}", one.complete)
        report.target(f"{name}: at most {SHARE:.0%} of the rescan's requests: {one.share:.1%}", one.share <= SHARE)
        all_events = one.share_of_all
        report.target(f"{name}: the same, edits and deletions counted as well: {all_events:.1%}", all_events <= SHARE)
        report.caveats.append(
            f"{name}: {one.first_requests} requests before the forum lived, {one.settling_requests} afterwards for the last "
            f"check of everything, which alone noticed {one.noticed_late} edits and deletions; {one.given_up} requests or items "
            f"given up; deaths: {one.dealt or 'none'}."
        )
        report.caveats.append(f"{name}: requests by kind of page: {one.by_kind}; by what for: {one.by_purpose}.")
        report.figures.setdefault("runs", []).append(asdict(one))


def _tell_rescan(report: Report, plan: Plan, one: Run, seconds: float) -> None:
    period_s = 2 * one.delay_s
    asked, computed = rescan(plan, period_s, seconds)
    report.caveats.append(
        f"A rescan for real, over {seconds:g} s with a period of {period_s:.1f} s: {asked} requests; computed from the mean "
        f"delay that it had: {computed:.0f}."
    )


def _coverage_line(one: Run, table: Coverage) -> list[object]:
    cells = [len(table.wrong) + len(table.spoilt), len(table.missing), len(table.undeleted), len(table.buried)]
    share = "100 %" if table.share >= 1 else f"{min(99.99, table.share * 100):.2f} %"
    return [_name(one), table.table, table.expected, share, table.edited, table.deleted, *cells]


def _delay_lines(one: Run, pace: float) -> list[list[object]]:
    lines: list[list[object]] = []
    kinds = {"published": one.delays.published, "edited": one.delays.edited, "deleted": one.delays.deleted, "all": one.delays.all}
    for kind, found in kinds.items():
        if len(found) > 1:
            figures = [mean(found), median(found), quantiles(found, n=20)[-1], mean(found) * pace / 60]
            lines.append([_name(one), kind, len(found), *figures])
    return lines


def _verdict(one: Run) -> str:
    faults = sum(len(table.faults) for table in one.coverage)
    return "all" if one.complete else f"{faults} faults, {one.forgotten} versions forgotten"


def _name(one: Run) -> str:
    return "killed" if one.killed else "undisturbed"


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
