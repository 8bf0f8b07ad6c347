"""Client side of the frontier in one crawler process.

Nothing here waits and nothing here imports Scrapy. `Scheduler`, `RedisPipeline`, `RedisSpider` and `RedisStatsCollector` put
entries into the outbox and take leases from the stock; `pump` makes the exchanges and applies their answers, `demand`
decides when and how much, `session` applies each exchange once, `outbox` keeps writes that a failover may lose and decides when
the process may end, `stock` keeps the rate of a site. All methods are called in one thread, that of the `Clock`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from redis_components.errors import Unserializable
from redis_components.politeness.limits import KnownLimits

from .config import FrontierConfig, Listeners
from .holds import Holds
from .messages import DeadLetter, KeyedItem, LaneRequeue, Lease, NewRequest, NextTask, SiteBackoff, as_unicode
from .outbox import Kind
from .pump import Pump
from .transport import Clock, Exchanger

__all__ = ["Frontier", "FrontierConfig", "Listeners"]


def exact_score(score: float) -> str:
    """Return a user's own score as text. Raises Unserializable for one that Redis would refuse in the middle of an exchange."""
    number = float(score)
    if not math.isfinite(number):
        raise Unserializable(f"score: Redis cannot sort by {number}; return a finite number")
    return repr(number)


def score_of(priority: int) -> str:
    """Return the score of a request: its negated priority, as text.

    Raises Unserializable for a number that Redis would refuse in the middle of an exchange, where nothing is rolled back.
    """
    if not priority:
        return "0"
    try:
        score = -int(priority)
        float(score)
    except (ValueError, OverflowError):  # not a number, or beyond what a double holds
        raise Unserializable("priority: it is beyond what Redis can sort by; use an integer that a double holds") from None
    return str(score)


