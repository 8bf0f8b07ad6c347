"""Tasks that keep the fleet at its size."""

from __future__ import annotations

from typing import Any

from redis_components.autoscaling import Autoscaling
from redis_components.connection import connect
from redis_components.fleet_holds import FleetHolds
from redis_components.nodes import Nodes
from redis_components.registry import Order, OrderWord, Registry, slot_name
from redis_components.rolls import RollNote
from workers.fleet import desired_fleet, scale
from workers.holding import stopped_slots
from workers.node import NODE
from workers.reconciler import Action, Forget, ForgetNode, Launch, Retire, plan
from workers.roll import go_on, start_roll
from workers.self_sizing import resize

from .app import app
from .flower import CrawlingEvents
from .routing import drop_inbox, node_queue

LAUNCH_EXPIRES_S = 10.0  # a launch that no node has taken by then is sent again


@app.task(bind=True, name="trawl.run_crawler", ignore_result=False)
def run_crawler(self: Any, spider: str, number: int) -> str:
    """Keep a crawler process in the slot `spider`/`number` of the fleet, for as long as this node lives and the slot is wanted.

    Returns why it ended: `held` (another process has the slot), `full` (no room on this node), or a verdict of
    `workers.supervisor`. Sent twice, the second one returns `held`. Fails with `GivenUp` when the slot is left alone as
    crash-looping or refused: Flower shows the task as failed, with the reason.
    """
    events = CrawlingEvents(self)
    try:
        return NODE.host(spider, number, name=self.request.hostname, on_record=events.crawling)
    finally:
        events.stopped()


@app.task(name="trawl.reconcile_fleet")
def reconcile_fleet() -> list[str]:
    """Launch what is missing and retire what is too much; returns what was done. Any number of them at once does no harm."""
    client = connect()
    registry, nodes = Registry(client), Nodes(client)
    desired, crawlers = desired_fleet(registry), registry.crawlers()
    known, now = nodes.all(), registry.now()
    views, strangers = registry.slots(desired, crawlers), [r for r in crawlers if r.number is None]
    held = FleetHolds(client)
    if resized := resize(client, desired, views, known, now):
        desired |= resized
        views = registry.slots(desired, crawlers)
    stopped = stopped_slots(held.fields(), desired)
    actions = plan(desired, views, known, now, strangers, stopped)
    done = [f"hold {service}" for service in held.spread(desired)]
    done += [f"resize {service}={size}" for service, size in resized.items()]
    done += [said for action in actions if (said := _apply(action, registry, nodes))]
    leaving = [action.slot for action in actions if isinstance(action, Retire)]
    if roll := go_on(registry, RollNote(client), desired, views, leaving, stopped):
        done.append(f"roll {roll.state}: {roll.reason or 'goes on'}")
    return done


def _apply(action: Action, registry: Registry, nodes: Nodes) -> str | None:
    """What was done; None where another beat was quicker."""
    match action:
        case Launch(spider=spider, number=number, node=node, instead_of=instead_of):
            if not registry.mark_launch(spider, number, node, not_on=instead_of):
                return None
            run_crawler.apply_async((spider, number), queue=node_queue(node), expires=LAUNCH_EXPIRES_S)
            return f"launch {slot_name(spider, number)} on {node}"
        case Retire(slot=slot, reason=reason, at_once=at_once):
            registry.order(slot, Order(word=OrderWord.STOP if at_once else OrderWord.RETIRE, reason=reason))
            return f"retire {slot.name}"
        case Forget(name=name):
            registry.forget([name])
            return f"forget {name}"
        case ForgetNode(name=name):
            nodes.forget([name])
            drop_inbox(app, name)
            return f"forget node {name}"


@app.task(name="trawl.roll_fleet", ignore_result=False)
def roll_fleet(*services: str) -> str:
    """Begin to replace the crawlers of these services (of all without names) by fresh processes, one after the other.

    Returns the roll's id; `reconcile_fleet` goes on with it. Raises ConfigError for an unknown service, FleetBusy while another
    roll is under way.
    """
    client = connect()
    return start_roll(Registry(client), RollNote(client), services).id


@app.task(name="trawl.scale_fleet", ignore_result=False)
def scale_fleet(**sizes: int) -> dict[str, int]:
    """`scale_fleet.delay(forum_detail=4)`: set how many crawlers a service has; returns the desired size of each service.

    Raises ConfigError for an unknown service or a number that cannot be; nothing is changed then.
    """
    client = connect()
    desired = scale(Registry(client), Autoscaling(client), sizes)
    reconcile_fleet.delay()
    return desired
