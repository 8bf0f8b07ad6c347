"""Sizes autoscaled services once per beat (`resize`), by how many crawlers each needs, from its backlog and throughput.

`autoscale` decides; it is pure, so that it can be tested on traces.

    need = (inflow + backlog / target) / what one crawler finishes

Up quickly: at most doubled, as soon as the present crew has been measured for WINDOW_S. Down slowly: to the most that would have
been wanted in the last DOWN_AFTER_S. What one crawler finishes is known only from windows in which it always had something to do.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import redis

from redis_components.admin.inspector import snapshot
from redis_components.errors import ConfigError, unknown_name
from workers.environment.declaration import check_size
from workers.state.holds import FleetHolds, word_of
from workers.state.nodes import NodeRecord, used_places
from workers.state.registry import CrawlerState, Registry, SlotView
from workers.state.reports import Note, note
from workers.state.services import Autoscaling, Memory, Policy

WINDOW_S = 10.0  # of measuring
GAP_S = 30.0  # after a longer gap between samples, or a clock that goes back, measuring starts over
UP_AT = 1.1  # part of the present size that must be needed to grow
DOWN_AT = 0.85  # and that must suffice to shrink
DOWN_AFTER_S = 60.0
SMOOTHING = 0.3  # share of the newest window in the inflow


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One look at a service."""

    size: int  # crawlers desired now
    alive: int  # crawlers at work
    waiting: int  # requests and start tasks that no crawler has taken
    leased: int  # requests that crawlers have
    acked: int  # finished, ever
    room: int  # crawlers that the nodes could host for this service
    held: bool = False  # paused, stopped or draining: its figures do not count, and it must not grow

    @property
    def backlog(self) -> int:
        """All that is not finished."""
        return self.waiting + self.leased


def autoscale(policy: Policy, memory: Memory, sample: Sample | None, now: float) -> tuple[int | None, Memory]:
    """Return the new size of the service (None: unchanged), and the new memory; `sample` is None where Redis had none."""
    if sample is None:
        return None, replace(memory, at=None, why="its figures cannot be read")
    size = min(max(sample.size, policy.min), policy.max)
    if size != sample.size:
        return size, Memory(why=f"{'at least' if size == policy.min else 'at most'} {size}")
    if sample.held:
        return None, replace(memory, at=None, low_since=None, why="it is held")
    memory, is_over = _measure(memory, sample, now)
    size, memory = _decide(policy, memory, sample, now)
    memory = _begin_window(memory, sample, now) if is_over or size != sample.size else memory
    return (None if size == sample.size else size), replace(memory, at=now)


def _measure(memory: Memory, sample: Sample, now: float) -> tuple[Memory, bool]:
    """Continue the window; return True at its end."""
    unbroken = memory.at is not None and 0 <= now - memory.at <= GAP_S and sample.acked >= memory.acked_then
    if not unbroken or sample.alive != memory.crew:
        broken = replace(memory, low_since=memory.low_since if unbroken else None, fresh=False)
        return _begin_window(broken, sample, now), False
    memory = replace(memory, dry=memory.dry or sample.waiting == 0)
    lasted = now - memory.since
    if lasted < WINDOW_S or not memory.crew:
        return memory, False
    finished = sample.acked - memory.acked_then
    inflow = max(0.0, (sample.backlog - memory.backlog_then + finished) / lasted)
    memory = replace(
        memory, fresh=True, inflow=inflow if memory.inflow is None else memory.inflow + SMOOTHING * (inflow - memory.inflow)
    )
    if not memory.dry and finished:
        memory = replace(memory, per_crawler=finished / lasted / memory.crew)
    return memory, True


def _begin_window(memory: Memory, sample: Sample, now: float) -> Memory:
    return replace(
        memory,
        crew=sample.alive,
        since=now,
        acked_then=sample.acked,
        backlog_then=sample.backlog,
        dry=sample.waiting == 0,
        fresh=memory.fresh and sample.alive == memory.crew,
    )


def _decide(policy: Policy, memory: Memory, sample: Sample, now: float) -> tuple[int, Memory]:
    size = sample.size
    need = _need(policy, memory, sample)
    wanted = min(max(math.ceil(need), policy.min), policy.max)
    if need > size * UP_AT and wanted > size:
        return _grow(memory, sample, wanted)
    if wanted < size and need < size * DOWN_AT:
        return _shrink(memory, size, wanted, now)
    return size, replace(memory, low_since=None, why=f"{size} are enough" if sample.backlog else "nothing waits")