class Frontier(Pump):
    """One crawler process's end of the exchange. See the module's docstring."""

    def __init__(self, config: FrontierConfig, exchanger: Exchanger, clock: Clock) -> None:
        super().__init__(config, exchanger, clock)
        self._buffer, self._timed = self.stock.buffer, self.stock.timed

    @property
    def owner(self) -> str:
        """Name under which this process holds leases; another one after it was fenced."""
        return self.talk.owner

    # Queries of the engine

    def take(self) -> Lease | None:
        """Return the next leased request; None when there is none, or when no page should be started because the outbox is full
        while Redis is away, or is out of memory, or because too many items wait, or the crawl is paused.
        """
        gate = self.gate
        if gate.shut or len(self.outbox.entries) > gate.most:
            gate.refuse()
            return None
        if self._timed.heap and (lease := self.stock.take_timed(self.clock.now())) is not None:
            return lease
        lease = self._buffer.take()
        if lease is not None:
            pace = self.pace
            pace.taken += 1
            if not self.soon and len(self._buffer.leases) <= pace.refill_at:
                self.arm()
        elif not self.demand.starving:
            self.demand.starving = True
            self.arm()
        return lease

    def defer(self, lease: Lease, site: str) -> None:
        """Put a lease of `take` back, unstarted, until its site has a place (`SiteSlots`)."""
        self.pace.taken -= 1
        self._buffer.defer(lease, site)

    def recall(self, site: str) -> bool:
        """Let the next deferred request of `site` be taken again; False: there is none."""
        return self._buffer.recall(site)

    def deferred(self, site: str) -> int:
        """Return the number of deferred requests of `site`."""
        return len(self._buffer.aside.get(site, ()))

    def take_all(self) -> list[Lease]:
        """Return all leased requests, the next one first: for a user's queue class, with the order ADVISED."""
        self.pace.taken += len(self._buffer)
        return self._buffer.drain()

    def look(self, number: int) -> None:
        """Exchange soon, and lease up to `number` in the order of READY, as the user's queue has none."""
        self.demand.advised, self.demand.starving = number, True
        self.arm()

    @property
    def pausing(self) -> bool:
        """True while no page should be started; see `take`."""
        return self.gate.refuses

    @property
    def holds(self) -> Holds:
        """The holds, as this process knows them."""
        return self.stock.restraint.holds

    @property
    def limits(self) -> KnownLimits:
        """The lanes that have limits, as this process knows them."""
        return self.stock.limits

    @property
    def ready(self) -> int:
        """Requests READY in Redis at the last answer."""
        last = self.demand.last
        return last.ready if last else 0

    @property
    def parked(self) -> int:
        """Requests set aside for held sites at the last answer."""
        last = self.demand.last
        return last.parked if last else 0

    def take_task(self) -> Lease | None:
        """Return the next leased start task, or None; `listeners.tasks` is then called when one arrives."""
        tasks = self.stock.tasks
        return tasks.popleft() if tasks and not self.gate.shut else None

    @property
    def has_tasks(self) -> bool:
        """True when a leased start task waits to be taken."""
        return bool(self.stock.tasks)

    def want_tasks(self, number: int) -> None:
        """Ask for up to `number` start tasks; each answer cancels the wish."""
        self.demand.asked_tasks = number
        self.arm()

    @property
    def task_idle_since(self) -> float | None:
        """Time (s of `now`) since when each answer of Redis has confirmed it; None while it is not so."""
        return self._task_idle_since if self.task_idle else None

    @property
    def waiting_to_start(self) -> int:
        """Requests not started by any process: READY in Redis at the last answer, and in our buffer."""
        return len(self._buffer) + self._buffer.deferred + len(self._timed) + self.ready

    def now(self) -> float:
        """Return the seconds of this process's clock."""
        return self.clock.now()

    # Reports of the engine

    def add_request(self, request: NewRequest) -> None:
        """Store a new request (edge a). One that comes before everything in the buffer is leased in the same exchange."""
        self.outbox.entries.append(("requests", request, len(request.payload)))
        if not self.soon:
            self.arm()

    def add_task(self, task: NextTask) -> None:
        """Store a start task for the next service."""
        if self.config.next_keys is None:
            raise TypeError("this spider feeds no other service: set `feeds` on the spider class")
        site = as_unicode(task.site).replace("\0", "")
        self._add("tasks", task._replace(id=as_unicode(task.id), token=as_unicode(task.token), site=site), len(task.data))

    def add_item(self, item: bytes) -> None:
        """Store an item; it is in Redis before, or together with, the ack of its request."""
        self.outbox.entries.append(("items", item, len(item)))
        if not self.soon:
            self.arm()

    def add_keyed_item(self, item: KeyedItem) -> None:
        """Store an item in a separate list, under the same promise."""
        self._add("keyed_items", item, len(item.data))

    def ack(self, lease_id: str) -> None:
        """Ack a request that Scrapy is done with, or a start task that became requests (edge c)."""
        self.outbox.entries.append(("acks", lease_id, 0))
        if not self.soon:
            self.arm()

    def claim(self, order: str) -> None:
        """Lease the READY request with this order (hex), if it is still there; the outcome comes to `listeners.applied`."""
        self._add("claims", order)

    def release(self, lease_id: str) -> None:
        """Give a lease back, unharmed (edge d)."""
        self._add("releases", lease_id)

    def free_time(self, lease_id: str) -> None:
        """Uncount a request of a lane that is not sent, before its lease ends: another request may be sent in its place."""
        self._add("unsent", lease_id)

    def refuse(self, lease: Lease) -> None:
        """Give back, as unsent, a request of a lane whose site has no place here until `find_place`."""
        self.stock.refuse(lease, self.clock.now())
        self.arm()

    def rest(self, lane: str, seconds: float) -> None:
        """Lease nothing of `lane` for this time, in which this process sends nothing to its site; inf: until `find_place`."""
        self.stock.rest(lane, self.clock.now(), seconds)
        self.arm()

    def find_place(self) -> None:
        """Lease from all sites again, as one of them has a place."""
        self.stock.full.clear()

    def park(self, lease_id: str, names: Iterator[str], *, task: bool = False) -> bool:
        """Set a lease aside if its site is held, until it is not; whether it is. Only where `holds.sites` has any."""
        parks = self.stock.park(lease_id, names, task=task)
        if parks and not self.soon:
            self.arm()
        return parks

    def shelve(self, lease_id: str, lane: str) -> None:
        """Give back a request leased from READY (edge d): its lane has limits, and it waits there for its turn."""
        self._add("shelves", LaneRequeue(lease_id, lane))

    def wait(self, lane: str, seconds: float = 0.0, *, rate: float = 0.0, single: bool = False) -> None:
        """Let all crawlers leave the site of `lane` alone for this time, as it asked; 0: it gave no time. `rate`: requests per
        second that this process sent to it; with it they also send less afterwards, after a `single` refusal only where more was
        tried than the site is known to take.
        """
        self.stock.keep_off(lane)
        self.listeners.limits()
        self.urgent = True
        self.outbox.entries.append(("waits", SiteBackoff(as_unicode(lane), math.ceil(seconds * 1000), rate, single), 0))
        self.arm()

    def slow_down(self, lane: str, rate: float) -> None:
        """Let all crawlers send less for a while, as the site of `lane` answers worse than before."""
        self._add("waits", SiteBackoff(as_unicode(lane), -1, max(rate, 0.001)))

    def bury(self, lease_id: str, reason: str, *, again: bool = False) -> None:
        """Give a request or start task up and keep it with the reason (edge f); with `again` count an attempt, and give it back
        while it has some left (edge e).
        """
        self._add("burials", DeadLetter(lease_id, as_unicode(reason), again))

    def _add(self, kind: Kind, entry: Any, size: int = 0) -> None:
        """Add an entry; calls for each page do the same inline."""
        self.outbox.entries.append((kind, entry, size))
        if not self.soon:
            self.arm()
