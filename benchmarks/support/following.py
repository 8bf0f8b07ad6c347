"""One run of `benchmarks/forums/living.py`: a fleet follows a forum that lives, and what was measured."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from demo.compare import Coverage
from demo.forum.process import ForumProcess
from forum_reader.definition.site import Schedule
from forums.state.keys import ForumFleetKeys, Ledger
from forums.storage import Database
from tests.support.chaos import Blow, Chaos, choices
from tests.support.demo_sites import RECENT_PAGE
from tests.support.fleet import ROOT
from tests.support.forum_fleet import SITE, ForumFleet
from tests.support.processes import none_left
from tests.support.watched_fleet import MARK
from workers.state.beats import Schedules, StoredEntry

from .full_rescan import pages_of, requests_per_s
from .kept_versions import forgotten, kept_versions
from .sightings import Delays, Watch, delays, noticed_after

KILLS = (Blow.CRAWLER_KILLED, Blow.POOL_CHILD_KILLED, Blow.WORKER_KILLED, Blow.NODE_KILLED)
PAUSE_S = (5.0, 25.0)  # between two deaths
MIX = {"edit_rate": 0.15, "delete_rate": 0.08, "move_rate": 0.01, "skew": 1.0}
COMMENTS = 8  # of a thread, in the mean
SAMPLE_S = 5.0
SETTLE_S = 300.0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Parameters of a run; `rate` in events per second."""

    seconds: float
    pace: float
    rate: float
    boards: int
    threads: int
    seed: int
    budget: float = Schedule().scan_budget_per_hour  # of the site, per hour of the forum
    checks: float = Schedule().checks_per_request
    signals: bool = False  # the site file has the page of the newest messages
    keep: Path | None = None  # a folder for what is left: database, logs, the forum's truth

    def forum(self) -> ForumProcess:
        """Return a frozen forum, to be started. Its past rate, over all boards, is that of the run."""
        written = self.boards * self.threads * (COMMENTS + 1)
        days = written / self.rate * self.pace / 86_400
        sizes = {"forums": self.boards, "threads": self.threads, "comments": COMMENTS}
        return ForumProcess(seed=self.seed, pace=self.pace, history_days=days, **sizes)


@dataclass(frozen=True, kw_only=True)
class Run:
    """Result of a run."""

    killed: bool
    coverage: tuple[Coverage, Coverage]
    delays: Delays
    events: int
    first_requests: int  # until the forum began to live
    requests: int  # while it lived
    settling_requests: int
    seconds: float
    by_kind: dict[str, int]  # the requests, by kind of page
    by_purpose: dict[str, int]  # those of the readings that were stored by then, by what for
    pages: list[int]  # that a rescan would read, in the course of the time
    noticed_late: int  # edits and deletions that the last check of everything noticed
    forgotten: int  # versions that were stored once and are not in the database any more
    given_up: int
    dealt: dict[str, int]

    @property
    def delay_s(self) -> float:
        """The mean from published to stored."""
        return mean(self.delays.published)

    @property
    def rescan_requests(self) -> float:
        """Requests of a uniform rescan with the same mean delay in the same time."""
        return requests_per_s(self.pages, self.delay_s) * self.seconds

    @property
    def share(self) -> float:
        """Of the rescan's requests."""
        return self.requests / self.rescan_requests

    @property
    def share_of_all(self) -> float:
        """The same for the mean delay of everything that happened. Too low: what only the last check noticed would have waited
        longer.
        """
        return self.requests / (requests_per_s(self.pages, mean(self.delays.all)) * self.seconds)

    @property
    def complete(self) -> bool:
        return all(one.complete for one in self.coverage) and not self.forgotten


def boards(number: int) -> list[str]:
    """Return the ids of so many boards."""
    return [f"f{one}" for one in range(1, number + 1)]


def site_file(folder: Path, plan: Plan) -> Path:
    """Write the demo's site file with the plan's boards, the default schedule and budget, accelerated; with its newest messages
    if wanted. Return the folder of site files.
    """
    pace = plan.pace
    text = (ROOT / "demo" / "sites" / "demo.toml").read_text("utf-8")
    text = re.sub(r"(?m)^\[schedule\][^\[]*", "", text)
    text = re.sub(r"(?m)^forums = .*$", f"forums = {json.dumps(boards(plan.boards))}", text)
    usual = Schedule()
    text += f"""
[schedule]
scan_budget_per_hour = {plan.budget * pace}
min_interval_s = {usual.min_interval_s / pace}
max_interval_s = {usual.max_interval_s / pace}
recheck_days = {usual.recheck_days / pace}
checks_per_request = {plan.checks}
"""
    text += RECENT_PAGE if plan.signals else ""
    sites = folder / "sites"
    sites.mkdir()
    (sites / "demo.toml").write_text(text, "utf-8")
    return sites


