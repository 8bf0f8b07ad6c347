"""The nodes of the fleet as Redis has them: their services, their room, and the nodes being drained.

A node is a Celery worker that hosts crawlers. It sends a heartbeat every 2 s; after 15 s without one it counts as gone. Its
crawlers may still run, as on a node cut off from Redis, so only a slot that ran out is given away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import redis

from redis_components.server.names import is_name, is_node_name, node_name
from redis_components.server.untrusted_values import Epoch, JsonRecord, Size, WrongValue, answers_of, as_bytes, as_text, readable
from workers.state.keys import FleetKeys

from .keys import script
from .records import GONE_AFTER_S, SlotView

# A beat comes every 2 s; after this long without one a node gets no launches. Less than a slot's TTL: what a dead node held is
# not sent to it.
SILENT_AFTER_S = 6.0
# When Redis has lost its data, nodes get no launches for this time: time for crawlers that run to take their slots back.
BACK_AFTER_S = 3.0


@dataclass(frozen=True, kw_only=True)
class NodeRecord(JsonRecord):
    """The last heartbeat of one node."""

    CUT = True

    STAMPED = frozenset({"beat_at", "back_at"})

    name: str  # Celery's name of the worker, `celery@host`
    services: tuple[str, ...] = ()  # spiders that it serves: those whose queue it consumes
    capacity: Size = 0  # how many crawlers it may host
    taken: Size = 0  # how many it hosted at its heartbeat
    files: tuple[str, ...] = ()  # `<what>=<digest>` of what all nodes must have alike
    version: str = ""  # of Trawl
    started_at: Epoch = 0.0  # epoch s
    beat_at: Epoch = 0.0  # epoch s by Redis's clock, stamped there
    back_at: Epoch = 0.0  # the same: when Redis, having lost its data, got a heartbeat of this node again
    instance: str = ""  # of this process of that name; random
    rivals: bool = False  # another worker beats under the same name
    draining: bool = False  # it takes no crawler any more: it is shutting down, or `Nodes.drain` has named it

    def alive(self, now: float) -> bool:
        """Return True if its last heartbeat is recent; `now` is Redis's time (`Registry.now`)."""
        return now - self.beat_at < GONE_AFTER_S

    def state(self, now: float) -> str:
        """Return `up`, `draining` or `gone`, for display; `now` is Redis's time."""
        if not self.alive(now):
            return "gone"
        return "draining" if self.draining else "up"

    def is_open(self, now: float) -> bool:
        """Return True if a launch may be sent to it, if it has room: one that missed two beats may be dead already."""
        return not self.draining and now - self.beat_at < SILENT_AFTER_S and not 0 <= now - self.back_at < BACK_AFTER_S

    def rivalry(self) -> str:
        """Return the problem of two workers with one name, for display."""
        return f"{self.name}: two workers have this name, so launches and orders for one reach the other"


@dataclass(frozen=True, kw_only=True)
class NodeAnswer:
    """The answer to a node's heartbeat."""

    draining: bool  # an operator drains it
    back_at: str = "0"  # epoch s; "0": Redis has never forgotten it
    at: float = 0.0  # epoch s, by Redis's clock
    instance: str = ""  # whose record this beat has replaced; "": none, or an older Trawl's


class Nodes:
    """Reads and writes the records of nodes. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis) -> None:
        self._client, self._keys = client, FleetKeys()

    def beat(self, record: NodeRecord, before: NodeAnswer | None = None) -> NodeAnswer:
        """Send a heartbeat of the node; `before` is the answer to its last one."""
        keys = {"nodes": self._keys.nodes(), "drained": self._keys.drained_nodes()}
        back_at = before.back_at if before else ""
        draining, back_at, at, instance = script("node_beat")(
            self._client, keys, {"name": record.name, "record": record.to_json(), "back_at": back_at}
        )
        return NodeAnswer(draining=bool(draining), back_at=as_text(back_at), at=float(at), instance=as_text(instance))

    def all(self) -> list[NodeRecord]:
        """Return every node with a record, by name; one that cannot be read is left out."""
        with self._client.pipeline(transaction=False) as pipe:
            pipe.hgetall(self._keys.nodes())  # bounded: a node that is gone for a minute is forgotten
            pipe.hkeys(self._keys.drained_nodes())
            records, drained = answers_of(pipe)
        names = {as_text(name) for name in drained or ()}
        fields = {as_bytes(name): as_bytes(raw) for name, raw in (records or {}).items()}
        return [
            replace(record, draining=record.draining or record.name in names) for record in readable(fields, node_of).values()
        ]

    def forget(self, names: Iterable[str]) -> None:
        """Drop the records of nodes that have ended. Whether they are to be drained is kept, for when they come back."""
        if gone := list(names):
            self._client.hdel(self._keys.nodes(), *gone)

    def drain(self, name: str) -> None:
        """Let this node take no crawler from now on; its crawlers leave, also after a restart under the same name.

        It need not be there: a name without a heartbeat for a week is forgotten. Raises ConfigError for an invalid name.
        """
        keys = {"drained": self._keys.drained_nodes()}
        script("node_drain")(self._client, keys, {"name": node_name(name)})

    def undrain(self, name: str) -> bool:
        """Let the node take crawlers again; False when it was not being drained."""
        return bool(self._client.hdel(self._keys.drained_nodes(), name))

    def is_draining(self, name: str) -> bool:
        """Return True if `drain` has named this node."""
        return bool(self._client.hexists(self._keys.drained_nodes(), name))


def node_of(name: str, raw: bytes) -> NodeRecord:
    """Return a node's record under its own name. Raises ValueError."""
    record = NodeRecord.from_json(raw)
    if record.name != name:
        raise WrongValue(f"speaks for another one, {record.name!r:.100}")
    if not is_node_name(record.name) or not all(map(is_name, record.services)):  # queues are named after them
        raise ValueError(f"no node is called {record.name!r:.100}, or no service as one of its services")
    return record


def used_places(live: Iterable[SlotView]) -> dict[str, int]:
    """Return the places of each node that have a crawler, or are about to: slots that it holds, and launches on
    their way to it.
    """
    used: dict[str, int] = {}
    for view in live:
        if node := view.owner if view.token is not None else view.launching_on:
            used[node] = used.get(node, 0) + 1
    return used


def shortages(desired: Mapping[str, int], live: Iterable[SlotView], nodes: Iterable[NodeRecord], now: float) -> dict[str, str]:
    """Return one sentence for each service that lacks crawlers for want of room."""
    slots, offers = list(live), [node for node in nodes if node.alive(now) and not node.draining]
    used = used_places(slots)
    cared_for = Counter(view.spider for view in slots if view.number < desired.get(view.spider, 0) and _is_cared_for(view))
    sentences = {}
    for service, size in sorted(desired.items()):
        here = [node for node in offers if service in node.services]
        missing = size - cared_for[service]
        if missing and all(used.get(node.name, 0) >= node.capacity for node in here):
            room = sum(node.capacity for node in here)
            offer = f"the nodes that serve it offer {room}, all taken" if room else "no node serves it"
            sentences[service] = f"{size} wanted, no room for {missing}: {offer}"
    return sentences


def _is_cared_for(view: SlotView) -> bool:
    """Return True if a crawler that the slot lacks has another reason than room."""
    return bool(view.token is not None or view.launching_on or (view.record and view.record.state.given_up))
