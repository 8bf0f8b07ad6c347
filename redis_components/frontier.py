"""The frontier as one crawler process sees it: a local buffer of leases, an outbox, and one numbered exchange in flight.

Nothing here waits and nothing here knows Scrapy. `Scheduler`, `RedisPipeline`, `RedisSpider` and `RedisStatsCollector` put
into the outbox and take
from the buffers; this module decides when to exchange and what an answer means. All methods are called in one thread, that of
the `Clock`.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import exchange
from .errors import LayoutError, TrawlError
from .exchange import Burial, Lease, Message, NewRequest, NextTask, Order, Outbox, Reply, StatChange
from .keys import CrawlKeys
from .transport import Clock, Exchanger

logger = logging.getLogger(__name__)

FASTEST_POLL_S = 0.01
SLOWEST_RETRY_S = 2.0
CLOSEST_S = 0.001
"""Between two exchanges whatever happens: a process that is told again and again of work it does not get must not spin."""


def _unicode(text: str) -> str:
    """Pages hold lone surrogates, messages must not."""
    return text.encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True, kw_only=True)
class FrontierConfig:
    """What a frontier needs to know; the settings are named in `docs/settings.md`."""

    keys: CrawlKeys
    owner: str
    next_keys: CrawlKeys | None = None
    """Keys of the service that gets this spider's `NextTask`s; None: it feeds no other service."""
    order: Order = Order.PRIORITY
    concurrency: int = 16
    """Requests the engine works on at once; the smallest prefetch."""
    max_prefetch: int = 1000
    """Most requests leased and not yet started."""
    max_attempts: int = 5
    """Deaths of its crawler that a request survives."""
    ttl_s: float = 8.0
    """A process that was silent for so long counts as dead."""
    interval_s: float = 0.02
    """Between two exchanges of a process that has enough to do."""
    slowest_poll_s: float = 0.15
    """Between two exchanges of a process that has nothing to do."""
    batch: int = 2000
    """Most entries of each kind in one exchange; it bounds the script's time."""
    max_outbox: int = 20_000
    """Entries waiting for Redis from which on no new page is started."""
    journal_s: float = 5.0
    """Time for which answered writes are kept, to be replayed when Redis comes back with an older state."""

    @property
    def beat_s(self) -> float:
        """Longest silence of a live process."""
        return self.ttl_s / 4


@dataclass(kw_only=True, slots=True)
class Listeners:
    """What the frontier tells to whoever uses it; all called in the owning thread."""

    work: Callable[[], None] = lambda: None
    """Leases arrived, or the frontier became idle, or it takes work again after an outage."""
    tasks: Callable[[], None] = lambda: None
    """Start tasks arrived, or the frontier became idle."""
    duplicate: Callable[[bytes], None] = lambda payload: None
    """Redis knew this request already."""
    fenced: Callable[[], None] = lambda: None
    """All leases are lost; what runs may finish, but it is not ours to settle."""
    refused: Callable[[TrawlError], None] = lambda error: None
    """This process must not go on (another layout version)."""
    stats: Callable[[bool], list[StatChange]] = lambda final: []
    """Changes of the stats since the last call; all of them when it is the last exchange."""
    left: Callable[[], None] = lambda: None
    """This process has said good-bye."""


@dataclass(kw_only=True, slots=True)
class _Flight:
    """The exchange on its way."""

    keys: dict[str, str]
    args: dict[str, Any]
    batch: Outbox
    stats: list[StatChange]
    carried_all: bool
    started: float
    tries: int = 0


