"""Verdict on a member of a run, from the stats of its crawl and from its own last runs, and forecast of a run's end. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from redis_components.server.printable import worded
from workers.state.group_runs import (
    ELSEWHERE,
    ERROR,
    FIELDS,
    LOST,
    MOST_FIELDS,
    PAGES,
    RAISED,
    URL,
    WALL,
    WALLS,
    Bounds,
    GroupRun,
    Member,
    RunState,
    Verdict,
)
from workers.state.jobs import FINISHED, Job, JobFigures, JobState

_REFUSED = frozenset({"401", "402", "403", "429", "451"})
_MOVED = frozenset({"301", "302", "303", "307", "308", "404", "410"})
_NO_NAME = ("CannotResolveHostError", "DNSLookupError", "gaierror")
_NOT_SENT = ("IgnoreRequest", "NotNow", "UnsupportedURLSchemeError")
"""Exceptions of requests that were not sent to the site."""
_EXCEPTIONS = "downloader/exception_type_count/"
_STATUSES = "downloader/response_status_count/"
HALF = 0.5
"""Part of the lowest of the last runs below which items, and the coverage of a field, are fewer than they were."""
LEAST_COVERAGE = 0.2
"""A field that fewer of the items had before is not missed."""
SLOWER = 3.0
"""Times the slowest of the last runs, by seconds a page."""
SLOW_S = 60.0
"""Of a member, not counted for its pace: with few pages it is the start's, and on a busy machine the wait for a place."""


NO_BOUNDS = Bounds()


class Finding(NamedTuple):
    """A verdict with its reason, and the page that shows it."""

    verdict: Verdict
    reason: str = ""
    url: str = ""


@dataclass(frozen=True, kw_only=True)
class CrawlEvidence:
    """The end of a member's job and its stats over all crawlers."""

    state: JobState
    reason: str = ""
    figures: JobFigures = field(default_factory=JobFigures)
    seconds: float = 0.0
    stats: Mapping[str, str] = field(default_factory=dict)

    def number(self, name: str) -> int:
        """Return a stat that is a count; 0 where there is none."""
        text = self.stats.get(name, "0")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else 0

    def below(self, prefix: str) -> dict[str, int]:
        """Return the counts whose names begin with the prefix, by the rest of the name."""
        return {name.removeprefix(prefix): self.number(name) for name in self.stats if name.startswith(prefix)}

    @property
    def pages(self) -> int:
        """Responses that its callbacks were given."""
        return sum(self.below(PAGES).values())

    @property
    def coverage(self) -> dict[str, float]:
        """Share of the items that have each field."""
        items = self.figures.items
        found = sorted(self.below(FIELDS).items(), key=lambda one: -one[1])[:MOST_FIELDS]
        return {name: round(min(1.0, number / items), 3) for name, number in found} if items else {}

    def url(self, *faults: str) -> str:
        """Return the stored page of the first of these faults that has one."""
        return next((url for fault in faults if (url := self.stats.get(f"{URL}{fault}", ""))), "")


def find(crawl: CrawlEvidence, before: Sequence[Member] = (), bounds: Bounds = NO_BOUNDS) -> Finding:
    """Return the verdict on a crawl that is over. `before`: the member in its last runs, the newest first."""
    if crawl.state is JobState.FAILED:
        return Finding(Verdict.CRASHED, _last_line(crawl), crawl.url("raised", "page"))
    if crawl.reason.startswith("closespider_"):
        return Finding(Verdict.OWN_LIMIT, crawl.reason)
    return (
        _without_pages(crawl)
        or _by_pages(crawl)
        or _by_items(crawl, bounds)
        or _by_bounds(crawl, bounds)
        or _by_past(crawl, before, bounds)
        or Finding(Verdict.FINE)
    )


def _without_pages(crawl: CrawlEvidence) -> Finding | None:
    if crawl.pages or crawl.figures.items:
        return None
    failed = {name.rpartition(".")[2]: number for name, number in crawl.below(_EXCEPTIONS).items()}
    lost = {name: number for name, number in failed.items() if name not in _NOT_SENT}
    if crawl.number("robotstxt/forbidden") and not lost:
        return Finding(
            Verdict.ROBOTS, f"robots.txt forbids {crawl.number('robotstxt/forbidden')} pages, and no other was asked for"
        )
    if lost and all(name in _NO_NAME for name in lost):
        return Finding(Verdict.UNRESOLVED, "there is no such host")
    if lost:
        return Finding(
            Verdict.UNREACHABLE,
            f"the site does not answer ({', '.join(sorted(worded(name.removeprefix('Download')) for name in lost))})",
        )
    redirected = sum(crawl.number(f"{_STATUSES}{status}") for status in _MOVED if status.startswith("3"))
    if redirected and crawl.number("offsite/filtered"):
        return Finding(Verdict.MOVED, f"{redirected} pages led to another host, which the spider leaves out")
    if crawl.number("log_count/ERROR") or crawl.number("log_count/CRITICAL"):
        return Finding(Verdict.CRASHED, _last_line(crawl))
    if crawl.figures.dead:
        return Finding(Verdict.UNREACHABLE, f"{crawl.figures.dead} requests were given up: trawl dead shows the reasons")
    return Finding(Verdict.NOTHING_DUE, "it asked for no page")


