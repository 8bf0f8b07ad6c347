"""The ways to die, and how each is brought about in a fleet."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum

from tests.support.mortal_fleet import SPIDER, MortalFleet
from tests.support.mortal_spider import Fate
from tests.support.processes import wait_until
from tests.support.watched_fleet import send_all
from workers.state.registry import CrawlerRecord, CrawlerState

CRAWLER_S, WORKER_S = 10.0, 30.0  # aims: whole again after a crawler's death, after a worker's
DELETIONS = 15


class Death(Enum):
    """A way to die: its name, what is done, within how many seconds the fleet has to be whole again."""

    CRAWLER_KILLED = ("SIGKILL crawler", "A crawler process is killed.", CRAWLER_S)
    POOL_CHILD_KILLED = ("SIGKILL pool child", "The pool process of a worker that supervises a crawler is killed.", CRAWLER_S)
    WORKER_KILLED = ("SIGKILL worker", "The main process of a worker is killed; the other node takes over.", WORKER_S)
    WORKER_TERMINATED = ("SIGTERM worker", "A worker is shut down warm; the other node takes over.", WORKER_S)
    WORKER_QUIT = ("SIGQUIT worker", "A worker is shut down soft; the other node takes over.", WORKER_S)
    NODE_KILLED = ("node killed", "A worker, its pool and its crawlers are all killed at once.", WORKER_S)
    NODE_FROZEN = (
        "node frozen and back",
        "A worker, its pool and its crawlers stand still (SIGSTOP) until the other node has taken over, then go on.",
        WORKER_S,
    )
    CRAWLER_FROZEN = ("SIGSTOP crawler", "A crawler stands still.", CRAWLER_S)
    FROZEN_ORPHAN = (
        "SIGSTOP crawler, its pool child killed",
        "A crawler stands still, and so does not hear that the pool process that supervises it is killed; it may not stay.",
        WORKER_S,
    )
    REACTOR_HUNG = ("hung reactor", "A callback never returns (time.sleep).", CRAWLER_S)
    INTERPRETER_HELD = ("interpreter held", "A callback calls C code that holds the interpreter and never returns.", CRAWLER_S)
    MEMORY_GROWN = ("memory over its soft limit", "A crawler grows by 8 MB with each page.", CRAWLER_S)
    MEMORY_GONE = ("memory over its hard limit", "A callback takes memory without end.", CRAWLER_S)
    EXIT_AT_START = (
        "exit 1 at start",
        "A crawler is killed and its successors end with 1 at once; when the slot is given up, it is mended and resumed.",
        CRAWLER_S,
    )
    SLOT_KEY_DELETED = (
        "slot key deleted",
        "The key that holds a crawler's slot is deleted in Redis, again and again.",
        CRAWLER_S,
    )
    BEAT_KILLED = (
        "beat killed",
        "Of two beats the one that leads is killed; at the same time a pool child, which only a beat replaces.",
        WORKER_S,
    )
    BEAT_LOCK_DELETED = (
        "beat's lock deleted",
        "The key by which a beat leads is deleted in Redis, again and again; then a pool child is killed.",
        WORKER_S,
    )
    BROKER_AWAY = ("Redis away", "Redis is killed and comes back with its AOF; measured from its return.", WORKER_S)

    def __init__(self, label: str, what: str, limit_s: float) -> None:
        self.label = label
        self.what = what
        self.limit_s = limit_s


@dataclass(kw_only=True)
class Blow:
    """What was done, and how to see that it was noticed."""

    at: float  # epoch s; the clock starts here
    noticed: Callable[[], bool] | None
    gone: list[int]  # pids of crawlers that must not be counted as back
    before: float | None = None  # seconds until it was noticed, where that came before `at`
    after: Callable[[], None] = lambda: None  # once the fleet is whole


def strike(death: Death, fleet: MortalFleet, away_s: float) -> Blow:
    """Do it to a fleet that is whole; `away_s` is for Redis."""
    return _ACTS[death](fleet, away_s)


# what is noticed


def _changed(fleet: MortalFleet, records: Iterable[CrawlerRecord]) -> Callable[[], bool]:
    """Whether the fleet's memory tells of one of these crawlers that it is not simply running any more."""
    known = {record.name: record for record in records}

    def look() -> bool:
        now = {record.name: record for record in fleet.registry.crawlers()}
        views = {f"{view.spider}/{view.number}": view for view in fleet.registry.slots({}, now.values())}
        return any(
            now[name].state is not CrawlerState.RUNNING or now[name].pid != record.pid or views[name].token != record.token
            for name, record in known.items()
        )

    return look


