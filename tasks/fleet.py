"""Tasks that keep the fleet at its size, its consumers and its breakers, pause, stop and resume it, and install versions."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import redis

from fleet_operations.consumers.declared import ConsumerHost, without_consumer
from fleet_operations.deploy.deploy import install
from fleet_operations.deploy.environments import as_deployed
from fleet_operations.deploy.folder import keep_folder
from fleet_operations.jobs.groups import limits_of_quotas
from fleet_operations.jobs.jobs import advance, closed_slots
from fleet_operations.jobs.run_steps import advance as advance_runs
from fleet_operations.jobs.run_steps import next_member
from redis_components.connection import connect
from redis_components.errors import ConfigError, TrawlError
from redis_components.frontier.holds import Hold, HoldKind
from redis_components.server.untrusted_values import is_foreign
from workers.application import application
from workers.fleet.autoscale import resize
from workers.fleet.holds import HoldTarget, hold, resume, stopped_slots
from workers.fleet.reconcile import Action, Forget, ForgetNode, Launch, Retire, plan, without_room
from workers.fleet.roll import go_on, start_roll
from workers.fleet.sizes import desired_fleet, scale, write_file_limits
from workers.node.host import FULL, HELD, NODE, NodeHooks
from workers.state.holds import FleetHolds, Held
from workers.state.jobs import Jobs
from workers.state.nodes import Nodes
from workers.state.registry import Registry, SlotCommand, SlotCommandKind, slot_name
from workers.state.rolls import RollNote
from workers.state.services import Autoscaling

from .app import app
from .base import drop_inbox, node_queue
from .flower_crawlers import CrawlingEvents
from .jobs import send_results


@app.task(bind=True, name="trawl.consume_items")
def consume_items(self: Any) -> str:
    """Consume the items of declared services that no process consumes, for as long as this node lives and one is declared.

    Returns `held` where another process of this node does so, `full` where this node has none for it.
    """
    name = self.request.hostname
    if not NODE.consumers:
        what = "no process for the consumers of items: start this worker with a larger --concurrency, or another with -Q control"
        Registry(connect()).report_error(name, what)
        return FULL
    with NODE.room(name, "consumers").place() as place:
        if place is None:
            return HELD
        place.note(os.getpid())
        ConsumerHost(name).run(NODE.drain.is_set)
        return "ended"


T = TypeVar("T")
logger = logging.getLogger(__name__)

LAUNCH_EXPIRES_S = 10.0  # a launch that no node has taken by then is sent again


@app.task(bind=True, name="trawl.run_crawler", ignore_result=False)
def run_crawler(self: Any, spider: str, number: int) -> str:
    """Keep a crawler process in the slot `spider`/`number` of the fleet, for as long as this node lives and the slot is wanted.

    Returns why it ended: `held` (another process has the slot), `over` (the crawl), `full` (no room here), or a verdict of
    `workers.supervision.supervisor`. Sent twice, the second one returns `held`. Fails with `GivenUp` when the slot is given
    up as crash-looping or refused: Flower shows the task as failed, with the reason.
    """
    events = CrawlingEvents(self)
    try:
        name = self.request.hostname
        hooks = NodeHooks(
            declared=as_deployed,
            before_launch=keep_folder,
            following=next_member,
            on_deadly_page=application().on_deadly_page,
        )
        return NODE.host(spider, number, name=name, on_record=events.crawling, hooks=hooks)
    finally:
        events.stopped()


@app.task(name="trawl.reconcile_fleet")
def reconcile_fleet() -> list[str]:
    """Launch missing crawlers and retire surplus ones; returns the actions. Safe to run concurrently."""
    client = connect()
    registry, nodes = Registry(client), Nodes(client)
    jobs = _apart(registry, "jobs", lambda: advance(client, registry)) or []
    of_runs = _apart(registry, "runs", lambda: advance_runs(client)) or []
    desired, crawlers = desired_fleet(registry), registry.crawlers()
    known, now = nodes.all(), registry.now()
    views, strangers = registry.slots(desired, crawlers), [r for r in crawlers if r.number is None]
    held = FleetHolds(client)
    holds = held.fields()
    done: list[str] = of_runs
    apart = partial(_apart, registry)
    if resized := apart("sizing itself", lambda: resize(client, desired, views, known, now)) or {}:
        desired |= resized
        views = registry.slots(desired, crawlers)
    done += [f"limits of {lane}" for lane in _write_limits(client, registry)]
    over = Hold(word=HoldKind.STOP, at=now, by="its job", reason="the crawl is over")
    stopped = stopped_slots(holds, desired) | dict.fromkeys(closed_slots(client, views), over)
    ranks = {name: job.priority for name, job in Jobs(client).open().items()}
    actions = plan(desired, views, known, now, strangers, stopped, ranks)
    registry.store_waiting(without_room(desired, views, actions, stopped, ranks))
    for service in desired:
        done += [f"hold {one}" for one in apart(f"holds of {service}", partial(held.spread, [service], holds)) or ()]
    done += [f"resize {service}={size}" for service, size in resized.items()]
    for action in actions:
        if line := apart(str(action), partial(_apply, action, registry, nodes)):
            done.append(line)
    leaving = [action.slot for action in actions if isinstance(action, Retire)]
    if roll := apart("roll", lambda: go_on(registry, RollNote(client), desired, views, leaving, stopped)):
        done.append(f"roll {roll.state}: {roll.reason or 'goes on'}")
    if missing := apart("consumers", lambda: without_consumer(client)):
        consume_items.apply_async(expires=LAUNCH_EXPIRES_S)
        done += [f"consume {name}" for name in missing]
    send_results(client, jobs)
    return done + [f"job {job.id}: {job.sentence()}" for job in jobs if job.state.ended]


@app.task(name="trawl.probe_sites")
def probe_sites() -> dict[str, str]:
    """Try hosts and sites again whose breaker is due; returns what was done, by site. Safe to run concurrently."""
    from workers.breaker import probe_sites as probed

    return probed(connect())


@app.task(name="trawl.sample_fleet")
def sample_fleet() -> None:
    """Keep the fleet's figures of this minute, for the charts of the page. Safe to run concurrently."""
    from fleet_operations.overview import OverviewReader
    from fleet_operations.overview.samples import Samples, sample

    client = connect()
    Samples(client).add(sample(OverviewReader(client).read()))


