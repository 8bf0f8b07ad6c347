"""Applies `workers.fleet.autoscale_policy`: sets the desired size of autoscaled services once per beat."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import redis

from redis_components.admin.inspector import snapshot
from redis_components.errors import ConfigError
from workers.environment.values import check_size
from workers.state.autoscaling import Autoscaling, Policy
from workers.state.holds import FleetHolds, word_of
from workers.state.nodes import NodeRecord, used_places
from workers.state.notes import Note, note
from workers.state.registry import CrawlerState, Registry, SlotView

from .autoscale_policy import Sample, autoscale
from .sizes import unknown_service

MIN_TARGET_S, MAX_TARGET_S = 1.0, 7 * 86_400.0


def check_policy(service: str, policy: Policy, services: Collection[str]) -> Policy:
    """Return the policy if it is valid for one of these services. Raises ConfigError."""
    if service not in services:
        raise unknown_service(service, services)
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
        if autoscaling.remember(service, replace(known, memory=memory)) and size is not None:
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
    if crawl.redis:  # its figures are in another Redis
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