# what is done


def _crawler(number: signal.Signals) -> Callable[[MortalFleet, float], Blow]:
    def act(fleet: MortalFleet, _: float) -> Blow:
        victim = fleet.crawler(fleet.slots[0])
        os.kill(victim.pid, number)
        return Blow(at=time.time(), noticed=_changed(fleet, [victim]), gone=[victim.pid])

    return act


def _pool_child_killed(fleet: MortalFleet, _: float) -> Blow:
    victim = fleet.crawler(fleet.slots[0])
    os.kill(fleet.occupants()[victim.pid].supervisor, signal.SIGKILL)
    return Blow(at=time.time(), noticed=_changed(fleet, [victim]), gone=[victim.pid])


def _frozen_orphan(fleet: MortalFleet, _: float) -> Blow:
    victim = fleet.crawler(fleet.slots[0])
    supervisor = fleet.occupants()[victim.pid].supervisor
    os.kill(victim.pid, signal.SIGSTOP)
    os.kill(supervisor, signal.SIGKILL)
    return Blow(at=time.time(), noticed=_changed(fleet, [victim]), gone=[victim.pid])


def _worker(number: signal.Signals) -> Callable[[MortalFleet, float], Blow]:
    def act(fleet: MortalFleet, _: float) -> Blow:
        node = fleet.busiest_node()
        victims = fleet.hosted(node)
        main = fleet.nodes[node]
        main.process.send_signal(number)
        at = time.time()

        def after() -> None:
            code = main.wait(60)
            assert number != signal.SIGTERM or code == 0, f"exit code {code}\n{main.said()}"
            fleet.start_node(node)

        return Blow(at=at, noticed=_changed(fleet, victims), gone=[one.pid for one in victims], after=after)

    return act


def _node_killed(fleet: MortalFleet, _: float) -> Blow:
    node = fleet.busiest_node()
    victims = fleet.hosted(node)
    send_all(fleet.members(node), signal.SIGKILL)

    def after() -> None:
        fleet.start_node(node)

    return Blow(at=time.time(), noticed=_changed(fleet, victims), gone=[one.pid for one in victims], after=after)


def _node_frozen(fleet: MortalFleet, _: float) -> Blow:
    node = fleet.busiest_node()
    victims, members = fleet.hosted(node), fleet.members(node)
    send_all(members, signal.SIGSTOP)

    def after() -> None:
        send_all(members, signal.SIGCONT)
        left = {one.pid for one in victims}
        wait_until(lambda: not left & fleet.occupants().keys(), lambda: f"the frozen crawlers go\n{fleet.said()}", 60)
        fleet.wait_crawling(since=time.time(), but_not=left)

    return Blow(at=time.time(), noticed=_changed(fleet, victims), gone=[one.pid for one in victims], after=after)


def _fate(fate: Fate) -> Callable[[MortalFleet, float], Blow]:
    def act(fleet: MortalFleet, _: float) -> Blow:
        records = {record.pid: record for record in fleet.crawlers().values()}
        pid, at = fleet.victim_of(fate)
        return Blow(at=at, noticed=_changed(fleet, [records[pid]]), gone=[pid])

    return act


