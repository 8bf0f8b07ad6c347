"""Explains to a waiting client why a running job has no crawler at the moment."""

from __future__ import annotations

import redis

from redis_components.fleet.holds import FleetHolds, word_of
from redis_components.fleet.jobs import Job, JobState
from redis_components.fleet.nodes import Nodes, shortages
from redis_components.fleet.registry import Registry
from redis_components.frontier.holds import HoldKind

from .sizes import desired_fleet

NO_NODE = "no node is running: start one with trawl up, or with celery -A tasks worker"
NODE_FOR_IT = "start one that does (celery -A tasks worker, without -Q)"
MAKE_ROOM = "start another node, end another job (trawl jobs cancel), or scale a service down"


def delay(client: redis.Redis, job: Job) -> str:
    """Return one line with the fix; "" where its crawlers work, or are about to. Raises `redis.RedisError`."""
    if job.state is not JobState.RUNNING:
        return ""
    held = FleetHolds(client).all([job.id])
    if (word := word_of(job.id, held)) in (HoldKind.STOP, HoldKind.PAUSE):
        what = next(one for one in held if one.hold.word is word and one.slot is None and not one.site)
        return f"{what.what} is {word.state}: trawl resume {what.service or '--all'}"
    registry = Registry(client)
    crawlers, now, desired = registry.crawlers(), registry.now(), desired_fleet(registry)
    slots = registry.slots(desired, crawlers)
    if any(view.spider == job.id and (view.token is not None or view.launching_on) for view in slots):
        return ""
    nodes = Nodes(client).all()
    if not any(node.alive(now) for node in nodes):
        return NO_NODE
    if not (lacking := shortages(desired, slots, nodes, now).get(job.id)):
        return ""
    return f"{lacking}; {MAKE_ROOM if any(job.id in node.services for node in nodes) else NODE_FOR_IT}"
