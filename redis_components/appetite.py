"""How much a crawler process wants to lease, and how soon it has to ask. No clock, no Redis: told what was answered.

`pace` measures how many requests this process works off; what its spider asks for, what is held, and what others have taken are
weighed here.
"""

from __future__ import annotations

from .buffer import Buffer
from .exchange import Order, Reply
from .frontier_config import FrontierConfig
from .outbox import Batch, Outbox
from .pace import Haste, Pace
from .restraint import Restraint


class Appetite:
    """What `Frontier` asks before each exchange, and before it sets its timer."""

    def __init__(self, config: FrontierConfig, pace: Pace, buffer: Buffer, restraint: Restraint) -> None:
        self._config = config
        self._pace = pace
        self._buffer = buffer
        self._restraint = restraint
        self._suspects: set[str] = set()
        self.last: Reply | None = None
        """The last answer of Redis to this owner."""
        self.leasing = False
        """The crawl has begun, and does not close."""
        self.starving = True
        """The engine found nothing to start."""
        self.full = False
        """Redis is out of memory."""
        self.demand = 0
        """Requests that whoever orders them by itself asks for."""
        self.task_demand = 0
        """Start tasks that the spider asks for."""

    def requests(self, overtaking: int = 0) -> int:
        """Requests to lease now, of which `overtaking` new ones come before all that wait here."""
        if not self.leasing or self._restraint.paused:
            return 0
        if self._config.order is Order.ADVISED:
            return self.demand
        if self._buffer.deferred >= self._config.max_prefetch:
            return 0  # what is READY is of sites that have no place
        held = len(self._buffer)
        return self._restraint.want(self._pace.want(held, overtaking), held, self._config.max_prefetch)

    def overtaking(self, batch: Batch) -> int:
        """New requests that come before everything in the buffer: they are leased in the exchange that stores them. Only
        priorities overtake: were later requests to do so in the LIFO order too, no other process would get a page's children.
        """
        if self._config.order is not Order.PRIORITY or not self._buffer:
            return 0
        best = self._buffer.best
        return sum(float(request.score) < best for request in batch.requests)

    def tasks(self) -> int:
        """Start tasks to lease now: only while the requests that wait already cannot keep the engine busy."""
        if (
            not self.leasing
            or not self._restraint.feeding
            or len(self._buffer) + self._ready_for_us() >= self._config.concurrency
        ):
            return 0
        return self._restraint.want_tasks(self.task_demand)

    def is_trying(self, batch: Batch) -> bool:
        """Whether, after `batch`, a request that was at work in several deaths is still here."""
        if self._suspects:
            ended = (*batch.acks, *batch.releases, *(burial.id for burial in batch.burials), *(park.id for park in batch.parks))
            self._suspects.difference_update(ended)
        return bool(self._suspects)

    def answered(self, reply: Reply, *, arrived: bool) -> None:
        """An exchange was applied; `arrived`: it brought requests that may be started."""
        self.last = reply
        self.demand = 0
        if arrived:
            self.starving = False
        if reply.leases:
            suspect_from = self._config.suspect_from
            self._suspects.update(lease.id for lease in reply.leases if lease.attempts >= suspect_from)
        if reply.tasks:
            self.task_demand = 0

    def start_over(self) -> None:
        """Nothing is leased to us any more."""
        self._suspects.clear()
        self.last = None
        self.starving = True

    def _ready_for_us(self) -> int:
        """Requests READY at the last answer, without those that were withheld from this process. When nothing but such was found
        there may be others behind them, but asking again at once would not bring these either.
        """
        last = self.last
        if last is None or self._buffer.deferred >= self._config.max_prefetch or (last.withheld and not last.leases):
            return 0
        return last.ready - last.withheld

    def haste(self, outbox: Outbox, *, urgent: bool) -> Haste:
        """Why there has to be a next exchange; `urgent`: somebody waits for its answer."""
        if urgent:
            return Haste.NOW
        if self.full:
            return Haste.GATHERED if outbox else Haste.POLL
        if self._restraint.paused:
            return Haste.GATHERED if outbox or self._restraint.unpark else Haste.POLL
        ready = self._ready_for_us() if self.last else 1
        if self._config.order is Order.ADVISED:
            ready = min(ready, self.demand)
        looking = self.starving and self.leasing
        if looking and (outbox or ready):
            return Haste.GATHERED if self._buffer.deferred else Haste.NOW  # what waits for a place keeps the engine busy
        if outbox or (ready and self.requests()) or self._restraint.unpark:
            return Haste.GATHERED
        return Haste.POLL if looking or self.task_demand or self.requests() else Haste.BEAT
