"""Forecast of the end of a run, from what its members have left, their pace, and the last run of the group. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from workers.state.group_runs import GroupRun, RunState, Verdict
from workers.state.jobs import Job

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