def _by_pages(crawl: CrawlEvidence) -> Finding | None:
    by_status, pages = crawl.below(PAGES), crawl.pages
    walls = crawl.number(WALLS)
    if 2 * walls > pages:
        return Finding(Verdict.WALL, crawl.stats.get(WALL, ""), crawl.url("wall"))
    refused, moved = (sum(n for status, n in by_status.items() if status in some) for some in (_REFUSED, _MOVED))
    broken = sum(n for status, n in by_status.items() if status >= "500")
    sound = sum(n for status, n in by_status.items() if status < "300")
    for number, verdict, what in (
        (refused, Verdict.REFUSED, "refused"),
        (moved, Verdict.MOVED, "not there"),
        (broken, Verdict.UNREACHABLE, "errors of the server"),
    ):
        if number and (2 * number > pages or not (sound or crawl.figures.items)):
            some = [status for status in sorted(by_status, key=lambda one: -by_status[one]) if status >= "300"]
            counts = ", ".join(f"{by_status[one]} x {one}" for one in some[:4])
            return Finding(verdict, f"{number} of {pages} pages {what} (HTTP {counts})", crawl.url(*some))
    elsewhere = crawl.number(ELSEWHERE)
    if not crawl.figures.items and 2 * elsewhere > pages:
        return Finding(Verdict.MOVED, f"{elsewhere} of {pages} pages led to another host", crawl.url("elsewhere"))
    unchanged = by_status.get("304", 0)
    if unchanged and not crawl.figures.items and unchanged >= sound:
        return Finding(Verdict.NOTHING_DUE, f"{unchanged} pages are unchanged")
    return None


def _by_items(crawl: CrawlEvidence, bounds: Bounds) -> Finding | None:
    raised, url = crawl.number(RAISED), crawl.url("raised")
    if raised and (not crawl.figures.items or 2 * raised > crawl.pages):
        return Finding(Verdict.CRASHED, f"{raised} of {crawl.pages} pages raised: {_last_line(crawl)}", url)
    if (lost := crawl.number(LOST)) > crawl.figures.items:
        whole = lost + crawl.figures.items
        return Finding(Verdict.CRASHED, f"a pipeline raised for {lost} of {whole} items: {_last_line(crawl)}", url)
    if not crawl.figures.items and bounds.items != 0:
        if (forbidden := crawl.number("robotstxt/forbidden")) >= crawl.pages:
            return Finding(Verdict.ROBOTS, f"robots.txt forbids {forbidden} pages, and the {crawl.pages} others have no item")
        return Finding(Verdict.NO_ITEMS, f"{crawl.pages} pages and no item", crawl.url("page"))
    return None


def _by_bounds(crawl: CrawlEvidence, bounds: Bounds) -> Finding | None:
    coverage, page = crawl.coverage, crawl.url("page")
    gone = [
        f"{name}: {coverage.get(name, 0.0):.0%} of the items, the bound is {least:.0%}"
        for name, least in sorted(bounds.fields.items())
        if crawl.figures.items and coverage.get(name, 0.0) < least
    ]
    if gone:
        return Finding(Verdict.FIELD_GONE, "; ".join(gone[:10]), page)
    if bounds.items is not None and crawl.figures.items < bounds.items:
        return Finding(Verdict.FEWER_ITEMS, f"{crawl.figures.items} items, the bound is {bounds.items}", page)
    if bounds.seconds is not None and crawl.seconds > bounds.seconds:
        return Finding(Verdict.SLOWER, f"it took {crawl.seconds:.0f} s, the bound is {bounds.seconds:.0f} s")
    return None