@contextmanager
def crawled_forum(plan: Plan) -> Iterator[tuple[ForumProcess, ForumFleet]]:
    """Yield a frozen forum and a fleet that has read all of it."""
    with (
        tempfile.TemporaryDirectory(prefix="trawl-living-") as name,
        none_left((MARK, name)),
        plan.forum() as forum,
    ):
        folder = Path(name)
        sites = site_file(folder, plan)
        sizes = "forum_list=1,forum_detail=2"
        with ForumFleet(folder, forum, sizes=sizes, nodes="ab", beats=1, boards=plan.boards, sites=sites) as fleet:
            for task in ("seed_forums", "recheck_threads"):
                Schedules(fleet.client).set(task, StoredEntry(every_s=1.0))
            forum.control(latency_ms=20, error_rate=0.01)
            fleet.wait_whole_again()
            fleet.wait_crawled(SETTLE_S)
            yield forum, fleet


def run(plan: Plan, *, killed: bool, log: Callable[[str], None]) -> Run:
    """One run. Raises pytest's failure where the fleet does not come to its end."""
    with crawled_forum(plan) as (forum, fleet):
        fleet.client.delete(ForumFleetKeys().spent(SITE))  # it counts by the wall's hour: else the first crawl's, too
        before = forum.stats()
        first = before["total"]
        log(f"read once: {first} requests; the forum lives for {plan.seconds:g} s")
        begun = time.monotonic()
        with Watch(fleet.database_url, SITE) as watch:
            forum.control(rate=plan.rate, **MIX)
            chaos = Chaos(fleet, choices(plan.seed, KILLS, PAUSE_S), log) if killed else None
            pages = _live(forum, plan.seconds, chaos)
            forum.control(rate=0)
            lived, still_since, stats = time.monotonic() - begun, time.time(), forum.stats()
            spent = Ledger(fleet.client).spent([SITE])[SITE]
            if chaos:
                fleet.wait_whole_again()
            Schedules(fleet.client).set("recheck_threads", StoredEntry(every_s=3600.0))  # the last check is of everything
            log(f"{stats['revision']} events, {stats['total'] - first} requests in {lived:.0f} s; it stands still")
            coverage = fleet.settle(SETTLE_S)
        happened = forum.truth()
        found = Run(
            killed=killed,
            coverage=coverage,
            delays=delays(happened, watch.seen),
            events=stats["revision"],
            first_requests=first,
            requests=stats["total"] - first,
            by_kind=_by_kind(before, stats),
            by_purpose={purpose: round(amount) for purpose, amount in asdict(spent).items()},
            settling_requests=forum.stats()["total"] - stats["total"],
            seconds=lived,
            pages=pages,
            noticed_late=noticed_after(happened, watch.seen, still_since),
            forgotten=_forgotten(fleet, plan, watch),
            given_up=fleet.given_up(),
            dealt=dict(chaos.dealt) if chaos else {},
        )
        if plan.keep:
            shutil.copytree(fleet.folder, plan.keep, dirs_exist_ok=True)
            (plan.keep / "truth.json").write_text(json.dumps(happened), "utf-8")
        left = fleet.stop()
        assert not left, left
        return found


def _by_kind(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, int]:
    kinds = {kind: sum(statuses.values()) for kind, statuses in after["served"].items()}
    return {kind: number - sum(before["served"].get(kind, {}).values()) for kind, number in kinds.items()}


def _forgotten(fleet: ForumFleet, plan: Plan, watch: Watch) -> int:
    with Database.from_url(fleet.database_url) as database:
        return len(forgotten(watch.seen, kept_versions(database, SITE, boards(plan.boards))))


def _live(forum: ForumProcess, seconds: float, chaos: Chaos | None) -> list[int]:
    """Let time pass, with deaths or without; returns how many pages there were, every few seconds."""
    until = time.monotonic() + seconds
    pages = [pages_of(forum.stats())]
    while (left := until - time.monotonic()) > 0:
        if chaos:
            chaos.rage(min(SAMPLE_S * 4, left))
        else:
            time.sleep(min(SAMPLE_S, left))
        pages.append(pages_of(forum.stats()))
    return pages