def _write_limits(client: redis.Redis, registry: Registry) -> list[str]:
    try:
        return _apart(registry, "limits of trawl.toml", lambda: write_file_limits(client, limits_of_quotas())) or []
    except ConfigError as error:  # the limits that are in Redis stay
        registry.report_error("reconcile_fleet", str(error))
        return []


def _apart(registry: Registry, what: str, act: Callable[[], T]) -> T | None:
    """Return the result of `act`; None, and an error of the fleet, where a foreign value or a key of another type prevents it:
    the rest is done all the same.
    """
    try:
        return act()
    except redis.ResponseError as error:
        if not is_foreign(error):
            raise
        message = f"{what}: a key of Trawl's holds something else ({error}): `trawl doctor` names it"
        logger.error("%s", message)
        with suppress(redis.ResponseError):
            registry.report_error("reconcile_fleet", message)
        return None


def _apply(action: Action, registry: Registry, nodes: Nodes) -> str | None:
    """Do an action and return its description; None where another beat was quicker."""
    match action:
        case Launch(spider=spider, number=number, node=node, instead_of=instead_of):
            if not registry.mark_launch(spider, number, node, not_on=instead_of):
                return None
            run_crawler.apply_async((spider, number), queue=node_queue(node), expires=LAUNCH_EXPIRES_S)
            return f"launch {slot_name(spider, number)} on {node}"
        case Retire(slot=slot, reason=reason, at_once=at_once):
            registry.order(slot, SlotCommand(word=SlotCommandKind.STOP if at_once else SlotCommandKind.RETIRE, reason=reason))
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
    """Start to replace the crawlers of these services (without names: of all) by new processes, one after the other.

    Returns the roll's id; `reconcile_fleet` continues it. Raises ConfigError for an unknown service, FleetBusy while another
    roll is running.
    """
    client = connect()
    return start_roll(Registry(client), RollNote(client), services).id