def _by_past(crawl: CrawlEvidence, before: Sequence[Member], bounds: Bounds) -> Finding | None:
    past = [one for one in before if one.items and one.verdict in _COMPARABLE]
    if not past:
        return None
    coverage, page = crawl.coverage, crawl.url("page")
    gone = []
    for name in (past[0].fields.keys() | coverage.keys()) - bounds.fields.keys():
        lowest = min(one.fields.get(name, 0.0) for one in past)
        if crawl.figures.items and lowest >= LEAST_COVERAGE and coverage.get(name, 0.0) < HALF * lowest:
            gone.append(f"{name}: {coverage.get(name, 0.0):.0%} of the items, {lowest:.0%} before")
    if gone:
        return Finding(Verdict.FIELD_GONE, "; ".join(sorted(gone)[:10]), page)
    fewest = min(one.items for one in past)
    if bounds.items is None and crawl.figures.items < HALF * fewest:
        return Finding(Verdict.FEWER_ITEMS, f"{crawl.figures.items} items, at least {fewest} before", page)
    slowest = max(one.seconds / max(1, one.pages) for one in past)
    pace = (crawl.seconds - SLOW_S) / max(1, crawl.pages)
    if bounds.seconds is None and pace > SLOWER * slowest > 0:
        return Finding(Verdict.SLOWER, f"{pace:.1f} s a page after its first minute, at most {slowest:.1f} s before")
    return None


_COMPARABLE = (Verdict.FINE, Verdict.SLOWER, Verdict.OWN_LIMIT)
"""Outcomes with which later runs are compared: fewer items are not the measure of the next run."""


def _last_line(crawl: CrawlEvidence) -> str:
    lines = crawl.stats.get(ERROR, "").strip().splitlines()
    return lines[-1][:500] if lines else ("see its log" if crawl.reason in ("", FINISHED) else crawl.reason)


def as_member(spider: str, crawl: CrawlEvidence, found: Finding, *, started_at: float, ended_at: float, silenced: str) -> Member:
    """Return the outcome as it is kept."""
    return Member(
        spider=spider,
        verdict=found.verdict,
        reason=found.reason,
        url=found.url,
        traceback=crawl.stats.get(ERROR, ""),
        pages=crawl.pages,
        items=crawl.figures.items,
        errors=crawl.figures.errors,
        seconds=round(crawl.seconds, 1),
        fields=crawl.coverage,
        started_at=started_at,
        ended_at=ended_at,
        silenced=silenced,
    )


STEP_S = 60
"""Forecasts are rounded up to it, so that a run's record is not written at each step."""


class Forecast(NamedTuple):
    """The end of a run that will be late: its time (epoch s), and the member that alone needs so long; "": it is their number."""

    at: float
    member: str = ""


def forecast(
    run: GroupRun, crawling: Mapping[str, float], jobs: Mapping[str, Job], last: GroupRun | None, now: float
) -> Forecast | None:
    """Return the end of a run that will miss its deadline; None for another one, and while nothing is known of its pace.

    `crawling`: the members that crawl, with their starts; `jobs`: theirs; `last`: the run of the group before.
    """
    if run.deadline_at is None or run.state is not RunState.RUNNING:
        return None
    over = sum(run.counts.values())
    usual = run.seconds / over if over else _mean(last)
    rest = {spider: _rest(jobs.get(spider), max(0.0, now - at), usual) for spider, at in crawling.items()}
    known = [now - crawling[spider] + one for spider, one in rest.items()]
    if over:
        usual = (run.seconds + sum(known)) / (over + len(known))  # those that are over first are the short ones
    elif usual is None and known:
        usual = sum(known) / len(known)
    if usual is None:
        return None
    width = min([run.at_once, *([max(1, run.most_crawlers // run.crawlers)] if run.most_crawlers else [])])
    waiting = max(0, run.members - over - len(crawling))
    by_number = now + (sum(rest.values()) + waiting * usual) / max(1, min(width, waiting + len(rest)))
    longest = max(rest, key=lambda spider: rest[spider], default="")
    alone = now + rest.get(longest, 0.0)
    end = max(by_number, alone)
    if end <= run.deadline_at:
        return None
    is_alone = alone >= by_number and longest in jobs and jobs[longest].figures.left
    return Forecast(math.ceil(end / STEP_S) * STEP_S, longest if is_alone else "")


def last_finished(run: GroupRun, runs: Iterable[GroupRun]) -> GroupRun | None:
    """Return the last run of the group that came to its end. `runs`: the newest first."""
    return next((one for one in runs if one.group == run.group and one.state is RunState.FINISHED and one.seconds), None)


def _mean(last: GroupRun | None) -> float | None:
    over = sum(n for verdict, n in last.counts.items() if verdict != Verdict.DEADLINE) if last else 0
    return last.seconds / over if last and over else None


def _rest(job: Job | None, taken: float, usual: float | None) -> float:
    """Return the seconds that a member has left: by what waits in its queue, else by what members usually take."""
    figures = job.figures if job else None
    if figures and figures.pages and figures.left:
        return taken * figures.left / figures.pages
    return max(0.0, (usual or 0.0) - taken)