def _need(policy: Policy, memory: Memory, sample: Sample) -> float:
    """Return the number of crawlers that are needed, as exactly as is known."""
    if not memory.per_crawler or memory.inflow is None:
        if sample.backlog and not sample.size:
            return 1.0  # to find out
        # The rate of one crawler is unknown. Where the queue runs empty, one crawler less may do.
        return sample.size - 1.0 if (memory.fresh and memory.dry) or not sample.backlog else float(sample.size)
    need = (memory.inflow + sample.backlog / policy.target_s) / memory.per_crawler
    return 0.0 if not sample.backlog and need < 0.05 else need


def _grow(memory: Memory, sample: Sample, wanted: int) -> tuple[int, Memory]:
    size, memory = sample.size, replace(memory, low_since=None)
    if size and sample.alive < size:
        return size, replace(memory, why=f"{wanted} are needed, and {size - sample.alive} of {size} do not run yet")
    if size and not memory.fresh:
        return size, replace(memory, why=f"{wanted} are needed; {size} are being measured first")
    new = min(wanted, max(2 * size, 1), max(sample.room, size))
    if new == size:
        return size, replace(memory, why=f"{wanted} are needed, and the nodes have room for {sample.room}")
    return new, replace(memory, fresh=False, why=f"from {size} to {new}: {wanted} are needed")


def _shrink(memory: Memory, size: int, wanted: int, now: float) -> tuple[int, Memory]:
    since, peak = (now, wanted) if memory.low_since is None else (memory.low_since, max(memory.low_peak, wanted))
    memory = replace(memory, low_since=since, low_peak=peak)
    if now - since < DOWN_AFTER_S:
        return size, replace(memory, why=f"{peak} would do")
    new = max(peak, math.ceil(size / 2) if size > 1 else 0)
    return new, replace(memory, low_since=None, fresh=False, why=f"from {size} to {new}: enough for a minute")


MIN_TARGET_S, MAX_TARGET_S = 1.0, 7 * 86_400.0


def check_policy(service: str, policy: Policy, services: Collection[str]) -> Policy:
    """Return the policy if it is valid for one of these services. Raises ConfigError."""
    if service not in services:
        raise unknown_name("service", service, services)
    check_size(f"{service} --min", policy.min)
    check_size(f"{service} --max", policy.max)
    if policy.max < max(policy.min, 1):
        raise ConfigError(f"{service}: --max {policy.max} is below --min {max(policy.min, 1)}: give it at least that many")
    if not MIN_TARGET_S <= policy.target_s <= MAX_TARGET_S:
        raise ConfigError(f"{service}: --target {policy.target_s:g} is not between 1 s and a week")
    return policy


def resize(
    client: redis.Redis, desired: Mapping[str, int], live: Iterable[SlotView], nodes: Iterable[NodeRecord], now: float
) -> dict[str, int]:
    """Look at each service that sizes itself, and set what was decided: the new sizes of those that change.

    Of several callers at once one decides. A service that TRAWL_FLEET does not name any more is left alone.
    """
    autoscaling, registry, slots, places = Autoscaling(client), Registry(client), list(live), list(nodes)
    changed = {}
    for service, known in autoscaling.all().items():
        if service not in desired:
            continue
        sample = _look(client, service, desired[service], slots, places, now)
        size, memory = autoscale(known.policy, known.memory, sample, now)
        if autoscaling.put(service, replace(known, memory=memory)) and size is not None:
            registry.set_desired(service, size, try_again=False)
            changed[service] = size
            text = f"{service} sized itself from {desired[service]} to {size} crawlers"
            note(client, Note(about="fleet", type="changed", said=text, at=now))
    return changed


def _look(
    client: redis.Redis, service: str, size: int, slots: list[SlotView], nodes: list[NodeRecord], now: float
) -> Sample | None:
    try:
        crawl = snapshot(client, service)
    except (redis.ResponseError, ValueError, TypeError):  # a key of another type: the exporter names it
        return None
    running = [v for v in slots if v.spider == service and v.number < size and v.token is not None and v.record]
    return Sample(
        size=size,
        alive=sum(v.record is not None and v.record.state is CrawlerState.RUNNING and v.record.alive(now) for v in running),
        waiting=crawl.ready + crawl.start_tasks + crawl.overflow,
        leased=crawl.leased + crawl.leased_tasks,
        acked=crawl.acked,
        room=room_for(service, slots, nodes, now),
        held=word_of(service, FleetHolds(client).all([service])) is not None,
    )


def room_for(service: str, slots: Iterable[SlotView], nodes: Iterable[NodeRecord], now: float) -> int:
    """Return how many crawlers of this service the nodes could host in addition to the other services' crawlers."""
    others = used_places(view for view in slots if view.spider != service)
    return sum(max(0, n.capacity - others.get(n.name, 0)) for n in nodes if n.is_open(now) and service in n.services)
