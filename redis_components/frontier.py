"""The frontier as one crawler process sees it: a buffer of leases, an outbox, and one exchange in flight.

Nothing here waits and nothing here knows Scrapy. `Scheduler`, `RedisPipeline`, `RedisSpider` and `RedisStatsCollector` put into
the outbox and take from the buffers; this module makes exchanges of it and says what an answer means. `pace` says when,
`conversation` sees to it that each is applied once, `journal` keeps what may have to be written again, `farewell` says when a
process may go. All methods are called in one thread, that of the `Clock`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .appetite import Appetite
from .buffer import Buffer
from .conversation import Conversation, Flight, Wish
from .errors import LayoutError, TrawlError
from .exchange import Burial, HeldNow, KeyedItem, Lease, NewRequest, NextTask, Reply, StatChange
from .farewell import Farewell
from .filters import misfit
from .frontier_config import FrontierConfig, Listeners
from .holds import Holds
from .journal import Journal
from .outbox import Batch, Kind, Outbox
from .pace import Haste, Pace
from .restraint import UNKNOWN, Restraint
from .timer import Timer
from .transport import Clock, Exchanger

__all__ = ["Frontier", "FrontierConfig", "Listeners"]

logger = logging.getLogger(__name__)


def _unicode(text: str) -> str:
    """Pages hold lone surrogates, messages must not."""
    return text.encode("utf-8", "backslashreplace").decode()


class Frontier:
    """One crawler process's end of the exchange. See the module's docstring."""

    def __init__(self, config: FrontierConfig, exchanger: Exchanger, clock: Clock) -> None:
        self.config = config
        self.listeners = Listeners()
        self.outbox = Outbox()
        self.exchanges = 0
        self._clock = clock
        self._talk = Conversation(config, exchanger, clock, self._answered)
        self._pace = Pace(config, clock.now())
        self._buffer = Buffer()
        self._restraint = Restraint()
        self._appetite = Appetite(config, self._pace, self._buffer, self._restraint)
        self._tasks: deque[Lease] = deque()
        self._journal = Journal(config.journal_s)
        self._farewell = Farewell(config.fsync_window_s)
        self._forgotten = b""
        self._stats_again: list[StatChange] = []
        self._flushes: list[tuple[int, Callable[[], None]]] = []
        self._idle = False
        self._task_idle_since: float | None = None
        self._urgent = False
        self._blocked = False
        self._shut = False  # no page may be started: Redis is out of memory, or the crawl is paused
        self._closing = False
        self._stopped = False
        self._timer = Timer(clock, self._fire)
        # An exchange is in flight, or comes within an interval: what happens for each page need not look further.
        self._soon = False

    @property
    def owner(self) -> str:
        """Name under which this process holds leases; another one after it was fenced."""
        return self._talk.owner

    # What the engine asks

    def take(self) -> Lease | None:
        """The next leased request; None when there is none, or when no page should be started because Redis is away for so
        long that the outbox is full, or is out of memory, or because the crawl is paused.
        """
        if self._shut or len(self.outbox.entries) > self.config.max_outbox:
            self._blocked = True
            return None
        lease = self._buffer.take()
        if lease is not None:
            pace = self._pace
            pace.taken += 1
            if not self._soon and len(self._buffer.leases) <= pace.refill_at:
                self._arm()
        elif not self._appetite.starving:
            self._appetite.starving = True
            self._arm()
        return lease

    def defer(self, lease: Lease, site: str) -> None:
        """What `take` gave has to wait until its site has a place (`SitePlaces`); it was not started."""
        self._pace.taken -= 1
        self._buffer.defer(lease, site)

    def recall(self, site: str) -> bool:
        """The next request of `site` that was deferred may be taken again; False: there is none."""
        return self._buffer.recall(site)

    def deferred(self, site: str) -> int:
        """How many requests of `site` are deferred."""
        return self._buffer.deferred_of(site)

    def take_all(self) -> list[Lease]:
        """All leased requests, the next one first: for whoever orders them by itself, with the order ADVISED."""
        self._pace.taken += len(self._buffer)
        return self._buffer.drain()

    def look(self, number: int) -> None:
        """Somebody who orders requests by itself has none: exchange soon, and lease up to `number` in the order of READY."""
        self._appetite.demand = number
        self._appetite.starving = True
        self._arm()

    @property
    def pausing(self) -> bool:
        """True while no page should be started; see `take`."""
        if self._shut or len(self.outbox) > self.config.max_outbox:
            self._blocked = True
        return self._blocked

    @property
    def holds(self) -> Holds:
        """What is held, as this process knows it."""
        return self._restraint.holds

    @property
    def ready(self) -> int:
        """Requests READY in Redis at the last answer."""
        last = self._appetite.last
        return last.ready if last else 0

    @property
    def parked(self) -> int:
        """Requests set aside for held sites at the last answer."""
        last = self._appetite.last
        return last.parked if last else 0

    def take_task(self) -> Lease | None:
        """The next leased start task, or None; then `listeners.tasks` tells when one came."""
        return self._tasks.popleft() if self._tasks and not self._shut else None

    @property
    def has_tasks(self) -> bool:
        """True when a leased start task waits to be taken."""
        return bool(self._tasks)

    def want_tasks(self, number: int) -> None:
        """Ask for up to `number` start tasks; each answer cancels the wish."""
        self._appetite.task_demand = number
        self._arm()

    @property
    def idle(self) -> bool:
        """True when Redis has proved it: everything of ours is stored, no request is ready or parked, and no owner holds a
        lease. Never in a paused crawl.
        """
        return self._idle and not self.outbox and not self._talk.away

    @property
    def task_idle(self) -> bool:
        """True when the whole crawl has nothing to do: idle, and no start task waits, is leased or is parked."""
        last = self._appetite.last
        return self.idle and not self._tasks and last is not None and not (last.waiting or last.leased_tasks or last.parked_tasks)

    @property
    def task_idle_since(self) -> float | None:
        """Since when (s of `now`) every answer of Redis has said so; None while it is not so."""
        return self._task_idle_since if self.task_idle else None

    @property
    def waiting_to_start(self) -> int:
        """Requests that nobody has started: READY in Redis at the last answer, and in our buffer."""
        return len(self._buffer) + self._buffer.deferred + self.ready

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
        self._add("tasks", task._replace(id=_unicode(task.id), token=_unicode(task.token)), len(task.data))

    def add_item(self, item: bytes) -> None:
        """Store an item; it is in Redis before, or together with, the ack of its request."""
        self.outbox.entries.append(("items", item, len(item)))
        if not self._soon:
            self._arm()

    def add_keyed_item(self, item: KeyedItem) -> None:
        """Store an item in a list of its own, under the same promise."""
        self._add("keyed_items", item, len(item.data))

    def ack(self, lease_id: str) -> None:
        """Scrapy is done with a request, or a start task became requests (edge c)."""
        self.outbox.entries.append(("acks", lease_id, 0))
        if not self._soon:
            self._arm()

    def claim(self, order: str) -> None:
        """Lease the READY request with this order (hex), if it is still there; `listeners.applied` tells."""
        self._add("claims", order)

    def release(self, lease_id: str) -> None:
        """Give a lease back, unharmed (edge d)."""
        self._add("releases", lease_id)

    def park(self, lease_id: str, names: Iterator[str], *, task: bool = False) -> bool:
        """Set a lease aside if its site is held, until it is not; whether it is. Only where `holds.sites` has any."""
        park = self._restraint.park(lease_id, names, task=task)
        if park is not None:
            self._add("parks", park)
        return park is not None

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
        self._appetite.leasing = True
        self._arm()

    def close(self, done: Callable[[], None]) -> None:
        """Release what was not started, take no more leases, and call `done` when everything is stored."""
        self._closing, self._appetite.leasing = True, False
        self._release_unstarted()
        self.flush(done)

    def _release_unstarted(self) -> None:
        self._give_back(self._buffer.drain())
        self._release_tasks()

    def _release_tasks(self) -> None:
        self._give_back(reversed(self._tasks))  # each goes to the head of its list: the first one last
        self._tasks.clear()

    def _give_back(self, leases: Iterable[Lease]) -> None:
        self.outbox.entries.extend(("releases", lease.id, 0) for lease in leases)

    def leave(self, done: Callable[[], None]) -> None:
        """Say good-bye: store what is left, stay until a crash of Redis cannot take it back, forget this owner where it holds
        no lease, then call `done`.
        """
        if self._stopped:  # refused: there is nothing to wait for
            done()
            return
        self._closing, self._appetite.leasing = True, False
        self._farewell.done = done
        self._urgent = True
        self._arm()

    def _leave(self) -> None:
        left, done = self.listeners.left, self._farewell.done
        self.stop()
        left()
        if done is not None:
            done()

    def flush(self, done: Callable[[], None]) -> None:
        """Call `done` when everything that is in the outbox now is stored."""
        if self._stopped:
            done()
            return
        self._flushes.append((self._talk.number + 1, done))
        self._urgent = True
        self._arm()

    def _finish_flushes(self) -> None:
        if not self._flushes:
            return
        if self.outbox or self._talk.inquiring or self._flushes[0][0] > self._talk.number:
            self._urgent = True
            return
        done, self._flushes = self._flushes, []
        for _, call in done:
            call()

    def stop(self) -> None:
        """Exchange no more; what was not stored is lost to this process, its leases run out. Stopping twice is allowed."""
        self._stopped = True
        self._timer.cancel()
        self.listeners = Listeners()  # they lead to the crawler, which nothing else keeps alive
        self._talk.end()

    # When to exchange

    def _due(self, haste: Haste) -> float:
        due = self._pace.due(haste)
        if self._farewell.begun and not self.outbox:
            return min(due, self._farewell.due(self._pace.due(Haste.NOW)))
        return due

    def _arm(self) -> None:
        if self._talk.busy or self._stopped:
            return
        now, haste = self._clock.now(), self._appetite.haste(self.outbox, urgent=self._urgent)
        due = max(now, self._due(haste))
        self._soon = haste not in (Haste.POLL, Haste.BEAT)
        self._timer.set(due, now)

    # One exchange

    def _fire(self) -> None:
        if self._talk.busy or self._stopped:
            return
        now = self._clock.now()
        self._pace.begin(now)
        self._soon = True
        self._urgent = False
        batch, introduced, inquiring = Batch(), self._talk.introduced, self._talk.inquiring
        if introduced:
            batch = self.outbox.take(self.config.batch, self.config.max_batch_bytes)
            batch.stats, self._stats_again = self._stats_again + self._stats(), []
        if batch:
            self._idle = False
        wish = Wish(
            requests=0 if inquiring else self._appetite.requests(self._appetite.overtaking(batch)),
            tasks=0 if inquiring else self._appetite.tasks(),
            trying=self._appetite.is_trying(batch),
            overtaken=self._buffer.overtaken(),
            bye=introduced and not self.outbox and self._farewell.may_go(now, tells=bool(batch)),
            ask_survives=self._closing and self._farewell.asks,
            holds=self._restraint.version,
            unpark=self._restraint.unpark,
        )
        if wish.tasks and self.config.turn_by:
            wish.room.update(self.listeners.room())
        self._restraint.asked(requests=wish.requests, tasks=wish.tasks)
        self._talk.say(batch, wish, carried_all=not self.outbox)

    def _stats(self) -> list[StatChange]:
        try:
            changes = self.listeners.stats(self._farewell.begun)
        except Exception:  # a stat of the user's that cannot be told must not stop the crawl
            logger.exception("the stats could not be told")
            return []
        return [StatChange(change.how, _unicode(change.field), _unicode(change.value)) for change in changes]

    def _answered(self, flight: Flight, reply: Reply) -> None:
        self.exchanges += 1
        now = self._clock.now()
        if self._talk.away:
            self._talk.away = False
            self._task_idle_since = None
            self.listeners.work()
        else:
            self._pace.answered(now, got=bool(reply.leases or reply.tasks))
        if reply.outcome == "layout":
            self._refuse(
                LayoutError(
                    f"{self.config.keys.counters()}: layout version {reply.layout}, this process knows 1: "
                    "upgrade it, or use another key pattern"
                )
            )
            return
        if reply.outcome == "filter":
            self._refuse(misfit(self.config.keys.fingerprints(), reply.layout, self.config.filter.form))
            return
        if reply.outcome == "fenced" and self._talk.asks:
            lacking = self._lacking(flight, reply.last_applied)
            self._talk.heard(reply.last_applied, keeps=bool(self._journal))
            if lacking:
                logger.warning(
                    "Redis came back older than when it fenced this process; replaying %d more exchanges", len(lacking)
                )
                self.listeners.fenced()
        elif reply.outcome == "fenced":
            self._start_over(flight, reply.last_applied)
        else:
            self._applied(flight, reply, now)
            if flight.wish.bye and not self.outbox:
                self._leave()
        self._finish_flushes()
        self._urgent = self._urgent or self._talk.inquiring
        self._arm()

    def _refuse(self, error: TrawlError) -> None:
        refused = self.listeners.refused
        self.stop()
        refused(error)

    def _applied(self, flight: Flight, reply: Reply, now: float) -> None:
        batch = flight.batch
        self._journal.remember(now, flight.number, batch)
        self._farewell.answered(now, told=bool(batch), survives=reply.survives)
        if reply.lost:
            logger.warning("%d leases were not ours any more; what they stood for runs elsewhere", reply.lost)
        if reply.forgotten not in (b"", self._forgotten):
            self._forgotten = reply.forgotten
            self.listeners.forgotten()
        was_shut = self._shut
        if reply.held is not None:
            self._learn(reply.held)
        elif flight.wish.unpark:
            self._restraint.put_back(flight.wish.unpark, reply.left)
        arrived = self._not_held(reply.leases)
        self._buffer.add(arrived)
        self._appetite.answered(reply, arrived=bool(arrived))
        self._tasks.extend(reply.tasks)
        if not self._restraint.feeding:
            self._release_tasks()
        if self._closing:
            self._release_unstarted()
        was_idle = self._idle
        nothing_left = reply.ready == 0 and reply.leased == 0 and reply.parked == 0 and not self._restraint.paused
        told_all = flight.carried_all and not self.outbox and not self._talk.inquiring
        self._idle = told_all and not self._buffer and nothing_left
        self._notice_memory(full=reply.full)
        self._shut = reply.full or self._restraint.paused
        for tell in self.listeners.applied:
            tell(batch, reply)
        unblocked = self._blocked and not self._shut and len(self.outbox) <= self.config.max_outbox
        if unblocked:
            self._blocked = False
        if arrived or self._idle != was_idle or unblocked:
            self.listeners.work()
        for place in reply.duplicates:
            try:
                self.listeners.duplicate(batch.requests[place].payload)
            except Exception:  # a user's dupefilter; what was leased is in the buffer already, and the next exchange must come
                logger.exception("a duplicate could not be told")
        if not self.task_idle:
            self._task_idle_since = None
        elif self._task_idle_since is None:
            self._task_idle_since = now
        if reply.tasks or self._idle or (was_shut and not self._shut):
            self.listeners.tasks()

    def _learn(self, held: HeldNow) -> None:
        """What is held has changed: what was leased and not started is given back, or set aside."""
        before = str(self.holds)
        self._restraint.learn(held)
        if str(self.holds) != before:
            logger.info("held now: %s", self.holds)
        self.outbox.park_only(self.holds.is_held)
        if self._restraint.paused:
            self._give_back(self._buffer.drain())
        elif self.holds.sites:
            self._buffer.retain(lambda lease: not self._parks(lease))
        self._appetite.starving = True

    def _parks(self, lease: Lease) -> bool:
        return self.park(lease.id, self.listeners.names(lease.data))

    def _not_held(self, leases: list[Lease]) -> list[Lease]:
        """Of these, what may be started; the rest is given back, or set aside."""
        if self._restraint.paused:
            self._give_back(leases)
            return []
        if not self.holds.sites:
            return leases
        return [lease for lease in leases if not self._parks(lease)]

    def _notice_memory(self, *, full: bool) -> None:
        was_full, self._appetite.full = self._appetite.full, full
        if full and not was_full:
            logger.warning(
                "Redis is out of memory (maxmemory): no page is started, what runs is stored; raise maxmemory or make room"
            )
        elif was_full and not full:
            logger.warning("Redis has memory again; the crawl goes on")

    def _start_over(self, flight: Flight, last_applied: int) -> None:
        """Redis does not know us: taken for dead, or it came back with an older state. Forget the leases, replay the last
        writes under a new name.
        """
        self.outbox.forget_leases()
        lacking = self._lacking(flight, last_applied)
        logger.warning(
            "fenced: this process was taken for dead, or Redis came back with an older state;"
            " dropping %d unstarted requests, replaying %d exchanges",
            len(self._buffer),
            len(lacking),
        )
        self._buffer.drain()
        self._appetite.start_over()
        self._tasks.clear()
        self._flushes = [(self._talk.number + 1, done) for _, done in self._flushes]
        self._restraint.version = UNKNOWN
        self._talk.start_over(last_applied, keeps=bool(self._journal))
        self._idle = False
        self._task_idle_since = None
        self._urgent = True
        self.listeners.fenced()

    def _lacking(self, flight: Flight, last_applied: int) -> list[Batch]:
        """Put what a Redis lacks that refused this message before everything that is to be told."""
        lacking = self._journal.replay(self._talk.known(last_applied), self._clock.now(), flight.number, flight.batch)
        self.outbox.put_first(lacking)
        self._stats_again = [change for one in lacking for change in one.stats] + self._stats_again
        return lacking
