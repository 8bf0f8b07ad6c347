"""Plans the actions that bring the fleet from its actual to its desired state. Pure, so that every situation can be tested.

`tasks.reconcile_fleet` applies the actions. Doing so twice, from two beats at once, has the effect of doing it once: launches are
marked, orders are for one token, forgetting is forgetting.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from redis_components.frontier.holds import Hold
from workers.state.nodes import SILENT_AFTER_S, NodeRecord, used_places
from workers.state.registry import CrawlerRecord, SlotView

# A slot that was given up is tried again after this: the missing part (a database, a proxy) may be back.
GIVEN_UP_RETRY_S = 60.0
# How long the record of an ended, undesired crawler stays visible, and that of a node that is gone.
FORGET_AFTER_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Launch:
    """Send `run_crawler(spider, number)` to a node: the slot is desired and free, and there is room."""

    spider: str
    number: int
    node: str
    instead_of: str | None = None  # the node that the last launch was sent to and that will not take it


@dataclass(frozen=True, kw_only=True)
class Retire:
    """Order the slot's holder to stop gracefully: it is not desired, or not there."""

    slot: SlotView
    reason: str
    at_once: bool = False  # pages in flight are not finished


@dataclass(frozen=True, kw_only=True)
class Forget:
    """Drop the record of a crawler that is gone and not desired."""

    name: str


@dataclass(frozen=True, kw_only=True)
class ForgetNode:
    """Drop the record of a node that is gone."""

    name: str


Action = Launch | Retire | Forget | ForgetNode


def plan(
    desired: Mapping[str, int],
    live: Iterable[SlotView],
    nodes: Iterable[NodeRecord],
    now: float,
    strangers: Iterable[CrawlerRecord] = (),
    stopped: Mapping[tuple[str, int], Hold] | None = None,
    ranks: Mapping[str, int] | None = None,
) -> list[Action]:
    """Return the actions that bring the fleet to its desired size.

    `live` has every slot that is desired, held, or has a record (`Registry.slots`), `nodes` every node with a record
    (`Nodes.all`), `strangers` the records of crawlers without a slot (started by hand), `now` Redis's time. Launches come by the
    services' `ranks`, the highest first, then lowest numbers first over all services, so that each service gets a crawler before
    one takes all of a small fleet's room; each goes to the node with the largest share of free places among those that serve it.
    Slots without room are left alone. Slots that are `stopped` (`workers.fleet.holds.stopped_slots`) stay empty, or become so,
    although they are desired.
    """
    stops = stopped or {}
    slots, known = {(view.spider, view.number): view for view in live}, list(nodes)
    held = [view for place, view in slots.items() if place in stops]
    surplus = [view for place, view in slots.items() if view.number >= desired.get(view.spider, 0) and place not in stops]
    drained = {node.name for node in known if node.draining}
    leaving = [view for view in slots.values() if view not in surplus and view not in held and view.owner in drained]
    return [
        *(
            Retire(slot=view, reason=str(stop), at_once=stop.at_once)
            for view in held
            if view.token is not None and (stop := stops[view.spider, view.number])
        ),
        *(Retire(slot=view, reason=_reason(desired, view)) for view in surplus if view.token is not None),
        *(Retire(slot=view, reason=f"{view.owner} is being drained") for view in leaving if view.token is not None),
        *_launches(desired, slots, known, now, stops, ranks or {}),
        *(Forget(name=r.name) for r in _records([*surplus, *held], strangers) if now - r.beat_at > FORGET_AFTER_S),
        *(ForgetNode(name=node.name) for node in known if now - node.beat_at > FORGET_AFTER_S),
    ]


def _launches(
    desired: Mapping[str, int],
    slots: Mapping[tuple[str, int], SlotView],
    nodes: list[NodeRecord],
    now: float,
    stopped: Container[tuple[str, int]],
    ranks: Mapping[str, int],
) -> list[Launch]:
    open_nodes = {node.name: node for node in nodes if node.is_open(now)}
    # A launch on its way to a node that will not take it takes no place anywhere.
    used = used_places(view for view in slots.values() if view.token is not None or view.launching_on in open_nodes)
    launches = []
    for _, spider, number in _turns(desired, ranks):
        view = slots.get((spider, number)) or SlotView(spider=spider, number=number)
        if view.token is not None or view.launching_on in open_nodes or (spider, number) in stopped:
            continue
        places = [node for node in open_nodes.values() if _may_take(node, view, now) and used.get(node.name, 0) < node.capacity]
        if not places:
            continue
        left = _left_lately(view, now)
        chosen = min(places, key=lambda node: (node.name == left, used.get(node.name, 0) / node.capacity, node.name))
        used[chosen.name] = used.get(chosen.name, 0) + 1
        launches.append(Launch(spider=spider, number=number, node=chosen.name, instead_of=view.launching_on))
    return launches


def without_room(
    desired: Mapping[str, int],
    live: Iterable[SlotView],
    actions: Iterable[Action],
    stopped: Container[tuple[str, int]],
    ranks: Mapping[str, int],
) -> list[tuple[int, str, int]]:
    """Return the desired slots that are empty and that these actions of `plan` do not fill, in the order of their launches, each
    with its service's rank.
    """
    filled = {(view.spider, view.number) for view in live if view.token is not None or view.launching_on}
    filled |= {(action.spider, action.number) for action in actions if isinstance(action, Launch)}
    return [one for one in _turns(desired, ranks) if one[1:] not in filled and one[1:] not in stopped]


def _turns(desired: Mapping[str, int], ranks: Mapping[str, int]) -> list[tuple[int, str, int]]:
    """Return the desired slots, with the ranks of their services, in the order in which they get places."""
    slots = [(ranks.get(spider, 0), spider, number) for spider, n in desired.items() for number in range(n)]
    return sorted(slots, key=lambda one: (-one[0], one[2], one[1]))


def _may_take(node: NodeRecord, view: SlotView, now: float) -> bool:
    """Return True if this slot may be launched on this node, if that has room."""
    if view.spider not in node.services:
        return False
    record = view.record
    return record is None or not record.state.given_up or now - record.beat_at >= GIVEN_UP_RETRY_S


def _left_lately(view: SlotView, now: float) -> str | None:
    """Return the node that lost this crawler a moment ago: it may be dead, or busy with it, which its last heartbeat cannot show
    yet. Also the one that gave it up: another may have what is missing there.
    """
    record = view.record
    return record.node if record and (record.state.given_up or now - record.beat_at < SILENT_AFTER_S) else None


def _reason(desired: Mapping[str, int], view: SlotView) -> str:
    n = desired.get(view.spider, 0)
    return f"scaled to {view.spider}={n}" if view.spider in desired else f"{view.spider} is not a service of this fleet"


def _records(surplus: Iterable[SlotView], strangers: Iterable[CrawlerRecord]) -> list[CrawlerRecord]:
    return [*(view.record for view in surplus if view.token is None and view.record), *strangers]