class Frontier:
    """One crawler process's end of the exchange. See the module's docstring."""

    def __init__(self, config: FrontierConfig, exchanger: Exchanger, clock: Clock) -> None:
        self.config = config
        self.owner = config.owner
        self.listeners = Listeners()
        self.outbox = Outbox()
        self._exchanger = exchanger
        self._clock = clock
        self._buffer: deque[Lease] = deque()
        self._tasks: deque[Lease] = deque()
        self._task_demand = 0
        self._number = 0
        self._previous = ""
        self._flight: _Flight | None = None
        self._journal: deque[tuple[float, int, Outbox]] = deque()
        self._last: Reply | None = None
        self._reclaim = ""
        self._reclaim_from = -math.inf
        self._idle = False
        self._starving = True
        self._urgent = False
        self._blocked = False
        self._down_since: float | None = None
        self._opened = False
        self._closing = False
        self._bye = False
        self._stopped = False
        self._stats_again: list[StatChange] = []
        self._flushes: list[tuple[int, Callable[[], None]]] = []
        self._cancel_timer: Callable[[], None] | None = None
        self._timer_due = math.inf
        self._last_exchange = -math.inf
        self._poll_s = FASTEST_POLL_S
        self._round_trip_s = 0.005
        self._rate = 0.0
        self._taken = 0
        self._taken_since = clock.now()
        self.exchanges = 0

    # What the engine asks

    def take(self) -> Lease | None:
        """The next leased request, or None when there is none (or when the outbox is full because Redis is away)."""
        if len(self.outbox) > self.config.max_outbox:
            self._blocked = True
            return None
        if self._buffer:
            self._taken += 1
            lease = self._buffer.popleft()
            if self._flight is None and self._want():
                self._arm()
            return lease
        if not self._starving:
            self._starving = True
            self._arm()
        return None

    def take_task(self) -> Lease | None:
        """The next leased start task, or None; then `listeners.tasks` tells when one came."""
        return self._tasks.popleft() if self._tasks else None

    def want_tasks(self, number: int) -> None:
        """Ask for up to `number` start tasks; each answer cancels the wish."""
        self._task_demand = number
        self._arm()

    @property
    def idle(self) -> bool:
        """True when Redis has proved it: everything of ours is stored, no request is ready, and no owner holds a lease."""
        return self._idle and self._down_since is None

    @property
    def task_idle(self) -> bool:
        """True when the whole crawl has nothing to do: idle, and no start task waits or is leased."""
        return self.idle and not self._tasks and self._last is not None and not (self._last.waiting or self._last.leased_tasks)

    @property
    def waiting_to_start(self) -> int:
        """Requests that nobody has started: READY in Redis at the last answer, and in our buffer."""
        return len(self._buffer) + (self._last.ready if self._last else 0)

    # What the engine tells

    def add_request(self, request: NewRequest) -> None:
        """Store a new request (edge a)."""
        self.outbox.requests.append(request)
        self._changed()

    def add_task(self, task: NextTask) -> None:
        """Store a start task for the next service."""
        if self.config.next_keys is None:
            raise TypeError("this spider feeds no other service: set `feeds` on the spider class")
        self.outbox.tasks.append(NextTask(_unicode(task.id), _unicode(task.token), task.data))
        self._changed()

    def add_item(self, item: bytes) -> None:
        """Store an item; it is in Redis before, or together with, the ack of its request."""
        self.outbox.items.append(item)
        self._changed()

    def ack(self, lease_id: str) -> None:
        """Scrapy is done with a request, or a start task became requests (edge c)."""
        self.outbox.acks.append(lease_id)
        self._changed()

    def release(self, lease_id: str) -> None:
        """Give a lease back, unharmed (edge d)."""
        self.outbox.releases.append(lease_id)
        self._changed()

    def bury(self, lease_id: str, reason: str) -> None:
        """Give a request or start task up and keep it with the reason (edge f)."""
        self.outbox.burials.append(Burial(lease_id, _unicode(reason)))
        self._changed()

    def _changed(self) -> None:
        self._idle = False
        if self._flight is None and (self._starving or self._timer_due > self._last_exchange + self.config.interval_s):
            self._arm()

    # Start and end

    def open(self) -> None:
        """Begin to lease; before that, only what others put into the outbox is exchanged."""
        self._opened = True
        self._arm()

    def close(self, done: Callable[[], None]) -> None:
        """Release what was not started, take no more leases, and call `done` when everything is stored."""
        self._closing = True
        self._release_unstarted()
        self.flush(done)

    def _release_unstarted(self) -> None:
        self.outbox.releases.extend(lease.id for lease in (*self._buffer, *self._tasks))
        self._buffer.clear()
        self._tasks.clear()

    def leave(self, done: Callable[[], None]) -> None:
        """Say good-bye: store what is left, forget this owner where it holds no lease, then call `done`."""
        self._closing = self._bye = True

        def gone() -> None:
            left = self.listeners.left
            self.stop()
            left()
            done()

        self.flush(gone)

    def flush(self, done: Callable[[], None]) -> None:
        """Call `done` when everything that is in the outbox now is stored."""
        if self._stopped:  # refused: there is nothing to wait for
            done()
            return
        self._flushes.append((self._number + 1, done))
        self._urgent = True
        self._arm()

    def stop(self) -> None:
        """Exchange no more; what was not stored is lost to this process, its leases run out. Stopping twice is allowed."""
        self._stopped = True
        if self._cancel_timer is not None:
            self._cancel_timer()
            self._cancel_timer = None
        self.listeners = Listeners()  # they lead to the crawler, which nothing else keeps alive
        self._exchanger.close()

    # When to exchange

    def _want(self) -> int:
        """Requests to lease now: refill at half of the target, which follows what is consumed during one round trip."""
        if self._closing or not self._opened:
            return 0
        horizon_s = 3 * (self._round_trip_s + self.config.interval_s)
        target = min(self.config.max_prefetch, max(self.config.concurrency, math.ceil(self._rate * horizon_s)))
        held = len(self._buffer)
        return target - held if held * 2 <= target else 0

    def _want_tasks(self) -> int:
        """Start tasks to lease now: only while the requests that wait already cannot keep the engine busy."""
        if self._closing or not self._opened or self.waiting_to_start >= self.config.concurrency:
            return 0
        return self._task_demand

    def _due(self) -> float:
        ready = self._last.ready if self._last else 1
        if self._urgent or (self._starving and self._opened and (self.outbox or ready) and not self._closing):
            return self._last_exchange + CLOSEST_S
        if self.outbox:
            return self._last_exchange + self.config.interval_s
        if self._want():
            return self._last_exchange + (self.config.interval_s if ready else self._poll_s)
        if self._task_demand:
            return self._last_exchange + self._poll_s
        return self._last_exchange + self.config.beat_s

    def _arm(self) -> None:
        if self._flight is not None or self._stopped:
            return
        now = self._clock.now()
        due = max(now, self._due())
        if self._cancel_timer is not None:
            if due >= self._timer_due:
                return
            self._cancel_timer()
        self._timer_due = due
        self._cancel_timer = self._clock.call_later(due - now, self._fire)

    # One exchange

    def _fire(self) -> None:
        self._cancel_timer = None
        self._timer_due = math.inf
        if self._flight is not None or self._stopped:
            return
        now = self._clock.now()
        self._last_exchange = now
        self._urgent = False
        self._measure_rate(now)
        # The first exchange of an owner only introduces it: were it applied, the owner reclaimed, and the message sent again,
        # nothing could tell that it had been applied.
        batch = self.outbox.take(self.config.batch) if self._previous else Outbox()
        stats, self._stats_again = self._stats_again + self._stats(), []
        self._number += 1
        blobs = batch.blobs()
        message = Message(
            owner=self.owner,
            number=str(self._number),
            previous=self._previous,
            ttl_ms=int(self.config.ttl_s * 1000),
            max_attempts=self.config.max_attempts,
            concurrency=self.config.concurrency,
            order=self.config.order,
            want=self._want(),
            want_tasks=self._want_tasks(),
            bye=self._bye,
            reclaim=self._reclaim,
            requests=[request.score for request in batch.requests],
            tasks=[(task.id, task.token) for task in batch.tasks],
            items=len(batch.items),
            acks=list(batch.acks),
            releases=list(batch.releases),
            burials=list(batch.burials),
            stats=stats,
            sizes=list(map(len, blobs)),
        )
        self._flight = _Flight(
            args={"message": exchange.encode(message), "blobs": b"".join(blobs)},
            keys=self._keys(),
            batch=batch,
            stats=stats,
            carried_all=not self.outbox,
            started=now,
        )
        self._send()

    def _keys(self) -> dict[str, str]:
        keys = self.config.keys
        next_keys = self.config.next_keys or keys
        return {
            "ready": keys.ready(),
            "seen": keys.dupefilter,
            "leases": keys.leases(self.owner),
            "owners": keys.owners(),
            "numbers": keys.numbers(),
            "counters": keys.counters(),
            "dead": keys.dead(),
            "start_tasks": keys.start_tasks(),
            "items": keys.item_stream(),
            "stats": keys.stats_hash(),
            "next_tasks": next_keys.start_tasks() if self.config.next_keys else keys.dead(),
            "next_tokens": next_keys.start_tokens(),
            "own_gone": keys.gone(self.owner),
            "dead_gone": keys.gone(self._reclaim or self.owner),
            "own_stats": keys.own_stats(self.owner),
            "dead_leases": keys.leases(self._reclaim or self.owner),
        }

    def _stats(self) -> list[StatChange]:
        try:
            changes = self.listeners.stats(self._bye)
        except Exception:  # a stat of the user's that cannot be told must not stop the crawl
            logger.exception("the stats could not be told")
            return []
        return [StatChange(change.how, _unicode(change.field), _unicode(change.value)) for change in changes]

    def _measure_rate(self, now: float) -> None:
        elapsed = now - self._taken_since
        if elapsed >= 0.1:
            self._rate += 0.3 * (self._taken / elapsed - self._rate)
            self._taken, self._taken_since = 0, now

    def _send(self) -> None:
        if self._flight is not None and not self._stopped:
            self._exchanger.send(self._flight.keys, self._flight.args, self._answered)

    def _answered(self, raw: list[object] | Exception) -> None:
        flight = self._flight
        if flight is None or self._stopped:
            return
        if isinstance(raw, Exception):
            self._retry(flight, raw)
            return
        self._flight = None
        self.exchanges += 1
        now = self._clock.now()
        if self._down_since is not None:
            logger.warning("Redis answers again after %.1f s; the crawl goes on", now - self._down_since)
            self._down_since = None
            self.listeners.work()
        else:
            self._round_trip_s += 0.2 * (now - flight.started - self._round_trip_s)
        reply = exchange.decode(raw)
        if reply.outcome == "layout":
            refused = self.listeners.refused
            self.stop()
            refused(
                LayoutError(
                    f"{self.config.keys.counters()}: layout version {reply.ready}, this process knows 1: "
                    "upgrade it, or use another key pattern"
                )
            )
            return
        if reply.outcome == "fenced":
            self._start_over(flight, applied=reply.lost)
        else:
            self._applied(flight, reply, now)
        self._finish_flushes()
        self._arm()

    def _retry(self, flight: _Flight, error: Exception) -> None:
        """The same message again: the script applies it at most once."""
        flight.tries += 1
        if self._down_since is None:
            self._down_since = self._clock.now()
            logger.warning(
                "Redis does not take the exchange (%s: %s); keeping everything, trying again", type(error).__name__, error
            )
        self._clock.call_later(min(SLOWEST_RETRY_S, 0.05 * 2 ** min(flight.tries, 6)), self._send)

    def _applied(self, flight: _Flight, reply: Reply, now: float) -> None:
        self._last = reply
        self._exchanger.keep_alive(self.config.keys.owners(), self.owner, int(self.config.ttl_s * 1000))
        self._previous = str(self._number)
        if now - flight.started > self.config.ttl_s / 2:  # Redis was away, for the others too: they come back within a retry
            self._reclaim_from = now + max(self.config.ttl_s / 2, 2 * SLOWEST_RETRY_S)
        self._reclaim = reply.expired if reply.expired != self.owner and now >= self._reclaim_from else ""
        self._remember(flight.batch, now)
        if reply.lost:
            logger.warning("%d leases were not ours any more; what they stood for runs elsewhere", reply.lost)
        requests = flight.batch.requests
        self._buffer.extend(reply.leases)
        self._tasks.extend(reply.tasks)
        if self._closing:
            self._release_unstarted()
        was_idle = self._idle
        self._idle = flight.carried_all and not self.outbox and not self._buffer and reply.ready == 0 and reply.leased == 0
        if reply.leases:
            self._starving = False
        self._poll_s = FASTEST_POLL_S if reply.leases or reply.tasks else min(self.config.slowest_poll_s, self._poll_s * 1.5)
        if reply.leases or self._idle != was_idle or self._blocked:
            self._blocked = len(self.outbox) > self.config.max_outbox
            self.listeners.work()
        for place in reply.duplicates:
            try:
                self.listeners.duplicate(requests[place].payload)
            except Exception:  # a user's dupefilter; what was leased is in the buffer already, and the next exchange must come
                logger.exception("a duplicate could not be told")
        if reply.tasks:
            self._task_demand = 0
        if reply.tasks or self._idle:
            self.listeners.tasks()

    def _remember(self, batch: Outbox, now: float) -> None:
        if batch.requests or batch.tasks or batch.items:
            self._journal.append((now, self._number, batch))
        while self._journal and self._journal[0][0] < now - self.config.journal_s:
            self._journal.popleft()

    def _start_over(self, flight: _Flight, applied: int) -> None:
        """Redis does not know us: taken for dead, or it came back with an older state. Forget the leases, replay the last
        writes under a new name.
        """
        logger.warning(
            "fenced: this process was taken for dead, or Redis came back with an older state;"
            " dropping %d unstarted requests, replaying %d exchanges",
            len(self._buffer),
            len(self._journal) + 1,
        )
        self._buffer.clear()
        self._tasks.clear()
        self.outbox.forget_leases()
        self.outbox.put_first(
            [batch for _, number, batch in (*self._journal, (0.0, self._number, flight.batch)) if number > applied]
        )
        self._journal.clear()
        self._stats_again = flight.stats
        self._flushes = [(self._number + 1, done) for _, done in self._flushes]
        self._previous, self._reclaim, self._last = "", "", None  # the number goes on: a lease id never comes twice
        base, _, generation = self.owner.partition("~")
        self.owner = f"{base}~{int(generation or 0) + 1}"
        self._idle = False
        self._starving = self._urgent = True
        self.listeners.fenced()

    def _finish_flushes(self) -> None:
        if not self._flushes:
            return
        if self.outbox or self._flushes[0][0] > self._number:
            self._urgent = True
            return
        done, self._flushes = self._flushes, []
        for _, call in done:
            call()

    def now(self) -> float:
        """Seconds of this process's clock."""
        return self._clock.now()
