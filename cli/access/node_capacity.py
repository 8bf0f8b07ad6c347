"""Whether the nodes have room for the crawlers that somebody asks for: said at once, since the fleet only waits for room."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import redis

from redis_components.server.replies import server_time
from workers.environment.machine import CRAWLER_BYTES, crawlers_in_memory
from workers.state.nodes import Nodes, unplaced

NO_NODE = "no node is running: these crawlers start with `trawl up`, or with `celery -A tasks worker`"


def lack_of_room(client: redis.Redis, desired: Mapping[str, int], asked: Collection[str]) -> list[str]:
    """One sentence for each service of `asked` that the nodes have no room for, with what to do; [] where all fit.

    `desired`: the size of every service, that of `asked` ones as large as they may become.
    """
    nodes, now = Nodes(client).all(), server_time(client)
    up = [node for node in nodes if node.alive(now)]
    in_order = {name: desired[name] for name in sorted(desired, key=lambda name: name in asked)}
    lacking = unplaced(in_order, up, now)
    if not up:
        return [NO_NODE] if any(desired[name] for name in asked) else []
    return [_sentence(name, desired[name], lacking[name], sum(desired.values())) for name in sorted(lacking) if name in asked]


def _sentence(service: str, size: int, missing: int, all_together: int) -> str:
    return (
        f"{service}={size}: the nodes have room for {size - missing}; start another node, or restart `trawl up`, which makes "
        f"room (or its worker with TRAWL_NODE_CRAWLERS={all_together})"
    )


def too_much_for_machine(crawlers: int, memory: int) -> str:
    """What to say of a node with so many crawlers on a machine with so many bytes of memory; empty where they fit."""
    if crawlers <= (room := crawlers_in_memory(memory)):
        return ""
    need, there = crawlers * CRAWLER_BYTES / 2**30, memory / 2**30
    return (
        f"{crawlers} crawlers need about {need:.0f} GB of memory, this machine has {there:.0f}: it has room for {room}; start "
        "the others on another machine"
    )
