"""The requests to lease ahead, the times of exchanges, and the gate of new pages, as Redis and the outbox allow them.

Pure: no clock, no I/O; every method takes the time.
"""

from __future__ import annotations

import logging
import math
from enum import Enum

from .config import FrontierConfig
from .messages import QueueOrder, Reply
from .outbox import Batch, Outbox
from .stock import Stock

FASTEST_POLL_S = 0.01
CLOSEST_S = 0.001
"""Between any two exchanges: a process that is woken again and again for work it does not get must not spin."""


REST = 0.02
"""Share of the time without work after which to look again: work that comes is found late by 2 % of the wait for it."""

LONGEST_REST_S = 0.5
"""Most of that: an idle process polls Redis twice a second."""

LONGEST_SILENCE_S = 1.0
"""An exchange brings the operator's holds to this process, and these shall take effect within 2 s."""


class Haste(Enum):
    """The reason for the next exchange, the most urgent first."""

    NOW = "its answer is waited for"
    GATHERED = "there is something to send, or to fetch"
    POLL = "there may be something to fetch"
    BEAT = "this process is alive"


class Pace:
    """Measurements of this process and its Redis, and the pace that follows from them."""

    def __init__(self, config: FrontierConfig, now: float) -> None:
        self._config = config
        self.taken = 0
        """Requests started since the last measurement; counted by the frontier."""
        self.refill_at = 0
        """Buffered requests at which more are leased."""
        self.last = -math.inf
        """Time of the last exchange."""
        self._measured = now
        self._rate = 0.0
        self._round_trip_s = 0.005
        self._poll_s = FASTEST_POLL_S
        self._got_at = now
        self._aim()

    def begin(self, now: float) -> None:
        """Note the beginning of an exchange."""
        self.last = now
        elapsed_s = now - self._measured
        if elapsed_s >= 0.1:
            self._rate += 0.3 * (self.taken / elapsed_s - self._rate)
            self.taken, self._measured = 0, now
            self._aim()

    def answered(self, now: float, *, got: bool, lanes: bool = False) -> None:
        """Note that it was answered at its first try; `got`: it brought leases; `lanes`: requests wait for their turns."""
        self._round_trip_s += 0.2 * (now - self.last - self._round_trip_s)
        if got:
            self._poll_s, self._got_at = FASTEST_POLL_S, now
        else:
            rest_s = 0.0 if lanes else min(LONGEST_REST_S, REST * (now - self._got_at))
            slowest_s = max(self._config.slowest_poll_s, rest_s)
            self._poll_s = min(slowest_s, self._poll_s * 1.5)
        self._aim()

    def _aim(self) -> None:
        """Hold the requests of a few round trips, and refill at half of them."""
        config = self._config
        horizon_s = 3 * (self._round_trip_s + config.interval_s)
        self._target = min(config.max_prefetch, max(config.concurrency, math.ceil(self._rate * horizon_s)))
        self.refill_at = self._target // 2

    def want(self, held: int, overtaking: int) -> int:
        """Return the requests to lease when `held` are buffered and `overtaking` new ones come before all of them: these are
        leased at once, held or not, but not so many that the buffer would grow with each exchange.
        """
        refill = self._target - held if held <= self.refill_at else 0
        if not overtaking:
            return refill
        most = min(self._config.max_prefetch, self._target + self._config.concurrency)
        return max(refill, min(overtaking, self._config.concurrency, most - held))

    def due(self, haste: Haste) -> float:
        """Return the time of the next exchange."""
        match haste:
            case Haste.NOW:
                wait_s = CLOSEST_S
            case Haste.GATHERED:
                wait_s = self._config.interval_s
            case Haste.POLL:
                wait_s = self._poll_s
            case Haste.BEAT:
                wait_s = min(LONGEST_SILENCE_S, self._config.beat_s)
        return self.last + wait_s


logger = logging.getLogger(__name__)


