"""Makes exchanges: decides when the next one is due and what it carries, and applies its answer."""

from __future__ import annotations

import logging
from collections.abc import Callable

from redis_components.errors import LayoutError, TrawlError
from redis_components.filters import misfit

from .config import FrontierConfig, Listeners
from .demand import Demand, Gate, Haste, Pace
from .messages import LeaseDemand, Reply, StatChange, as_unicode
from .outbox import Batch, Outbox, Phase, ShutdownSequence, Timer, WriteJournal
from .session import Flight, Session
from .stock import Stock
from .transport import Clock, Exchanger

logger = logging.getLogger(__name__)


class Pump:
    """The parts of a frontier and the exchanges between them and Redis; `Frontier` has what Scrapy's components call."""

    def __init__(self, config: FrontierConfig, exchanger: Exchanger, clock: Clock) -> None:
        self.config = config
        self.clock = clock
        self.phase = Phase.JOINING
        self.listeners = Listeners()
        self.outbox = Outbox()
        self.stock = Stock(self.outbox, lambda payload: self.listeners.names(payload))
        self.gate = Gate(config, self.outbox)
        self.pace = Pace(config, clock.now())
        self.demand = Demand(config, self.pace, self.stock, self.gate)
        self.talk = Session(config, exchanger, clock, self._answered, self._refuse)
        self.exchanges = 0
        self.soon = False
        """An exchange is in flight, or comes within an interval: what happens for each page need not look further."""
        self._was_idle = False  # at the last answer everything was stored, and nothing was ready, leased or parked
        self._task_idle_since: float | None = None  # since when each answer has confirmed the same of start tasks
        self._journal = WriteJournal(config.journal_s)
        self._farewell = ShutdownSequence(config.fsync_window_s)
        self._when_left: Callable[[], None] = lambda: None
        self._stats_again: list[StatChange] = []
        self._flushes: list[tuple[int, Callable[[], None]]] = []
        self.urgent = False
        self._timer = Timer(clock, self._fire)
        self._paced = Timer(clock, self._send_paced)

    # Phases

    def open(self) -> None:
        """Begin to lease; before that, only the entries of the outbox are exchanged."""
        self._enter(Phase.LEASING)
        self.arm()

    def close(self, done: Callable[[], None]) -> None:
        """Release requests that were not started, take no more leases, and call `done` when everything is stored."""
        self._enter(Phase.CLOSING)
        self.stock.release_all()
        self.flush(done)

    def leave(self, done: Callable[[], None]) -> None:
        """Leave: store the remaining entries, stay until a crash of Redis cannot take it back, remove this owner where it holds
        no lease, then call `done`.
        """
        if self.phase is Phase.STOPPED:  # refused: there is nothing to wait for
            done()
            return
        self._enter(Phase.LEAVING)
        self._when_left = done
        self.urgent = True
        self.arm()

    def stop(self) -> None:
        """Exchange no more; entries that were not stored are lost to this process, its leases run out. Stopping twice is
        allowed.
        """
        self._enter(Phase.STOPPED)
        self._timer.cancel()
        self._paced.cancel()
        self.listeners = Listeners()  # they lead to the crawler, which nothing else keeps alive
        self.talk.end()

    def _enter(self, phase: Phase) -> None:
        self.phase = max(self.phase, phase)
        self.demand.leasing = self.phase is Phase.LEASING

    def _leave(self) -> None:
        left = self.listeners.left
        self.stop()
        left()
        self._when_left()

    def flush(self, done: Callable[[], None]) -> None:
        """Call `done` when everything that is in the outbox now is stored."""
        if self.phase is Phase.STOPPED:
            done()
            return
        self._flushes.append((self.talk.number + 1, done))
        self.urgent = True
        self.arm()

    def _finish_flushes(self) -> None:
        if not self._flushes:
            return
        if self.outbox or self.talk.inquiring or self._flushes[0][0] > self.talk.number:
            self.urgent = True
            return
        done, self._flushes = self._flushes, []
        for _, call in done:
            call()

    # Requests of lanes, each at its time

    def _time_paced(self, now: float) -> None:
        if (at := self.stock.timed.next_change(now)) is not None:
            self._paced.set(at, now)

    def _send_paced(self) -> None:
        now = self.clock.now()
        if self.stock.release_closed(now):
            self.listeners.limits()
            self.arm()
        rested = self.stock.timed.end_rests(now)
        self.urgent = self.urgent or rested
        if self.stock.release_late(now) or rested:
            self.arm()
        if self.stock.timed.is_due(now):
            self.listeners.work()
        self._time_paced(now)

    # When to exchange

    def arm(self) -> None:
        """Set the timer for the next exchange, after a new entry."""
        if self.talk.busy or self.phase is Phase.STOPPED:
            return
        now, haste = self.clock.now(), self.demand.haste(self.outbox, urgent=self.urgent)
        due = max(now, self._due(haste))
        self.soon = haste not in (Haste.POLL, Haste.BEAT)
        self._timer.set(due, now)

    def _due(self, haste: Haste) -> float:
        due = self.pace.due(haste)
        if self.phase is Phase.LEAVING and not self.outbox:
            return min(due, self._farewell.due(self.pace.due(Haste.NOW)))
        return due

    # One exchange

    def _fire(self) -> None:
        if self.talk.busy or self.phase is Phase.STOPPED:
            return
        now = self.clock.now()
        self.pace.begin(now)
        self.soon = True
        self.urgent = False
        batch = Batch()
        if self.talk.introduced:
            batch = self.outbox.take(self.config.batch, self.config.max_batch_bytes)
            batch.stats, self._stats_again = self._stats_again + self._stats(), []
        if batch:
            self._was_idle = False
        wish = self._wish(batch, now)
        self.stock.restraint.asked(requests=wish.want, tasks=wish.want_tasks)
        self.talk.send(batch, wish, carried_all=not self.outbox)

    def _wish(self, batch: Batch, now: float) -> LeaseDemand:
        demand, restraint, asks = self.demand, self.stock.restraint, not self.talk.inquiring
        leaves = self.phase is Phase.LEAVING and self.talk.introduced and not self.outbox
        tasks = demand.tasks() if asks else 0
        return LeaseDemand(
            want=demand.requests(demand.overtaking(batch)) if asks else 0,
            want_tasks=tasks,
            want_paced=demand.paced(self.listeners.places()) if asks else 0,
            full=self.stock.unwanted(now),
            room=self.listeners.room() if tasks and self.config.turn_by else {},
            trying=demand.is_trying(batch),
            overtaken=self.stock.buffer.overtaken() + self.stock.timed.ids,
            bye=leaves and self._farewell.may_go(now, carries=bool(batch)),
            ask_survives=self.phase >= Phase.CLOSING and self._farewell.asks,
            holds=restraint.version,
            unpark=restraint.unpark,
            limits=self.stock.limits.version,
            max_items=self.gate.bound(self.config.max_items),
            max_item_bytes=self.gate.bound(self.config.max_item_bytes),
        )

    def _stats(self) -> list[StatChange]:
        try:
            changes = self.listeners.stats(self.phase is Phase.LEAVING)
        except Exception:  # a stat of the user's that cannot be sent must not stop the crawl
            logger.exception("the stats could not be sent")
            return []
        return [StatChange(change.how, as_unicode(change.field), as_unicode(change.value)) for change in changes]

    def _answered(self, flight: Flight, reply: Reply) -> None:
        self.exchanges += 1
        now = self.clock.now()
        if self.talk.away:
            self.talk.away = False
            self._task_idle_since = None
            self.listeners.work()
        else:
            self.pace.answered(now, got=bool(reply.leases or reply.tasks), lanes=reply.lanes > 0)
        match reply.outcome:
            case "layout":
                counters = self.config.keys.counters()
                self._refuse(
                    LayoutError(
                        f"{counters}: layout version {reply.layout}, this process knows 1: upgrade it, or use another key pattern"
                    )
                )
                return
            case "filter":
                self._refuse(misfit(self.config.keys.fingerprints(), reply.layout, self.config.filter.form))
                return
            case "fenced":
                self._fenced(flight, reply.last_applied)
            case _:
                self._applied(flight, reply, now)
                if flight.wish.bye and not self.outbox:
                    self._leave()
        self._finish_flushes()
        self.urgent = self.urgent or self.talk.inquiring
        self.arm()

    def _refuse(self, error: TrawlError) -> None:
        refused = self.listeners.refused
        self.stop()
        refused(error)

    # The answer of an applied exchange

    def _applied(self, flight: Flight, reply: Reply, now: float) -> None:
        batch, restraint = flight.batch, self.stock.restraint
        self._note(flight, reply, now)
        was_shut, was_idle = self.gate.shut, self._was_idle
        if reply.held is not None:
            self.stock.learn(reply.held)
        elif flight.wish.unpark:
            restraint.put_back(flight.wish.unpark, reply.left)
        if reply.limits is not None:
            self.stock.learn_limits(reply.limits)
            self.listeners.limits()
        self.stock.closes(reply.closing, now)
        arrived = self.stock.receive(reply, flight.sent, now)
        self._time_paced(now)
        self.demand.answered(reply, arrived=arrived)
        self.stock.receive_tasks(reply.tasks)
        if self.phase >= Phase.CLOSING:
            self.stock.release_all()
        nothing_left = reply.ready == 0 and reply.lanes == 0 and reply.leased == 0 and reply.parked == 0 and not restraint.paused
        told_all = flight.carried_all and not self.outbox and not self.talk.inquiring
        self._was_idle = told_all and not self.stock.buffer and nothing_left
        self.gate.answered(reply, paused=restraint.paused)
        for listener in self.listeners.applied:
            listener(batch, reply)
        if self.gate.opened() or arrived or self._was_idle != was_idle:
            self.listeners.work()
        self._tell_duplicates(batch, reply)
        if not self.task_idle:
            self._task_idle_since = None
        elif self._task_idle_since is None:
            self._task_idle_since = now
        if reply.tasks or self._was_idle or (was_shut and not self.gate.shut):
            self.listeners.tasks()

    def _note(self, flight: Flight, reply: Reply, now: float) -> None:
        self._journal.remember(now, flight.number, flight.batch)
        self._farewell.answered(now, carried=bool(flight.batch), survives=reply.survives)
        if reply.lost:
            logger.warning("%d leases were not ours any more; what they stood for runs elsewhere", reply.lost)

    def _tell_duplicates(self, batch: Batch, reply: Reply) -> None:
        for place in reply.duplicates:
            try:
                self.listeners.duplicate(batch.requests[place].payload)
            except Exception:  # a user's dupefilter; the leases are in the buffer already, and the next exchange must come
                logger.exception("a duplicate could not be reported")

    @property
    def idle(self) -> bool:
        """True when Redis has proved it: all that this process had is stored, no request is ready or parked, and no owner holds a
        lease. Never in a paused crawl.
        """
        return self._was_idle and not self.outbox and not self.talk.away

    @property
    def task_idle(self) -> bool:
        """True when the whole crawl has nothing to do: idle, and no start task waits, is leased or is parked."""
        last = self.demand.last
        if not self.idle or self.stock.tasks or last is None:
            return False
        return not (last.waiting or last.leased_tasks or last.parked_tasks)

    # Fenced

    def _fenced(self, flight: Flight, last_applied: int) -> None:
        if not self.talk.asks:
            self._start_over(flight, last_applied)
            return
        lacking = self._lacking(flight, last_applied)
        self.talk.heard(last_applied, keeps=bool(self._journal))
        if lacking:
            logger.warning("Redis came back older than when it fenced this process; replaying %d more exchanges", len(lacking))
            self.listeners.fenced()

    def _start_over(self, flight: Flight, last_applied: int) -> None:
        """Forget the leases, and replay the last writes under a new name, as Redis does not know us: we were taken for dead, or
        it came back with an older state.
        """
        self.outbox.forget_leases()
        lacking = self._lacking(flight, last_applied)
        logger.warning(
            "fenced: this process was taken for dead, or Redis came back with an older state;"
            " dropping %d unstarted requests, replaying %d exchanges",
            len(self.stock.buffer),
            len(lacking),
        )
        self.stock.forget_all()
        self.demand.start_over()
        self._flushes = [(self.talk.number + 1, done) for _, done in self._flushes]
        self.talk.start_over(last_applied, keeps=bool(self._journal))
        self._was_idle = False
        self._task_idle_since = None
        self.urgent = True
        self.listeners.fenced()

    def _lacking(self, flight: Flight, last_applied: int) -> list[Batch]:
        """Put writes that the refusing Redis lacks before everything that is to be sent."""
        lacking = self._journal.replay(self.talk.known(last_applied), self.clock.now(), flight.number, flight.batch)
        self.outbox.put_first(lacking)
        self._stats_again = [change for one in lacking for change in one.stats] + self._stats_again
        return lacking