@app.task(name="trawl.scale_fleet", ignore_result=False)
def scale_fleet(**sizes: int) -> dict[str, int]:
    """`scale_fleet.delay(forum_detail=4)`: set how many crawlers a service has; returns the desired size of each service.

    Raises ConfigError for an unknown service or an invalid number; then nothing is changed.
    """
    client = connect()
    desired = scale(Registry(client), Autoscaling(client), sizes)
    reconcile_fleet.delay()
    return desired


BY = "a task"


@app.task(name="trawl.pause_fleet", ignore_result=False)
def pause_fleet(services: list[str] | None = None, reason: str = "") -> dict[str, str]:
    """Start no request in these services (None: in all); crawlers stay, queued requests wait. Takes effect within 2 s.

    Returns everything that is held then: `{"forum_detail": "paused by a task: the database is moved"}`. Raises ConfigError for an
    unknown service; nothing is changed then.
    """
    return _as_words(hold(connect(), _target(services), HoldKind.PAUSE, reason=reason, by=BY))


@app.task(name="trawl.drain_fleet", ignore_result=False)
def drain_fleet(services: list[str] | None = None, reason: str = "") -> dict[str, str]:
    """Accept no new work for these services (None: all); queued requests are crawled to the end. Otherwise as `pause_fleet`."""
    return _as_words(hold(connect(), _target(services), HoldKind.DRAIN, reason=reason, by=BY))


@app.task(name="trawl.stop_fleet", ignore_result=False)
def stop_fleet(services: list[str] | None = None, reason: str = "") -> dict[str, str]:
    """Stop the crawlers of these services (None: of all) gracefully until `resume_fleet`. Otherwise as `pause_fleet`."""
    return _as_words(hold(connect(), _target(services), HoldKind.STOP, reason=reason, by=BY))


@app.task(name="trawl.resume_fleet", ignore_result=False)
def resume_fleet(services: list[str] | None = None) -> dict[str, str]:
    """End every pause, drain and stop of these services (None: of the fleet, its services and sites).

    Returns what is still held. Raises ConfigError for an unknown service.
    """
    return _as_words(resume(connect(), _target(services)))


@app.task(name="trawl.pause_site", ignore_result=False)
def pause_site(site: str, services: list[str] | None = None, reason: str = "") -> dict[str, str]:
    """Start no request to a site (a site file's name, or a host) in these services (None: in all). Otherwise as `pause_fleet`.

    Its queued requests are set aside and do not slow the other sites.
    """
    return _as_words(hold(connect(), _target(services, site), HoldKind.PAUSE, reason=reason, by=BY))


@app.task(name="trawl.drain_site", ignore_result=False)
def drain_site(site: str, services: list[str] | None = None, reason: str = "") -> dict[str, str]:
    """Accept no new work for a site; its queued requests are crawled to the end. Otherwise as `pause_site`."""
    return _as_words(hold(connect(), _target(services, site), HoldKind.DRAIN, reason=reason, by=BY))


@app.task(name="trawl.resume_site", ignore_result=False)
def resume_site(site: str, services: list[str] | None = None) -> dict[str, str]:
    """End every pause and drain of a site (in these services; None: in all). Returns what is still held."""
    return _as_words(resume(connect(), _target(services, site)))


def _target(services: Sequence[str] | None, site: str = "") -> HoldTarget:
    return HoldTarget(services=tuple(services or ()), site=site, whole=services is None)


def _as_words(held: Sequence[Held]) -> dict[str, str]:
    return {one.what: str(one.hold) for one in held}


@app.task(name="trawl.install_version", ignore_result=False)
def install_version(service: str, version: str) -> str:
    """Install the environment of this version here, and load the service in it as a crawler would.

    Returns the fault in one line, "" for none. It is installed only where its wheel has the digest that was deployed.
    """
    try:
        return install(connect(), service, version)
    except TrawlError as error:
        return str(error)
