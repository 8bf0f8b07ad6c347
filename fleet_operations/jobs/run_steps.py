"""The steps of a run: `reconcile_fleet` takes the next one of each run that goes on, until each member has a verdict.

Everything is in Redis: a run goes on after the death of any process. A step that was done twice, by two at once or after a
death in its middle, has the effect of one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from typing import Any

import redis

from fleet_operations.consumers.run_files import end_member, member_settings
from redis_components.admin.inspector import snapshot
from redis_components.errors import ConfigError
from redis_components.keys import CrawlRecords
from redis_components.server.untrusted_values import as_text, server_time
from workers.fleet.sizes import is_wanted
from workers.state.group_runs import RUN, GroupRun, GroupRuns, Member, RunState, Verdict, counted, quota_lane
from workers.state.jobs import Job, Jobs, JobState
from workers.state.keys import FleetKeys
from workers.state.registry import Registry, Slot
from workers.state.reports import Note, note

from . import jobs
from .groups import deadline_at
from .verdict import CrawlEvidence, Finding, as_member, find, forecast, last_finished

STARTS_AT_ONCE = 50
"""Members that one step begins: a step lasts a moment."""
_DEADLINE = "its deadline is over"


def advance(client: redis.Redis) -> list[str]:
    """Take the next step of each run that is not over; return a line for each change. Safe to run concurrently."""
    runs = GroupRuns(client)
    everything = runs.newest()
    lines: list[str] = []
    if not any(not run.state.ended for run in everything):
        return lines
    now, known = server_time(client), Jobs(client).all()
    for run in sorted(everything, key=lambda run: (-run.priority, run.started_at)):
        if not run.state.ended:
            lines += _Step(client, runs, run, everything, known, now).take()
    for group in {run.group for run in everything}:
        ended = [run for run in everything if run.group == group and run.state.ended]
        for run in ended[ended[0].keep_runs :] if ended else ():
            runs.forget(run.id)
    return lines


KNOWN_S = 5.0
"""Runs of the group before this one, with which members are compared, are read again after this time."""
_known_runs: dict[str, tuple[float, list[GroupRun]]] = {}
_MOST_TRIES = 5


def next_member(registry: Registry, slot: Slot) -> Slot | None:
    """End the member whose only crawler has finished in this slot, and take the slot of the member whose turn it is, of this run
    or another; None where there is none, or where `reconcile_fleet` has to decide.

    A crawler's place, and its process, go to the next member so, without a message and a look at the whole fleet.
    """
    client = registry.client
    known = Jobs(client)
    job = known.get(slot.spider)
    if job is None or job.crawlers != 1 or job.state is not JobState.RUNNING or RUN not in job.settings:
        return None
    runs, now = GroupRuns(client), registry.now()
    run, ended = runs.get(job.settings[RUN]), jobs.end(registry, known, job, now)
    if run is None or run.state is not RunState.RUNNING or ended is None or (run.deadline_at or now) < now:
        return None
    step = _Step(client, runs, run, _runs_of(runs, run), {job.id: ended}, now)
    begun = ""
    if (first := registry.first_waiting()) is None or first[0] < run.priority:
        begun = step.begin_instead(job.service, registry, slot.owner)
    step.end_member(job.service)  # now: in between a step of the run would give its room to another member
    if begun:
        return _acquired(registry, begun, slot.owner)
    for _ in range(_MOST_TRIES):
        if (first := registry.first_waiting()) is None:
            return None
        following = Jobs(client).get(first[1])
        if following is None or following.crawlers != 1 or RUN not in following.settings:
            return None  # a service, whose place this one is now
        if registry.take_waiting(*first) and registry.mark_launch(first[1], 0, slot.owner):
            return _acquired(registry, first[1], slot.owner)
    return None


def _runs_of(runs: GroupRuns, run: GroupRun) -> list[GroupRun]:
    at, known = _known_runs.get(run.group, (0.0, []))
    if time.monotonic() - at > KNOWN_S:
        known = runs.newest()
        _known_runs[run.group] = time.monotonic(), known
    return [run, *(one for one in known if one.id != run.id)]


def _acquired(registry: Registry, job: str, node: str) -> Slot | None:
    """Take the slot of a job that goes on; None where another process has it, or has ended the job."""
    slot = registry.acquire(job, 0, node)
    registry.clear_launch(job, 0)
    if slot and not is_wanted(registry.client, job, 0):
        registry.release(slot)
        return None
    return slot


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
        self._waits_for = ""

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
            over |= self._fill(run, left, len(over))
        if over:
            self._keep(over)
        return self._store(run, over)

    def end_member(self, spider: str) -> None:
        """Store the outcome of a member whose job is over."""
        crawling = self._runs.crawling(self._run.id)
        if spider in crawling and (over := self._ended(self._run, {spider: crawling[spider]})):
            self._keep(over)

    def begin_instead(self, over: str, registry: Registry, node: str) -> str:
        """Begin a member in the room of one whose crawl is over; return its job, which this node is to launch."""
        run, crawling = self._run, self._runs.crawling(self._run.id)
        if crawling.pop(over, None) is None or len(crawling) >= run.at_once:
            return ""
        with self._quota_lock():
            if run.most_crawlers:
                self._everything = self._runs.newest()
            if self._quota_room(run, crawling) < 1 or (run.most_crawlers and self._is_outranked()):
                return ""
            begun = self._runs.begin(run.id, self._runs.waiting(run.id, 1), self._now, run.at_once + 1)
        for spider in begun:
            job = f"{spider}.{run.id}"
            with suppress(ConfigError):  # the next step of the run ends it as crashed
                mine = registry.mark_launch(job, 0, node)
                self._start(run, spider, self._runs.modules(run.id, [spider])[0])
                return job if mine else ""
        return ""

    def _keep(self, over: Mapping[str, Member]) -> None:
        end_member(self._client, self._run, list(over))  # first: after a death here it is done again
        self._runs.end(self._run, over.values())
        self._forget_jobs(over)

    def _begin_queued(self) -> list[str]:
        before = [one for one in self._everything if one.group == self._run.group and one.started_at < self._run.started_at]
        if any(not one.state.ended for one in before):
            return []
        deadline = deadline_at(self._run, self._now)
        begun = replace(self._run, state=RunState.RUNNING, started_at=self._now, deadline_at=deadline)
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
            found = (
                self._of_end(run) if job.state is JobState.CANCELLED else find(evidence, before[spider], run.bounds_of(spider))
            )
            times = {"started_at": crawling[spider], "ended_at": job.ended_at or self._now}
            one = outcomes[spider] = as_member(spider, evidence, found, silenced=silenced.get(spider, ""), **times)
            if one.alerting and one.verdict not in [old.verdict for old in before[spider][:1]]:
                self._note(f"run {run.id}: {spider}: {one.verdict}: {one.reason}{f' ({one.url})' if one.url else ''}")
        return outcomes

    def _note(self, sentence: str) -> None:
        note(self._client, Note(about="fleet", type="changed", said=sentence, at=self._now))

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

    def _fill(self, run: GroupRun, crawling: Mapping[str, float], over: int) -> dict[str, Member]:
        """Begin members where there is room, and those whose job is missing; return the outcomes of members that cannot begin.

        `over`: members that are over and still among those that crawl.
        """
        with self._quota_lock():
            room = min(STARTS_AT_ONCE, max(0, run.at_once - len(crawling)), self._quota_room(run, crawling))
            fresh = self._runs.waiting(run.id, room) if room else []
            # First: after a death here the next step starts their jobs.
            fresh = self._runs.begin(run.id, fresh, self._now, run.at_once + over)
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
                if self._jobs.get(f"{spider}.{run.id}") is None:  # not started by another process meanwhile
                    refused[spider] = Member(spider=spider, verdict=Verdict.CRASHED, reason=str(error)[:500], ended_at=self._now)
        return refused

    def _quota_room(self, run: GroupRun, crawling: Mapping[str, float]) -> int:
        """Return the members that may begin within the quota of the run, and note what they wait for."""
        self._waits_for = ""
        if not run.most_crawlers:
            return run.at_once
        taken = {
            one.id: self._crawling_of(one) * one.crawlers
            for one in self._everything
            if one.quota == run.quota and not one.state.ended
        }
        room = max(0, run.most_crawlers - sum(taken.values())) // run.crawlers
        if room < run.at_once - len(crawling):
            by = ", ".join(f"{one} has {number}" for one, number in taken.items() if number)
            self._waits_for = f"a place of the quota {run.quota}, which has {run.most_crawlers} ({by})"
        return room

    def _quota_lock(self) -> AbstractContextManager[Any]:
        """Let no other process give the places of this quota away meanwhile: a supervisor does, for a member that is over."""
        key = FleetKeys().starting(f"quota:{self._run.quota}")
        return self._client.lock(key, timeout=jobs.LOCK_S, sleep=0.02) if self._run.most_crawlers else nullcontext()

    def _is_outranked(self) -> bool:
        """Return True if the next place of the quota is another run's."""
        own, others = self._run, (one for one in self._everything if one.quota and one.quota == self._run.quota)
        rank = (-own.priority, own.started_at)
        return any(one.state is RunState.RUNNING and one.waiting and (-one.priority, one.started_at) < rank for one in others)

    def _crawling_of(self, run: GroupRun) -> int:
        """Return the members of a run that crawl. Places of those that are over are free before its own step: else
        the run itself would take them, although another one has a higher priority.
        """
        jobs_of = [self._known.get(f"{spider}.{run.id}") for spider in self._runs.crawling(run.id)]
        return sum(job is None or not job.state.ended for job in jobs_of)

    def _start(self, run: GroupRun, spider: str, module: str) -> None:
        settings = {RUN: run.id, **({"SPIDER_MODULES": module} if module else {}), **run.settings, **member_settings(run, spider)}
        arguments = dict(run.arguments)
        given = jobs.JobOrder(
            service=spider,
            crawlers=run.crawlers,
            arguments=arguments,
            settings=settings,
            project=run.project,
            id=run.id,
            by=run.id,
            priority=run.priority,
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
        news = over or run.state is RunState.ENDING or self._runs.over(run.id) != sum(run.counts.values())
        members = self._runs.members(run.id) if news else {}
        counts = counted(members.values()) if members else run.counts
        alerts = counted(one for one in members.values() if one.alerting) if members else run.alerts
        seconds = sum(one.seconds for one in members.values()) if members else run.seconds
        waiting = len(self._runs.waiting(run.id))
        waits_for = self._waits_for if waiting else ""
        after = replace(run, counts=counts, alerts=alerts, seconds=seconds, waiting=waiting, waits_for=waits_for)
        after = replace(after, **self._late(after))
        if sum(counts.values()) >= run.members:
            ended = RunState.CANCELLED if run.state is RunState.ENDING and run.reason != _DEADLINE else RunState.FINISHED
            after = replace(after, state=ended, ended_at=self._now, late=None, late_by="")
            lines.append(f"run {after.id}: {after.sentence()}")
        if after != self._run and self._runs.swap(after):
            if after.state.ended:
                self._note(lines[-1])
            elif after.late and not self._run.late:
                by = f" ({after.late_by})" if after.late_by else ""
                self._note(
                    f"run {after.id} will miss its deadline: at this pace it ends {after.late - self._now:.0f} s from now{by}"
                )
        return lines

    def _late(self, run: GroupRun) -> dict[str, Any]:
        """Return the time at which a run ends that will be late, and the member that alone needs so long, with the reason."""
        if run.deadline_at is None:
            return {}
        crawling = self._runs.crawling(run.id)
        known = {spider: job for spider in crawling if (job := self._job(spider)) is not None}
        found = forecast(run, crawling, known, last_finished(run, self._everything), self._now)
        if found is None or not found.member:
            return {"late": found and found.at, "late_by": ""}
        left, keys = known[found.member].figures.left, CrawlRecords(self._client).keys_of(known[found.member].id)
        lanes: Any = self._client.zrange(keys.lanes(), 0, 99)
        paced = {as_text(lane) for lane in lanes if lane[:1] != b"\1"}  # that one holds requests for later
        of_quota = paced and paced <= {quota_lane(run.quota)}
        pace = f" at the pace of {f'the quota {run.quota}' if of_quota else 'the limit of its site'}" if paced else ""
        return {"late": found.at, "late_by": f"{found.member} has {left:,} requests left{pace}"}