class Gate:
    """No page is started while Redis is out of memory, too many items wait, or the crawl is paused (`shut`), nor while the
    outbox is too full (`overflows`).
    """

    def __init__(self, config: FrontierConfig, outbox: Outbox) -> None:
        self.shut = False
        self.full = False
        """Redis is out of memory."""
        self.backed_up = False
        """Too many items wait, or were refused."""
        self._config = config
        self._outbox = outbox
        self.most = config.max_outbox
        """Entries that the outbox may hold; open to the frontier, which compares for each page."""
        self._refused = False

    def bound(self, most: int) -> int:
        """Return the bound of items for a message: lower while it is exceeded, so that a slow consumer does not make the crawl
        stop and go with each item.
        """
        return max(1, most * 9 // 10) if self.backed_up and most else most

    @property
    def overflows(self) -> bool:
        """The outbox has more entries than allowed."""
        return len(self._outbox.entries) > self.most

    @property
    def refuses(self) -> bool:
        """No page may be started. A caller that was refused is called again by `opened`."""
        if self.shut or self.overflows:
            self.refuse()
        return self._refused

    def refuse(self) -> None:
        """Note that a caller was refused."""
        self._refused = True

    def opened(self) -> bool:
        """Return True if pages may be started again after a refusal; once for each time."""
        if not self._refused or self.shut or self.overflows:
            return False
        self._refused = False
        return True

    def answered(self, reply: Reply, *, paused: bool) -> None:
        """Take the answer of an exchange into account; `paused`: the crawl is."""
        self._notice_memory(full=reply.full)
        self._notice_items(reply)
        self.shut = reply.full or reply.backed_up or paused

    def _notice_memory(self, *, full: bool) -> None:
        was_full, self.full = self.full, full
        if full and not was_full:
            logger.warning(
                "Redis is out of memory (maxmemory): no page is started, what runs is stored; raise maxmemory or make room"
            )
        elif was_full and not full:
            logger.warning("Redis has memory again; the crawl goes on")

    def _notice_items(self, reply: Reply) -> None:
        config, backed_up = self._config, reply.backed_up
        was_backed_up, self.backed_up = self.backed_up, backed_up
        if config.max_items:  # entries of the outbox count, too: pages may make items faster than they are sent to Redis
            self.most = min(config.max_outbox, max(config.concurrency, config.max_items - reply.items))
        keys = config.keys
        if backed_up and not was_backed_up:
            logger.warning(
                "too many items wait in %s or were refused (%s): no page is started until they are consumed, replayed or purged;"
                " the bounds are REDIS_ITEMS_MAX_WAITING = %d and REDIS_ITEMS_MAX_MB = %d",
                keys.item_stream(),
                keys.bad_items(),
                config.max_items,
                config.max_item_mb,
            )
        elif was_backed_up and not backed_up:
            logger.warning("items of %s are taken again; the crawl goes on", keys.item_stream())


class Demand:
    """The demand of the next exchange, which the pump reads before each one and before it sets its timer."""

    def __init__(self, config: FrontierConfig, pace: Pace, stock: Stock, gate: Gate) -> None:
        self._config = config
        self._pace = pace
        self._buffer = stock.buffer
        self._restraint = stock.restraint
        self._timed = stock.timed
        self._gate = gate
        self._suspects: set[str] = set()
        self.leasing = False
        """The crawl has begun and does not close yet."""
        self.advised = 0
        """Requests to lease in the order of READY, as the user's queue has none."""
        self.asked_tasks = 0
        """Start tasks to lease for the spider."""
        self.starving = True
        """The engine found nothing to start."""
        self.last: Reply | None = None
        """The last answer of Redis to this owner."""

    def requests(self, overtaking: int = 0) -> int:
        """Return the number of requests to lease now, of which `overtaking` new ones come before all that wait here."""
        if not self.leasing or self._restraint.paused:
            return 0
        if self._config.order is QueueOrder.ADVISED:
            return self.advised
        if self._buffer.deferred >= self._config.max_prefetch:
            return 0  # the READY requests are of sites that have no place
        held = len(self._buffer)
        return self._restraint.want(self._pace.want(held, overtaking), held, self._config.max_prefetch)

    def paced(self, places: float) -> int:
        """Return the number of requests to lease now from lanes, to be sent soon in `places`."""
        last = self.last
        if not self.leasing or self._restraint.paused or self._config.order is QueueOrder.ADVISED or not (last and last.lanes):
            return 0
        return max(0, int(min(self._config.concurrency, places)) - len(self._timed))

    def overtaking(self, batch: Batch) -> int:
        """Return the number of new requests that come before everything in the buffer: they are leased in the exchange that
        stores them. Only priorities overtake: were later requests to do so in the LIFO order too, no other process would get a
        page's children.
        """
        if self._config.order is not QueueOrder.PRIORITY or not self._buffer:
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
        return self._restraint.want_tasks(self.asked_tasks)

    def is_trying(self, batch: Batch) -> bool:
        """Return True if, after `batch`, a request that was at work in several deaths is still here."""
        if self._suspects:
            ended = (
                *batch.acks,
                *batch.releases,
                *(burial.id for burial in batch.burials),
                *(park.id for park in batch.parks),
            )
            self._suspects.difference_update(ended)
        return bool(self._suspects)

    def answered(self, reply: Reply, *, arrived: bool) -> None:
        """Take the answer of an exchange into account; `arrived`: it brought requests that may be started."""
        self.last = reply
        self.advised = 0
        if reply.held is not None:  # withheld requests may be leased now
            self.starving = True
        if arrived:
            self.starving = False
        if reply.leases:
            suspect_from = self._config.suspect_from
            for lease in reply.leases:
                if lease.attempts >= suspect_from:
                    self._suspects.add(lease.id)
        if reply.tasks:
            self.asked_tasks = 0

    def start_over(self) -> None:
        """Forget all leases."""
        self._suspects.clear()
        self.last = None
        self.starving = True

    def _ready_for_us(self) -> int:
        """Return the number of READY requests at the last answer, without the withheld ones. When only withheld ones were found
        there may be others behind them, but asking again at once would not bring these either.
        """
        last = self.last
        if last is None or self._buffer.deferred >= self._config.max_prefetch or (last.withheld and not last.leases):
            return 0
        return last.ready - last.withheld

    def haste(self, outbox: Outbox, *, urgent: bool) -> Haste:
        """Return the reason for the next exchange; `urgent`: its answer is waited for."""
        if urgent:
            return Haste.NOW
        if self._gate.full or self._gate.backed_up:
            return Haste.GATHERED if outbox else Haste.POLL
        if self._restraint.paused:
            return Haste.GATHERED if outbox or self._restraint.unpark else Haste.POLL
        if self.last and self.last.unsorted:
            return Haste.NOW  # a site whose tasks come last waits for nothing else
        ready = self._ready_for_us() if self.last else 1
        if self._config.order is QueueOrder.ADVISED:
            ready = min(ready, self.advised)
        looking = self.starving and self.leasing
        if looking and (outbox or ready):
            return Haste.GATHERED if self._buffer.deferred else Haste.NOW  # requests that wait for a place keep the engine busy
        if outbox or (ready and self.requests()) or self._restraint.unpark:
            return Haste.GATHERED
        return Haste.POLL if looking or self.asked_tasks or self._timed or self.requests() else Haste.BEAT
