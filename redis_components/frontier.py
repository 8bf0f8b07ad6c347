"""The frontier as one crawler process sees it: a buffer of leases, an outbox, and one numbered exchange in flight.

Nothing here waits and nothing here knows Scrapy. `Scheduler`, `RedisPipeline`, `RedisSpider` and `RedisStatsCollector` put into
the outbox and take from the buffers; this module makes the exchanges and says what an answer means; `pace` says when. All
methods are called in one thread, that of the `Clock`.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import exchange
from .buffer import Buffer
from .errors import LayoutError
from .exchange import Burial, Lease, Message, NewRequest, NextTask, Order, Reply, StatChange
from .frontier_config import FrontierConfig, Listeners
from .journal import Journal
from .outbox import Batch, Kind, Outbox
from .pace import Haste, Pace
from .transport import Clock, Exchanger

__all__ = ["Frontier", "FrontierConfig", "Listeners"]

logger = logging.getLogger(__name__)

SLOWEST_RETRY_S = 2.0


def _unicode(text: str) -> str:
    """Pages hold lone surrogates, messages must not."""
    return text.encode("utf-8", "backslashreplace").decode()


@dataclass(kw_only=True, slots=True)
class _Flight:
    """The exchange on its way."""

    keys: dict[str, str]
    args: dict[str, Any]
    batch: Batch
    carried_all: bool
    bye: bool
    started: float
    tries: int = 0


class Frontier:
    """One crawler process's end of the exchange. See the module's docstring."""

    def __init__(self, config: FrontierConfig, exchanger: Exchanger, clock: Clock) -> None:
        self.config = config
        self.owner = config.owner
        self.listeners = Listeners()
        self.outbox = Outbox()
        self.exchanges = 0
        self._exchanger = exchanger
        self._clock = clock
        self._pace = Pace(config, clock.now())
        self._buffer = Buffer()
        self._tasks: deque[Lease] = deque()
        self._suspects: set[str] = set()
        self._task_demand = 0
        self._journal = Journal(config.journal_s)
        self._number = 0
        self._previous = ""
        self._generation = 0
        self._flight: _Flight | None = None
        self._last: Reply | None = None
        self._reclaim = ""
        self._reclaim_from = -math.inf
        self._idle = False
        self._starving = True
        self._urgent = False
        self._blocked = False
        self._full = False
        self._down_since: float | None = None
        self._opened = False
        self._closing = False
        self._stopped = False
        self._leaving: Callable[[], None] | None = None
        self._aof: bool | None = None
        self._last_write = -math.inf
        self._stats_again: list[StatChange] = []
        self._flushes: list[tuple[int, Callable[[], None]]] = []
        self._cancel_timer: Callable[[], None] | None = None
        self._timer_due = math.inf
        self._soon = (
            False  # an exchange is in flight or comes within an interval: what happens for each page need not look further
        )

    # What the engine asks

    def take(self) -> Lease | None:
        """The next leased request; None when there is none, or when no page should be started because Redis is away for so
        long that the outbox is full, or is out of memory.
        """
        if self._full or len(self.outbox.entries) > self.config.max_outbox:
            self._blocked = True
            return None
        lease = self._buffer.take()
        if lease is not None:
            pace = self._pace
            pace.taken += 1
            if not self._soon and len(self._buffer.leases) <= pace.refill_at:
                self._arm()
        elif not self._starving:
            self._starving = True
            self._arm()
        return lease

    def take_task(self) -> Lease | None:
        """The next leased start task, or None; then `listeners.tasks` tells when one came."""
        return self._tasks.popleft() if self._tasks and not self._full else None

    def want_tasks(self, number: int) -> None:
        """Ask for up to `number` start tasks; each answer cancels the wish."""
        self._task_demand = number
        self._arm()

    @property
    def idle(self) -> bool:
        """True when Redis has proved it: everything of ours is stored, no request is ready, and no owner holds a lease."""
        return self._idle and not self.outbox and self._down_since is None

    @property
    def task_idle(self) -> bool:
        """True when the whole crawl has nothing to do: idle, and no start task waits or is leased."""
        return self.idle and not self._tasks and self._last is not None and not (self._last.waiting or self._last.leased_tasks)

    @property
    def waiting_to_start(self) -> int:
        """Requests that nobody has started: READY in Redis at the last answer, and in our buffer."""
        return len(self._buffer) + (self._last.ready if self._last else 0)

    def now(self) -> float:
        """Seconds of this process's clock."""
        return self._clock.now()

    # What the engine tells

    def add_request(self, request: NewRequest) -> None:
        """Store a new request (edge a). One that comes before everything in the buffer is leased in the same exchange."""
        self.outbox.entries.append(("requests", request, len(request.payload)))
        if not self._soon:
            self._arm()

    def add_task(self, task: NextTask) -> None:
        """Store a start task for the next service."""
        if self.config.next_keys is None:
            raise TypeError("this spider feeds no other service: set `feeds` on the spider class")
        self._add("tasks", NextTask(_unicode(task.id), _unicode(task.token), task.data), len(task.data))

    def add_item(self, item: bytes) -> None:
        """Store an item; it is in Redis before, or together with, the ack of its request."""
        self.outbox.entries.append(("items", item, len(item)))
        if not self._soon:
            self._arm()

    def ack(self, lease_id: str) -> None:
        """Scrapy is done with a request, or a start task became requests (edge c)."""
        self.outbox.entries.append(("acks", lease_id, 0))
        if not self._soon:
            self._arm()

    def release(self, lease_id: str) -> None:
        """Give a lease back, unharmed (edge d)."""
        self._add("releases", lease_id)

    def bury(self, lease_id: str, reason: str) -> None:
        """Give a request or start task up and keep it with the reason (edge f)."""
        self._add("burials", Burial(lease_id, _unicode(reason)))

    def _add(self, kind: Kind, entry: Any, size: int = 0) -> None:
        """What comes up once or more for each page does the same without this call."""
        self.outbox.entries.append((kind, entry, size))
        if not self._soon:
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
        unstarted = [*self._buffer.drain(), *reversed(self._tasks)]  # each task goes to the head of its list: the first one last
        self._tasks.clear()
        self.outbox.entries.extend(("releases", lease.id, 0) for lease in unstarted)

    def leave(self, done: Callable[[], None]) -> None:
        """Say good-bye: store what is left, stay until a crash of Redis cannot take it back, forget this owner where it holds
        no lease, then call `done`.
        """
        if self._stopped:  # refused: there is nothing to wait for
            done()
            return
        self._closing = True
        self._leaving = done
        self._urgent = True
        self._arm()

    def _says_bye(self, batch: Batch, now: float) -> bool:
        """Whether the exchange that carries `batch` is the last one. What it says must be safe: an exchange whose answer is
        followed by silence could be lost with Redis's last second, and nobody would be left to say it again.
        """
        if self._leaving is None or self.outbox:
            return False
        return not self._stays or (not batch and now >= self._safe_at)

    @property
    def _stays(self) -> bool:
        return self._aof is not False and self.config.fsync_window_s > 0

    @property
    def _safe_at(self) -> float:
        return self._last_write + self.config.fsync_window_s

    def _left(self) -> None:
        left, done = self.listeners.left, self._leaving
        self.stop()
        left()
        if done is not None:
            done()

    def flush(self, done: Callable[[], None]) -> None:
        """Call `done` when everything that is in the outbox now is stored."""
        if self._stopped:
            done()
            return
        self._flushes.append((self._number + 1, done))
        self._urgent = True
        self._arm()

    def _finish_flushes(self) -> None:
        if not self._flushes:
            return
        if self.outbox or self._flushes[0][0] > self._number:
            self._urgent = True
            return
        done, self._flushes = self._flushes, []
        for _, call in done:
            call()

    def stop(self) -> None:
        """Exchange no more; what was not stored is lost to this process, its leases run out. Stopping twice is allowed."""
        self._stopped = True
        if self._cancel_timer is not None:
            self._cancel_timer()
            self._cancel_timer = None
        self.listeners = Listeners()  # they lead to the crawler, which nothing else keeps alive
        self._exchanger.close()

    # When to exchange

    def _want(self, overtaking: int = 0) -> int:
        """Requests to lease now."""
        if self._closing or not self._opened:
            return 0
        return self._pace.want(len(self._buffer), overtaking)

    def _overtaking(self, batch: Batch) -> int:
        """New requests that come before everything in the buffer: they are leased in the exchange that stores them. Only
        priorities overtake: were later requests to do so in the LIFO order too, no other process would get a page's children.
        """
        if self.config.order is not Order.PRIORITY or not self._buffer:
            return 0
        best = self._buffer.best
        return sum(float(request.score) < best for request in batch.requests)

    def _is_trying(self, batch: Batch) -> bool:
        """Whether, after `batch`, a request that was at work in several deaths is still here."""
        if self._suspects:
            self._suspects.difference_update(batch.acks, batch.releases, (burial.id for burial in batch.burials))
        return bool(self._suspects)

    def _want_tasks(self) -> int:
        """Start tasks to lease now: only while the requests that wait already cannot keep the engine busy."""
        if self._closing or not self._opened or self.waiting_to_start >= self.config.concurrency:
            return 0
        return self._task_demand

    def _haste(self) -> Haste:
        ready = self._last.ready - self._last.withheld if self._last else 1
        if self._urgent:
            return Haste.NOW
        if self._full:
            return Haste.GATHERED if self.outbox else Haste.POLL
        if self._starving and self._opened and (self.outbox or ready) and not self._closing:
            return Haste.NOW
        if self.outbox or (ready and self._want()):
            return Haste.GATHERED
        return Haste.POLL if self._task_demand or self._want() else Haste.BEAT

    def _due(self, haste: Haste) -> float:
        due = self._pace.due(haste)
        if self._leaving is not None and not self.outbox:
            soonest = self._pace.due(Haste.NOW)
            return min(due, max(self._safe_at, soonest)) if self._stays else soonest
        return due

    def _arm(self) -> None:
        if self._flight is not None or self._stopped:
            return
        now, haste = self._clock.now(), self._haste()
        due = max(now, self._due(haste))
        self._soon = haste not in (Haste.POLL, Haste.BEAT)
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
        self._pace.begin(now)
        self._soon = True
        # The first exchange of an owner only introduces it: were it applied, the owner reclaimed, and the message sent again,
        # nothing could tell that it had been applied.
        batch = self.outbox.take(self.config.batch, self.config.max_batch_bytes) if self._previous else Batch()
        batch.stats, self._stats_again = self._stats_again + self._stats(), []
        bye = self._says_bye(batch, now)
        if batch:
            self._idle = False
        self._urgent = False
        self._number += 1
        blobs = batch.blobs()
        message = self._message(batch, sizes=list(map(len, blobs)), bye=bye)
        self._flight = _Flight(
            args={"message": exchange.encode(message), "blobs": b"".join(blobs)},
            keys=self._keys(),
            batch=batch,
            carried_all=not self.outbox,
            bye=bye,
            started=now,
        )
        self._send()

    def _message(self, batch: Batch, *, sizes: list[int], bye: bool) -> Message:
        return Message(
            owner=self.owner,
            number=str(self._number),
            previous=self._previous,
            ttl_ms=int(self.config.ttl_s * 1000),
            max_attempts=self.config.max_attempts,
            concurrency=self.config.concurrency,
            order=self.config.order,
            want=self._want(self._overtaking(batch)),
            want_tasks=self._want_tasks(),
            trying=self._is_trying(batch),
            overtaken=self._buffer.overtaken(),
            bye=bye,
            ask_aof=self._closing and self._aof is None and self._stays,
            reclaim=self._reclaim,
            requests=[request.score for request in batch.requests],
            tasks=[(task.id, task.token) for task in batch.tasks],
            items=len(batch.items),
            acks=batch.acks,
            releases=batch.releases,
            burials=batch.burials,
            stats=batch.stats,
            sizes=sizes,
        )

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
            "start_deaths": keys.start_deaths(),
            "items": keys.item_stream(),
            "stats": keys.stats_hash(),
            "own_stats": keys.own_stats(self.owner),
            "next_tasks": next_keys.start_tasks() if self.config.next_keys else keys.dead(),
            "next_tokens": next_keys.start_tokens(),
            "own_gone": keys.gone(self.owner),
            "dead_leases": keys.leases(self._reclaim or self.owner),
            "dead_gone": keys.gone(self._reclaim or self.owner),
        }

    def _stats(self) -> list[StatChange]:
        try:
            changes = self.listeners.stats(self._leaving is not None)
        except Exception:  # a stat of the user's that cannot be told must not stop the crawl
            logger.exception("the stats could not be told")
            return []
        return [StatChange(change.how, _unicode(change.field), _unicode(change.value)) for change in changes]

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
        reply = exchange.decode(raw)
        if self._down_since is not None:
            logger.warning("Redis answers again after %.1f s; the crawl goes on", now - self._down_since)
            self._down_since = None
            self.listeners.work()
        else:
            self._pace.answered(now, got=bool(reply.leases or reply.tasks))
        if reply.outcome == "layout":
            self._refuse(reply.layout)
            return
        if reply.outcome == "fenced":
            self._start_over(flight.batch, reply.last_applied)
        else:
            self._applied(flight, reply, now)
            if flight.bye and not self.outbox:
                self._left()
        self._finish_flushes()
        self._arm()

    def _refuse(self, layout: str) -> None:
        refused = self.listeners.refused
        self.stop()
        refused(
            LayoutError(
                f"{self.config.keys.counters()}: layout version {layout}, this process knows 1: "
                "upgrade it, or use another key pattern"
            )
        )

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
        batch = flight.batch
        self._last = reply
        self._exchanger.keep_alive(self.config.keys.owners(), self.owner, int(self.config.ttl_s * 1000))
        self._previous = str(self._number)
        if reply.aof is not None:
            self._aof = reply.aof
        if now - flight.started > self.config.ttl_s / 2:  # Redis was away, for the others too: they come back within a retry
            self._reclaim_from = now + max(self.config.ttl_s / 2, 2 * SLOWEST_RETRY_S)
        self._reclaim = reply.expired if reply.expired != self.owner and now >= self._reclaim_from else ""
        self._journal.remember(now, self._number, batch)
        if batch:
            self._last_write = now
        if reply.lost:
            logger.warning("%d leases were not ours any more; what they stood for runs elsewhere", reply.lost)
        self._buffer.add(reply.leases)
        suspect_from = max(1, min(2, self.config.max_attempts - 1))  # as in the script
        self._suspects.update(lease.id for lease in reply.leases if lease.order[8] >= suspect_from)
        self._tasks.extend(reply.tasks)
        if self._closing:
            self._release_unstarted()
        was_idle, was_full = self._idle, self._full
        self._idle = flight.carried_all and not self.outbox and not self._buffer and reply.ready == 0 and reply.leased == 0
        self._notice_memory(full=reply.full)
        if reply.leases:
            self._starving = False
        unblocked = self._blocked and not self._full and len(self.outbox) <= self.config.max_outbox
        if unblocked:
            self._blocked = False
        if reply.leases or self._idle != was_idle or unblocked:
            self.listeners.work()
        for place in reply.duplicates:
            try:
                self.listeners.duplicate(batch.requests[place].payload)
            except Exception:  # a user's dupefilter; what was leased is in the buffer already, and the next exchange must come
                logger.exception("a duplicate could not be told")
        if reply.tasks:
            self._task_demand = 0
        if reply.tasks or self._idle or (was_full and not self._full):
            self.listeners.tasks()

    def _notice_memory(self, *, full: bool) -> None:
        if full and not self._full:
            logger.warning(
                "Redis is out of memory (maxmemory): no page is started, what runs is stored; raise maxmemory or make room"
            )
        elif self._full and not full:
            logger.warning("Redis has memory again; the crawl goes on")
        self._full = full

    def _start_over(self, batch: Batch, last_applied: int) -> None:
        """Redis does not know us: taken for dead, or it came back with an older state. Forget the leases, replay the last
        writes under a new name.
        """
        lacking = self._journal.replay(last_applied, self._number, batch)
        logger.warning(
            "fenced: this process was taken for dead, or Redis came back with an older state;"
            " dropping %d unstarted requests, replaying %d exchanges",
            len(self._buffer),
            len(lacking),
        )
        self._buffer.drain()
        self._suspects.clear()
        self._tasks.clear()
        self.outbox.forget_leases()
        self.outbox.put_first(lacking)
        self._stats_again = [change for one in lacking for change in one.stats]
        self._flushes = [(self._number + 1, done) for _, done in self._flushes]
        self._previous, self._reclaim, self._last = "", "", None  # the number goes on: a lease id never comes twice
        self._generation += 1
        self.owner = f"{self.config.owner}~{self._generation}"
        self._idle = False
        self._starving = self._urgent = True
        self.listeners.fenced()