def _exit_at_start(fleet: MortalFleet, _: float) -> Blow:
    victim = fleet.crawler(fleet.slots[0])
    fleet.break_configuration()
    os.kill(victim.pid, signal.SIGKILL)
    begun = time.time()

    def given_up() -> bool:
        return any(one.name == victim.name and one.state is CrawlerState.CRASH_LOOPING for one in fleet.registry.crawlers())

    wait_until(given_up, lambda: f"the slot is given up\n{fleet.said()}", 90)
    noticed_s = time.time() - begun
    fleet.mend_configuration()
    return Blow(at=time.time(), noticed=None, before=noticed_s, gone=[victim.pid])


def _deleted(fleet: MortalFleet, key: str) -> tuple[float, float]:
    """Delete a key again and again, so that others may find it missing before its holder does; when it was done for the last
    time (epoch s), and how long it was missing then.
    """
    for _ in range(DELETIONS):
        fleet.client.delete(key)
        time.sleep(0.3)  # the case itself
    fleet.client.delete(key)
    at = time.time()
    wait_until(lambda: fleet.client.exists(key), fleet.said)
    return at, time.time() - at


def _slot_key_deleted(fleet: MortalFleet, _: float) -> Blow:
    at, noticed_s = _deleted(fleet, fleet.keys.slot(SPIDER, 0))
    return Blow(at=at, noticed=None, before=noticed_s, gone=[])


def _beat_killed(fleet: MortalFleet, _: float) -> Blow:
    beat, key = fleet.leader(), fleet.keys.beat_leader()
    led = fleet.client.get(key)
    fleet.beats.remove(beat)
    beat.process.kill()
    beat.process.wait()
    blow = _pool_child_killed(fleet, 0)
    return replace(blow, noticed=lambda: fleet.client.get(key) not in (None, led), after=fleet.start_beat)


def _beat_lock_deleted(fleet: MortalFleet, _: float) -> Blow:
    fleet.leader()
    _, noticed_s = _deleted(fleet, fleet.keys.beat_leader())
    return replace(_pool_child_killed(fleet, 0), before=noticed_s)


def _broker_away(fleet: MortalFleet, away_s: float) -> Blow:
    pids = {record.pid for record in fleet.crawlers().values()}
    told = {name: len(node.said()) for name, node in fleet.nodes.items()}
    fleet.redis.kill()
    begun = time.time()
    wait_until(
        lambda: all("does not answer" in node.said()[told[name] :] for name, node in fleet.nodes.items()),
        lambda: f"the nodes notice\n{fleet.said()}",
        60,
    )
    noticed_s = time.time() - begun
    time.sleep(max(0.0, away_s - noticed_s))  # the case itself
    assert pids <= fleet.watch.look().keys(), "the crawlers outlive the outage"
    fleet.redis.start()
    return Blow(at=time.time(), noticed=None, before=noticed_s, gone=[])


_ACTS: dict[Death, Callable[[MortalFleet, float], Blow]] = {
    Death.CRAWLER_KILLED: _crawler(signal.SIGKILL),
    Death.CRAWLER_FROZEN: _crawler(signal.SIGSTOP),
    Death.FROZEN_ORPHAN: _frozen_orphan,
    Death.POOL_CHILD_KILLED: _pool_child_killed,
    Death.WORKER_KILLED: _worker(signal.SIGKILL),
    Death.WORKER_TERMINATED: _worker(signal.SIGTERM),
    Death.WORKER_QUIT: _worker(signal.SIGQUIT),
    Death.NODE_KILLED: _node_killed,
    Death.NODE_FROZEN: _node_frozen,
    Death.REACTOR_HUNG: _fate(Fate.HANG),
    Death.INTERPRETER_HELD: _fate(Fate.HANG_IN_C),
    Death.MEMORY_GROWN: _fate(Fate.GROW),
    Death.MEMORY_GONE: _fate(Fate.SWELL),
    Death.EXIT_AT_START: _exit_at_start,
    Death.SLOT_KEY_DELETED: _slot_key_deleted,
    Death.BEAT_KILLED: _beat_killed,
    Death.BEAT_LOCK_DELETED: _beat_lock_deleted,
    Death.BROKER_AWAY: _broker_away,
}
