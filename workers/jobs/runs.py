"""Runs: many spiders, each as a job, so many at a time, until each has a verdict.

    run = start(client, "brands")                # or `trawl run --group brands`, `run_group.delay("brands")`, [groups] with cron
    advance(client)                              # `reconcile_fleet`: begins members, and ends those that are over

Everything is in Redis: a run goes on after the death of any process. A step that was done twice, by two at once or after a
death in its middle, has the effect of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import redis

from redis_components.admin.crawl_records import CrawlRecords
from redis_components.admin.inspector import snapshot
from redis_components.errors import ConfigError, did_you_mean
from redis_components.server.names import service_name
from redis_components.server.untrusted_values import server_time
from workers.jobs import jobs
from workers.state.group_runs import GroupRun, GroupRuns, Member, RunState, Verdict, counted
from workers.state.jobs import Job, Jobs, JobState
from workers.state.services import as_texts

from .groups import Group, check_names, deadline_at, group_named, members_of
from .spider_list import project_spiders
from .verdict import CrawlEvidence, Finding, as_member, find

LATEST_RUN = "latest"
STARTS_AT_ONCE = 50
"""Members that one step begins: a step lasts a moment."""
_DEADLINE = "its deadline is over"


@dataclass(frozen=True, kw_only=True)
class RunOrder:
    """The run that is ordered."""

    group: str
    declared: Group
    spiders: Mapping[str, str]
    """Members, with their modules ("": not known), in the order of their start."""
    by: str = ""
    of: str = ""
    crawlers: int = 0
    at_once: int = 0
    arguments: Mapping[str, Any] = field(default_factory=dict)


def order(name: str, *, only: Iterable[str] = (), by: str = "", of: str = "") -> RunOrder:
    """Return the order of a run of a declared group, `all`, or of some of its members. Raises ConfigError.

    Imports the project in a separate process.
    """
    group = group_named(name)
    return order_of(name, group, only=only, by=by, of=of)


def order_of(name: str, group: Group, *, only: Iterable[str] = (), by: str = "", of: str = "") -> RunOrder:
    """Return the order of a run of this group; see `order`."""
    listed = project_spiders(group.project)
    check_names(group, listed.spiders)
    chosen, wanted = members_of(group, listed.spiders), set(only)
    if not chosen:
        broken = f"; {len(listed.broken)} modules cannot be imported" if listed.broken else ""
        raise ConfigError(f"the group {name} has no members among the {len(listed.spiders):,} spiders of the project{broken}")
    modules = {one.name: one.module for one in listed.spiders}
    members = {spider: modules[spider] for spider in chosen if not wanted or spider in wanted}
    return RunOrder(group=name, declared=group, spiders=members, by=by, of=of)


def start(client: redis.Redis, given: RunOrder) -> GroupRun:
    """Start a run, or queue it behind the run of the group that goes on, or leave it out, as the group's `overlap` decides: then
    that run is returned. Raises ConfigError.
    """
    runs, group, now = GroupRuns(client), given.declared, server_time(client)
    open_runs = [run for run in runs.newest(given.group) if not run.state.ended]
    if open_runs and group.overlap == "skip":
        return open_runs[0]
    if group.overlap == "replace":
        for run in open_runs:
            cancel(client, run.id, reason="another run takes its place")
    queued = [run for run in open_runs if run.state is RunState.QUEUED]
    if queued and group.overlap == "queue":
        return queued[0]
    for spider in given.spiders:
        service_name(spider)
    moment = datetime.fromtimestamp(now, UTC)
    run = GroupRun(
        id=f"{given.group}-{moment:%Y%m%dT%H%M%S}",
        group=given.group,
        state=RunState.QUEUED if open_runs else RunState.RUNNING,
        started_at=now,
        deadline_at=None if open_runs else deadline_at(group, now),
        members=len(given.spiders),
        at_once=given.at_once or group.at_once,
        crawlers=given.crawlers or group.crawlers,
        project=group.project,
        deadline=group.deadline,
        timezone=group.timezone,
        arguments=as_texts({**group.arguments, **given.arguments}),
        settings=as_texts(group.settings),
        keep_runs=group.keep_runs,
        by=given.by,
        of=given.of,
    )
    for number in range(100):  # two runs within a second
        named = replace(run, id=f"{run.id}{f'-{number}' if number else ''}")
        if runs.add(named, given.spiders):
            return named
    raise ConfigError(f"there are 100 runs of {given.group} of this second")


def run_named(client: redis.Redis, name: str) -> GroupRun:
    """Return a run by its id; `latest`, or a group: the newest one. Raises ConfigError."""
    known = GroupRuns(client).all()
    if name in known:
        return known[name]
    newest = GroupRuns(client).newest("" if name == LATEST_RUN else name)
    if not newest:
        more = did_you_mean(name, known) if known else "; trawl run --group NAME starts one"
        raise ConfigError(f"there is no run {name!r:.100}{more}")
    return newest[0]


def pause(client: redis.Redis, name: str, *, by: str = "") -> GroupRun:
    """Let no member crawl until `resume`; those that do finish their pages, and go on later where they stopped."""
    return _changed(client, name, (RunState.RUNNING,), state=RunState.PAUSED, reason=f"by {by}" if by else "")


def resume(client: redis.Redis, name: str) -> GroupRun:
    """Go on with a paused run. Raises ConfigError for another one."""
    return _changed(client, name, (RunState.PAUSED,), state=RunState.RUNNING, reason="")


def cancel(client: redis.Redis, name: str, *, reason: str = "") -> GroupRun:
    """End a run: members that crawl finish their pages, the others do not begin. Raises ConfigError for one that is over."""
    states = (RunState.QUEUED, RunState.RUNNING, RunState.PAUSED)
    return _changed(client, name, states, state=RunState.ENDING, reason=reason or "cancelled")


def rerun(client: redis.Redis, name: str, *, failed: bool = False, by: str = "") -> GroupRun:
    """Start a run with the members of one that is over; `failed`: of those alone whose verdict is not sound.

    Raises ConfigError.
    """
    run = run_named(client, name)
    if not run.state.ended:
        raise ConfigError(f"{run.id} is {run.state}: only a run that is over can be run again")
    members = GroupRuns(client).members(run.id)
    chosen = [spider for spider, one in members.items() if not (failed and one.verdict.sound)]
    if not chosen:
        raise ConfigError(f"{run.id} has no failed member")
    given = dict(zip(chosen, GroupRuns(client).modules(run.id, chosen), strict=True))
    group = Group(
        spiders=tuple(chosen),
        deadline=run.deadline,
        timezone=run.timezone,
        at_once=run.at_once,
        crawlers=run.crawlers,
        project=run.project,
        arguments=dict(run.arguments),
        settings=dict(run.settings),
        overlap="queue",
        keep_runs=run.keep_runs,
    )
    return start(client, RunOrder(group=run.group, declared=group, spiders=given, by=by, of=run.id))


def _changed(client: redis.Redis, name: str, states: Sequence[RunState], **changes: Any) -> GroupRun:
    runs = GroupRuns(client)
    wanted = run_named(client, name).id
    while True:
        run = runs.all()[wanted]
        if run.state not in states:
            raise ConfigError(f"{run.id} is {run.state}: this is for a run that is {' or '.join(states)}")
        after = replace(run, **changes)
        if runs.swap(after):
            return after


def advance(client: redis.Redis) -> list[str]:
    """Take the next step of each run that is not over; return a line for each change. Safe to run concurrently."""
    runs = GroupRuns(client)
    everything = runs.newest()
    lines: list[str] = []
    if not any(not run.state.ended for run in everything):
        return lines
    now, known = server_time(client), Jobs(client).all()
    for run in reversed(everything):
        if not run.state.ended:
            lines += _Step(client, runs, run, everything, known, now).take()
    for group in {run.group for run in everything}:
        ended = [run for run in everything if run.group == group and run.state.ended]
        for run in ended[ended[0].keep_runs :] if ended else ():
            runs.forget(run.id)
    return lines


class _Step:
    """One step of one run."""

    def __init__(
        self,
        client: redis.Redis,
        runs: GroupRuns,
        run: GroupRun,
        everything: Sequence[GroupRun],
        known: Mapping[str, Job],
        now: float,
    ) -> None:
        self._client, self._runs, self._run, self._everything = client, runs, run, everything
        self._known, self._now = known, now
        self._jobs = Jobs(client)

    def take(self) -> list[str]:
        """Take the step; return lines for the log."""
        run = self._run
        if run.state is RunState.QUEUED:
            return self._begin_queued()
        if run.state in (RunState.RUNNING, RunState.PAUSED) and run.deadline_at is not None and self._now >= run.deadline_at:
            run = replace(run, state=RunState.ENDING, reason=_DEADLINE)
        crawling = self._runs.crawling(run.id)
        over = self._ended(run, crawling)
        left = {spider: at for spider, at in crawling.items() if spider not in over}
        if run.state is RunState.ENDING:
            self._cancel(left)
            over |= self._given_up(run)
        elif run.state is RunState.PAUSED:
            self._cancel(left, jobs.PAUSED)
            stopped = [spider for spider in left if (job := self._job(spider)) is not None and job.state.ended]
            self._runs.put_back(run.id, stopped)
        else:
            over |= self._fill(run, left)
        if over:
            self._runs.end(run.id, over.values())
            self._forget_jobs(over)
        return self._store(run, over)

    def _begin_queued(self) -> list[str]:
        before = [one for one in self._everything if one.group == self._run.group and one.started_at < self._run.started_at]
        if any(not one.state.ended for one in before):
            return []
        group = Group(deadline=self._run.deadline, timezone=self._run.timezone)
        begun = replace(self._run, state=RunState.RUNNING, started_at=self._now, deadline_at=deadline_at(group, self._now))
        return [f"run {begun.id} begins"] if self._runs.swap(begun) else []

    def _job(self, spider: str) -> Job | None:
        return self._known.get(f"{spider}.{self._run.id}")

    def _ended(self, run: GroupRun, crawling: Mapping[str, float]) -> dict[str, Member]:
        """Return the outcomes of members whose jobs are over."""
        over = {spider: job for spider in crawling if (job := self._job(spider)) is not None and job.state.ended}
        if run.state is not RunState.ENDING:  # a job that was paused goes on
            over = {spider: job for spider, job in over.items() if job.reason != jobs.PAUSED}
        if not over:
            return {}
        before, silenced = self._runs.before(run, list(over), self._everything), self._runs.silenced()
        outcomes = {}
        for spider, job in over.items():
            evidence = self._evidence(job, crawling[spider])
            found = self._of_end(run) if job.state is JobState.CANCELLED else find(evidence, before[spider])
            times = {"started_at": crawling[spider], "ended_at": job.ended_at or self._now}
            outcomes[spider] = as_member(spider, evidence, found, silenced=silenced.get(spider, ""), **times)
        return outcomes

    def _evidence(self, job: Job, started_at: float) -> CrawlEvidence:
        stats = snapshot(self._client, job.id, CrawlRecords(self._client).keys_of(job.id)).stats
        seconds = max(0.0, (job.ended_at or self._now) - started_at)
        return CrawlEvidence(state=job.state, reason=job.reason, figures=job.figures, seconds=seconds, stats=stats)

    def _of_end(self, run: GroupRun) -> Finding:
        if run.reason == _DEADLINE:
            return Finding(Verdict.DEADLINE, "the run's deadline came before its end")
        return Finding(Verdict.CANCELLED, run.reason)

    def _given_up(self, run: GroupRun) -> dict[str, Member]:
        found = self._of_end(run)
        reason = "the run's deadline came before its turn" if found.verdict is Verdict.DEADLINE else found.reason
        return {
            spider: Member(spider=spider, verdict=found.verdict, reason=reason, ended_at=self._now)
            for spider in self._runs.waiting(run.id)
        }

    def _cancel(self, crawling: Iterable[str], reason: str = jobs.CANCELLED) -> None:
        for spider in crawling:
            if (job := self._job(spider)) is not None and job.state is JobState.RUNNING:
                jobs.cancel(self._client, job.id, reason=reason)

    def _fill(self, run: GroupRun, crawling: Mapping[str, float]) -> dict[str, Member]:
        """Begin members where there is room, and those whose job is missing; return the outcomes of members that cannot begin."""
        room = min(STARTS_AT_ONCE, max(0, run.at_once - len(crawling)))
        fresh = self._runs.waiting(run.id, room) if room else []
        self._runs.begin(run.id, fresh, self._now)  # first: after a death here the next step starts their jobs
        missing = [spider for spider in (*crawling, *fresh) if self._job(spider) is None]
        stopped = [spider for spider in (*crawling, *fresh) if (job := self._job(spider)) is not None and job.state.ended]
        refused = {}
        for spider in stopped:
            with suppress(ConfigError):  # it has gone on already
                jobs.resume(self._client, f"{spider}.{run.id}")
        for spider, module in zip(missing, self._runs.modules(run.id, missing), strict=True):
            try:
                self._start(run, spider, module)
            except ConfigError as error:
                if self._jobs.of(f"{spider}.{run.id}") is None:  # not started by another process meanwhile
                    refused[spider] = Member(spider=spider, verdict=Verdict.CRASHED, reason=str(error)[:500], ended_at=self._now)
        return refused

    def _start(self, run: GroupRun, spider: str, module: str) -> None:
        settings = {**({"SPIDER_MODULES": module} if module else {}), **run.settings}
        arguments = dict(run.arguments)
        given = jobs.JobOrder(
            service=spider,
            crawlers=run.crawlers,
            arguments=arguments,
            settings=settings,
            project=run.project,
            id=run.id,
            by=run.id,
        )
        jobs.start(self._client, given)

    def _forget_jobs(self, over: Iterable[str]) -> None:
        """Drop the records of jobs whose outcome is stored: thousands of them would be read at every step."""
        for spider in over:
            if job := self._job(spider):
                jobs.forget(self._client, job)

    def _store(self, run: GroupRun, over: Mapping[str, Member]) -> list[str]:
        lines = [
            f"run {run.id}: {spider}: {one.verdict}{f' ({one.reason})' if one.reason else ''}" for spider, one in over.items()
        ]
        members = self._runs.members(run.id) if over or run.state is RunState.ENDING else {}
        counts = counted(members.values()) if members else run.counts
        alerting = sum(one.alerting for one in members.values()) if members else run.alerting
        after = replace(run, counts=counts, alerting=alerting, late=self._forecast(run, counts, members))
        if sum(counts.values()) >= run.members:
            ended = RunState.CANCELLED if run.state is RunState.ENDING and run.reason != _DEADLINE else RunState.FINISHED
            after = replace(after, state=ended, ended_at=self._now, late=None)
            lines.append(f"run {after.id}: {after.sentence()}")
        if after != self._run:
            self._runs.swap(after)
        return lines

    def _forecast(self, run: GroupRun, counts: Mapping[str, int], members: Mapping[str, Member]) -> float | None:
        """Return the time at which the run will be over at the pace of its last members, where that is after its deadline."""
        if run.deadline_at is None or not members or run.state is not RunState.RUNNING:
            return run.late
        seconds = [one.seconds for one in members.values()]
        left = run.members - sum(counts.values())
        end = self._now + left * sum(seconds) / len(seconds) / min(run.at_once, max(1, left))
        return end if end > run.deadline_at else None
