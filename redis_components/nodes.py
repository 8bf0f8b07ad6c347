"""The nodes of the fleet as Redis knows them: who is there, what it serves, how much room it offers, who is being drained.

A node is a Celery worker that hosts crawlers. It says every 2 s that it lives; one that was not heard for 15 s counts as gone.
That says nothing about its crawlers: a node cut off from Redis may still run them, so only a slot that ran out is given away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace

import msgspec
import redis

from .answers import as_text
from .fleet_records import GONE_AFTER_S, SlotView
from .keys import FleetKeys
from .scripts import script

# A beat comes every 2 s; after this long without one a node gets no launches. Less than a slot's TTL: what a dead node held is
# not sent to it.
SILENT_AFTER_S = 6.0
# When Redis has lost its data, nodes get no launches for so long: time for crawlers that run to take their slots back.
BACK_AFTER_S = 3.0


@dataclass(frozen=True, kw_only=True)
class NodeRecord:
    """The last that was heard of one node."""

    name: str  # Celery's name of the worker, `celery@host`
    services: tuple[str, ...] = ()  # spiders that it serves: those whose queue it consumes
    capacity: int = 0  # how many crawlers it may host
    taken: int = 0  # how many it hosted when it said so
    config: str = ""  # digest of what its crawlers are configured by; "": unknown
    version: str = ""  # of Trawl
    started_at: float = 0.0  # epoch s
    beat_at: float = 0.0  # epoch s by Redis's clock, stamped there
    back_at: float = 0.0  # the same: when Redis, having lost what it knew, heard of this node again
    clock_off_s: float = 0.0  # its own clock is so much ahead of Redis's, or behind; 0 where they agree
    draining: bool = False  # it takes no crawler any more: it is shutting down, or `Nodes.drain` has named it

    def alive(self, now: float) -> bool:
        """Whether it was heard lately; `now` is Redis's time (`Registry.now`)."""
        return now - self.beat_at < GONE_AFTER_S

    def state(self, now: float) -> str:
        """`up`, `draining` or `gone`, for people; `now` is Redis's time."""
        if not self.alive(now):
            return "gone"
        return "draining" if self.draining else "up"

    def is_open(self, now: float) -> bool:
        """Whether a launch may be sent to it, if it has room: one that missed two beats may be dead already."""
        return not self.draining and now - self.beat_at < SILENT_AFTER_S and not 0 <= now - self.back_at < BACK_AFTER_S

    def to_json(self) -> str:
        """One line; Redis stamps `beat_at` and `back_at` itself."""
        return msgspec.json.encode({k: v for k, v in asdict(self).items() if k not in ("beat_at", "back_at")}).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> NodeRecord:
        """Read what `to_json` wrote, here or in a newer version: fields that are not known are left out.

        Raises ValueError for anything else.
        """
        return msgspec.json.decode(text, type=cls)


@dataclass(frozen=True, kw_only=True)
class NodeAnswer:
    """The answer to a node's heartbeat."""

    draining: bool  # somebody drains it
    back_at: str = "0"  # epoch s; "0": Redis has never forgotten it
    at: float = 0.0  # epoch s, by Redis's clock


class Nodes:
    """Reads and writes the records of nodes. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis, keys: FleetKeys | None = None) -> None:
        self._client = client
        self._keys = keys or FleetKeys()

    def beat(self, record: NodeRecord, before: NodeAnswer | None = None) -> NodeAnswer:
        """Say that the node lives; `before` is the answer to its last beat."""
        keys = {"nodes": self._keys.nodes(), "drained": self._keys.drained_nodes()}
        back_at = before.back_at if before else ""
        draining, back_at, at = script("node_beat")(
            self._client, keys, {"name": record.name, "record": record.to_json(), "back_at": back_at}
        )
        return NodeAnswer(draining=bool(draining), back_at=as_text(back_at), at=float(at))

    def all(self) -> list[NodeRecord]:
        """Every node that was heard of and not forgotten, by name; one that cannot be read is left out."""
        with self._client.pipeline(transaction=False) as pipe:
            pipe.hvals(self._keys.nodes())  # bounded: who is gone for a minute is forgotten
            pipe.hkeys(self._keys.drained_nodes())
            records, drained = pipe.execute()
        names = {as_text(name) for name in drained}
        found = []
        for raw in records:
            try:
                record = NodeRecord.from_json(raw)
            except ValueError:
                continue
            found.append(replace(record, draining=record.draining or record.name in names))
        return sorted(found, key=lambda node: node.name)

    def forget(self, names: Iterable[str]) -> None:
        """Drop the records of nodes that have ended. Whether they are to be drained is kept, for when they come back."""
        if gone := list(names):
            self._client.hdel(self._keys.nodes(), *gone)

    def drain(self, name: str) -> None:
        """From now on this node takes no crawler; those that it has leave, also after a restart under the same name.

        It need not be there: a name that is not heard of for a week is forgotten.
        """
        keys = {"drained": self._keys.drained_nodes()}
        script("node_drain")(self._client, keys, {"name": name})

    def undrain(self, name: str) -> bool:
        """The node takes crawlers again; False when it was not being drained."""
        return bool(self._client.hdel(self._keys.drained_nodes(), name))

    def is_draining(self, name: str) -> bool:
        """Whether `drain` has named this node."""
        return bool(self._client.hexists(self._keys.drained_nodes(), name))


def used_places(live: Iterable[SlotView]) -> dict[str, int]:
    """Places of each node that have a crawler, or are about to: slots that it holds, and launches on their way to it."""
    used: dict[str, int] = {}
    for view in live:
        if node := view.owner if view.token is not None else view.launching_on:
            used[node] = used.get(node, 0) + 1
    return used


def shortages(desired: Mapping[str, int], live: Iterable[SlotView], nodes: Iterable[NodeRecord], now: float) -> dict[str, str]:
    """Why services lack crawlers for want of room: service -> one sentence, for those that do."""
    slots, offers = list(live), [node for node in nodes if node.alive(now) and not node.draining]
    used = used_places(slots)
    sentences = {}
    for service, size in sorted(desired.items()):
        here = [node for node in offers if service in node.services]
        cared_for = sum(view.spider == service and view.number < size and _is_cared_for(view) for view in slots)
        missing = size - cared_for
        if missing and all(used.get(node.name, 0) >= node.capacity for node in here):
            room = sum(node.capacity for node in here)
            offer = f"the nodes that serve it offer {room}, all taken" if room else "no node serves it"
            sentences[service] = f"{size} wanted, no room for {missing}: {offer}"
    return sentences


def _is_cared_for(view: SlotView) -> bool:
    """Whether its lack of a crawler, if it lacks one, has another reason than room."""
    return bool(view.token is not None or view.launching_on or (view.record and view.record.state.given_up))
