"""Runs: many spiders, each as a job, so many at a time, until each has a verdict.

    run = start(client, order("brands"))         # or `trawl run --group brands`, `run_group.delay("brands")`, [groups] with cron

`fleet_operations.jobs.run_steps` takes its steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import redis

from redis_components.errors import ConfigError, did_you_mean
from redis_components.keys import limits_key
from redis_components.politeness import limits
from redis_components.server.names import service_name
from redis_components.server.printable import masked_values
from redis_components.server.untrusted_values import server_time
from workers.state.group_runs import GroupRun, GroupRuns, RunState, quota_lane
from workers.state.keys import FleetKeys
from workers.state.services import as_texts

from .groups import Group, Quota, check_names, deadline_at, group_named, members_of, quota_named
from .jobs import LOCK_S
from .spider_list import project_spiders

LATEST_RUN = "latest"


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
    with client.lock(FleetKeys().starting(f"group:{given.group}"), timeout=LOCK_S):
        return _start(client, given)


def _start(client: redis.Redis, given: RunOrder) -> GroupRun:
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
    quota = quota_named(group.quota)
    if quota.per_minute:  # before a member sends anything
        limits.write(client, limits.read(client, limits_key()), {quota_lane(group.quota): quota.limits()}, limits.FROM_FILES)
    moment = datetime.fromtimestamp(now, UTC)
    terms = group.terms() | {
        "at_once": given.at_once or group.at_once,
        "crawlers": given.crawlers or group.crawlers,
        "arguments": as_texts({**group.arguments, **given.arguments}),
        "settings": as_texts({**_memory(group.memory_mb), **group.settings, **_counted(group, quota)}),
    }
    run = GroupRun(
        **terms,
        id=f"{given.group}-{moment:%Y%m%dT%H%M%S}",
        group=given.group,
        state=RunState.QUEUED if open_runs else RunState.RUNNING,
        started_at=now,
        deadline_at=None if open_runs else deadline_at(group, now),
        members=len(given.spiders),
        most_crawlers=quota.most_crawlers(group.memory_mb),
        by=given.by,
        of=given.of,
    )
    for number in range(100):  # two runs within a second
        named = replace(run, id=f"{run.id}{f'-{number}' if number else ''}")
        if runs.add(named, given.spiders):
            return named
    raise ConfigError(f"there are 100 runs of {given.group} of this second")


def _memory(memory_mb: int) -> dict[str, int]:
    """Return the settings of a crawler that has so much memory: it finishes its pages some way below."""
    return {"CRAWLER_MEMORY_SOFT_MB": memory_mb * 9 // 10, "CRAWLER_MEMORY_HARD_MB": memory_mb} if memory_mb else {}


def _counted(group: Group, quota: Quota) -> dict[str, str]:
    """Return the setting by which the quota counts the requests of a crawler."""
    return {"SCHEDULER_QUOTA": quota_lane(group.quota)} if quota.per_minute else {}


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
    group = Group(**run.terms(), spiders=tuple(chosen), overlap="queue")
    return start(client, RunOrder(group=run.group, declared=group, spiders=given, by=by, of=run.id))


def run_fields(run: GroupRun) -> dict[str, Any]:
    """Return a run as JSON, without values that are named like a secret."""
    given = {"arguments": masked_values(run.arguments), "settings": masked_values(run.settings)}
    return {"run": run.id, **{name: value for name, value in vars(run).items() if name != "id"}, **given}


def member_fields(client: redis.Redis, run: GroupRun) -> list[Mapping[str, Any]]:
    """Return the members of a run as JSON: those that an operator should look at first, then those that are not over."""
    known = GroupRuns(client)
    over = sorted(known.members(run.id).values(), key=lambda one: (not one.alerting, one.verdict, one.spider))
    crawl = [{"spider": one, "verdict": None, "state": "crawling"} for one in sorted(known.crawling(run.id))]
    wait = [{"spider": one, "verdict": None, "state": "waiting"} for one in known.waiting(run.id)]
    return [*map(vars, over), *crawl, *wait]


def _changed(client: redis.Redis, name: str, states: Sequence[RunState], **changes: Any) -> GroupRun:
    wanted = run_named(client, name)

    def changed(now: GroupRun | None) -> GroupRun:
        run = now or wanted
        if run.state not in states:
            raise ConfigError(f"{run.id} is {run.state}: this is for a run that is {' or '.join(states)}")
        return replace(run, **changes)

    return GroupRuns(client).change(wanted.id, changed)
