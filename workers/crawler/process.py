"""The main thread of a crawler process: handles signals, watches the crawl and reports, while the reactor runs in its thread.

It waits neither for the reactor (`workers.crawler.crawl`) nor for Redis (`workers.process.heartbeat`), so a signal, a dead
supervisor or a hung reactor is noticed within a tick.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import socket
import time
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

import psutil
import redis
from scrapy import Spider
from scrapy.settings import Settings

from redis_components.connection import connect
from redis_components.embedded import redis_url
from redis_components.frontier.config import FrontierConfig
from redis_components.keys import CrawlRecords
from redis_components.server.names import fleet_namespace, namespace_of
from redis_components.setting_values import number_of
from workers.logs.slot_log import OwnLog, SlotLog
from workers.process import memory, pipes
from workers.process.exit_kinds import ExitKind, shutdown_grace
from workers.process.heartbeat import PERIOD_S, Heartbeat
from workers.process.options import CrawlerOptions
from workers.process.pipes import HandshakeLimits, Parent, StopSignals, announce
from workers.process.run_recorder import own_run, report_run, with_figures
from workers.state.registry import CrawlerRecord, CrawlerState, Registry, Renewal

from . import crawl
from .adapt_settings import adapt
from .crawl import make_crawl
from .crawl_record import ServiceSpider
from .setting_types import CrawlerLimits
from .turns import Turns

TICK_S = 0.1  # how often the main thread looks at everything
IDLE_TICK_S = 0.4  # while no page is in flight; a signal, a lost slot and the end of the crawl are noticed at once
WATCHDOG_S = 7.0  # of the reactor; for a silent main thread the supervisor has `silence_s`
STARTING = 4  # times WATCHDOG_TIMEOUT while the crawl is being opened: many that start at once share few cores
WEIGH_S = 1.0  # how often the memory of its children is read
RATE_OVER = 6  # heartbeats over which pages per second are measured
GIVE_BACK_S = 1.0  # after SHUTDOWN_GRACE, for telling Redis which pages were not finished; shorter than the supervisor's margin
GONE_S = 1.0  # without an answer, from which on the reactor's thread is looked for
SUPERVISOR_GONE = "its supervisor is gone"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Stopping:
    """The reason and begin of the end of this process, while it finishes its pages in flight."""

    kind: ExitKind
    why: str
    since: float


class CrawlerProcess:
    """One crawl and the watchdogs, limits and heartbeat around it; `run` returns how it ended. Raises ConfigError."""

    def __init__(
        self,
        options: CrawlerOptions,
        settings: Settings,
        registry: Registry,
        signals: StopSignals,
        turns: Turns | None = None,
    ) -> None:
        self._turns = turns
        self._options, self._settings, self._registry, self._signals = options, settings, registry, signals
        self._watchdog_s = number_of(settings, "WATCHDOG_TIMEOUT", WATCHDOG_S)
        self._grace_s = number_of(settings, "SHUTDOWN_GRACE", shutdown_grace())
        self._period_s = number_of(settings, "HEARTBEAT_INTERVAL", PERIOD_S)
        self._limits = CrawlerLimits.of(settings)
        self._url = redis_url()
        start_key = options.settings.get("REDIS_START_URLS_KEY", "") if options.slot else ""
        service = ServiceSpider(loads=options.loads, consumer=options.consumer, start_key=start_key, job_of=options.job_of)
        self._crawl = make_crawl(
            settings, options.spider, options.arguments, service=service, owner=options.owner, adapt=self._adapt
        )
        self._lease_s = number_of(settings, "SCHEDULER_OWNER_TTL", FrontierConfig.ttl_s)
        self._frozen_s = 0.0
        self._ticked_at, self._tick_s = time.monotonic(), TICK_S
        self._parent = Parent(options.parent, options.pulse_fd) if options.parent else None
        self._pulse_fd = options.pulse_fd
        self._slot = options.slot
        self._log = OwnLog(SlotLog(Path(options.log_file))) if options.log_file else None
        self._heartbeat = Heartbeat(self._beat, period_s=self._period_s, on_news=signals.wake.set)
        self._crawl.on_end = signals.wake.set
        self._process, self._tree = psutil.Process(), memory.ProcessTree(os.getpid())
        self._weigh_at, self._children_bytes = 0.0, 0
        self._rss_bytes = self._resident()
        self._started_at = time.time()
        self._pages: deque[tuple[float, int]] = deque(maxlen=RATE_OVER)
        self._begun, self._begun_at = False, 0.0
        self._stopping: Stopping | None = None
        self._leaving_at: float | None = None
        self._record = self._look()
        self._client, self._is_known = connect(), False
        self._records = CrawlRecords(self._client)
        self._run = own_run(self._record, options.owner)

    def _adapt(self, settings: Settings, spider: type[Spider]) -> None:
        adapt(settings, spider, self._options, self._url)
        if self._turns:
            self._turns.check(spider)

    def run(self) -> ExitKind:
        self._write(HandshakeLimits(grace_s=self._grace_s, memory_hard_bytes=self._limits.memory_hard_bytes).to_line())
        if why := self._limits.too_low(self._rss_bytes):
            logger.error("%s", why)
            return ExitKind.REFUSED
        self._crawl.start()
        if self._slot is None:
            self._heartbeat.errand(lambda: report_run(self._client, self._run))
        else:
            signal.signal(signal.SIGCONT, self._thaw)
        self._heartbeat.start()
        kind = self._watch()
        if kind is ExitKind.LOST_SLOT:
            return kind  # at once: until then the reactor fetches pages that are others' by now
        self._heartbeat.stop()
        self._report(self._finish_reason())  # the last figures
        self._record = replace(self._look(CrawlerState.STOPPED), last_exit=kind.label, last_exit_kind=kind.label)
        self._leave(kind)
        return kind

    def _watch(self) -> ExitKind:
        next_pulse = 0.0
        while (kind := self._ended()) is None:
            if self._asked_to_stop():
                self._crawl.stop()
            begins = self._crawl.running and self._record.state is CrawlerState.STARTING
            if begins or time.monotonic() >= next_pulse:
                next_pulse = time.monotonic() + self._period_s
                self._report()
            if begins:
                self._heartbeat.now()  # a client that waits for this crawler need not wait for its next beat
            self._tick()
            self._crawl.poll()
            self._tell_record()
        return kind

    def _tell_record(self) -> None:
        """Store the crawl's record once, as soon as it is known: other processes find the crawl by it."""
        if self._is_known or (record := self._crawl.record) is None:
            return
        self._is_known = True
        if self._slot:
            self._heartbeat.errand(lambda: self._records.write(record))
        elif namespace_of(self._settings) == fleet_namespace():  # a crawl by hand in another namespace is not the service's
            self._heartbeat.errand(lambda: self._records.suggest(record))

    def _thaw(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the form of a handler
        """Act at SIGCONT: a tick later is too late, as the reactor's thread goes on at once and requests pages that others have
        now.
        """
        if why := self._leases_gone(time.monotonic() - self._ticked_at - self._tick_s):
            os.write(2, f"{why}; leaving at once\n".encode())
            announce(self._pulse_fd, ExitKind.LOST_SLOT)
            os._exit(ExitKind.LOST_SLOT.exit_code)

    def _leases_gone(self, frozen_s: float) -> str | None:
        if self._slot and frozen_s > self._lease_s:
            return f"this process stood still for {frozen_s:.0f} s: its leases are others' by now"
        return None

    def _tick(self) -> None:
        idle = self._begun and self._stopping is None and not self._crawl.figures.in_flight
        self._ticked_at, self._tick_s = time.monotonic(), IDLE_TICK_S if idle else TICK_S
        if frozen_s := pipes.sleep(self._tick_s, self._signals.wake.wait):
            self._crawl.excuse(frozen_s)
            self._frozen_s = frozen_s
        self._rss_bytes = self._resident()

    def _ended(self) -> ExitKind | None:
        """Return the kind of end if this process has to end now."""
        outcome = self._crawl.outcome
        if outcome:
            logger.info("the crawl is over: %s", outcome.reason)
            if outcome.failed:
                return ExitKind.CRASHED
            if outcome.reason == "refused":
                return ExitKind.REFUSED
            if self._stopping is None:
                return ExitKind.FINISHED
            # The kernel's signal may come before a supervisor with threads is gone for good.
            if self._stopping.kind is not ExitKind.STOPPED or not self._orphaned():
                return self._stopping.kind
            logger.info("stopped: %s", SUPERVISOR_GONE)
            return ExitKind.ORPHANED
        if why := self._leases_gone(self._frozen_s):
            logger.error("%s; exiting at once", why)
            return ExitKind.LOST_SLOT
        if self._heartbeat.lost:
            logger.error("slot %s belongs to another process now; exiting at once", self._slot.name if self._slot else "?")
            return ExitKind.LOST_SLOT
        if self._crawl.silent_s() > GONE_S and crawl.is_gone():
            logger.error("the reactor's thread has ended: the spider, or what it calls, raised SystemExit (sys.exit)")
            return ExitKind.CRASHED
        if self._crawl.silent_s() > self._watchdog_s * (1 if self._begun else STARTING):
            self._say_that_it_hangs()
            return ExitKind.HUNG
        if why := self._limits.exhausted(self._rss_bytes):
            logger.error("%s; exiting at once", why)
            return ExitKind.OUT_OF_MEMORY
        if self._stopping and (why := self._out_of_time(self._stopping)):
            self._leaving_at = self._leaving_at or time.monotonic()
            if self._crawl.give_back() or time.monotonic() - self._leaving_at > GIVE_BACK_S:
                logger.warning("exiting with pages in flight: %s", why)
                return ExitKind.ABORTED
        return None

    def _say_that_it_hangs(self) -> None:
        logger.error("the reactor has not answered for %.0f s; stacks of all threads:", self._crawl.silent_s())
        faulthandler.dump_traceback(all_threads=True)

    def _out_of_time(self, stopping: Stopping) -> str | None:
        if time.monotonic() - stopping.since > self._grace_s:
            return "the grace time is over"
        return "it was asked a second time" if self._parent is None and self._signals.count > 1 else None

    def _asked_to_stop(self) -> bool:
        if self._stopping is None and (reason := self._reason_to_stop()):
            kind, why = reason
            self._stopping = Stopping(kind=kind, why=why, since=time.monotonic())
            logger.info("stopping because %s: pages in flight get %.0f s", why, self._grace_s)
            self._report()  # before the exit code: the supervisor has to distinguish a stop from an end
            self._heartbeat.now()
        return self._stopping is not None

    def _reason_to_stop(self) -> tuple[ExitKind, str] | None:
        if self._orphaned():
            return ExitKind.ORPHANED, SUPERVISOR_GONE
        if self._signals.count:
            return ExitKind.STOPPED, "it got a signal"
        if not self._begun:
            return None
        age_s, pages = time.monotonic() - self._begun_at, self._crawl.figures.pages
        why = self._limits.reached(rss_bytes=self._rss_bytes, age_s=age_s, pages=pages)
        return (ExitKind.RECYCLED, why) if why else None

    def _resident(self) -> int:
        """Return the resident bytes of this process, and of its children as they were within the last second."""
        own = int(self._process.memory_info().rss)
        if time.monotonic() >= self._weigh_at:
            self._weigh_at = time.monotonic() + WEIGH_S
            self._children_bytes = max(0, self._tree.resident() - own)
        return own + self._children_bytes

    def _orphaned(self) -> bool:
        return self._parent is not None and self._parent.gone()

    def _finish_reason(self) -> str | None:
        return self._crawl.outcome.reason if self._crawl.outcome else None

    def _look(self, state: CrawlerState | None = None, note: str | None = None) -> CrawlerRecord:
        """Return this process's public record."""
        figures, silent_s = self._crawl.figures, self._crawl.silent_s()
        if self._crawl.running and not self._begun:
            self._begun, self._begun_at = True, time.monotonic()
        self._pages.append((time.monotonic(), figures.pages))
        (then, pages_then), (now, pages_now) = self._pages[0], self._pages[-1]
        if state is None:
            state = CrawlerState.RUNNING if self._begun else CrawlerState.STARTING
            state = CrawlerState.STOPPING if self._stopping else state
        return CrawlerRecord(
            spider=self._options.spider,
            number=self._slot.number if self._slot else None,
            pid=os.getpid(),
            node=self._options.node or socket.gethostname(),
            state=state,
            token=self._slot.token if self._slot else None,
            started_at=self._started_at,
            **vars(figures),
            pages_per_s=round((pages_now - pages_then) / (now - then), 1) if now > then else 0.0,
            rss_bytes=self._rss_bytes,
            lag_s=round(self._crawl.lag_s if silent_s < 1 else silent_s, 3),
            note=self._stopping.why if self._stopping else note,
            **vars(self._options.story),
        )

    def _report(self, note: str | None = None) -> None:
        """Report to the supervisor, through the pipe, also while Redis is away. The heartbeat reports to Redis."""
        self._record = self._look(note=note)
        self._run = with_figures(self._run, self._record)
        self._write(self._record.to_json().encode())
        if self._log:
            self._log.keep_small()
        if self._parent:
            # By C, in a thread that needs no GIL: an orphan whose GIL is held for ever would be there for ever. A supervisor that
            # is alive acts earlier.
            faulthandler.dump_traceback_later(3 * self._watchdog_s + 2 * self._period_s, exit=True)

    def _write(self, line: bytes) -> None:
        if self._pulse_fd is None:
            return
        try:
            os.write(self._pulse_fd, line + b"\n")
        except BlockingIOError:
            pass  # the supervisor is frozen; it will have to judge by what it finds when it comes back
        except OSError:
            self._pulse_fd = None  # it is gone; `_orphaned` finds it too

    def _beat(self) -> Renewal | None:
        """Renew the slot, in the heartbeat's thread: a crawler whose reactor does not answer lets its slot run out."""
        if self._crawl.silent_s() > 2 * self._period_s + 1:
            return None
        return self._registry.renew(self._slot, self._record) if self._slot else self._registry.note(self._record)

    def _leave(self, kind: ExitKind) -> None:
        """Record the end and release the slot, where no supervisor does so for this crawler."""
        try:
            if self._slot is None or self._orphaned():
                ended = replace(self._run, ended_at=time.time(), outcome=kind.label, exit_code=kind.exit_code)
                why = SUPERVISOR_GONE if kind is ExitKind.ORPHANED else self._finish_reason()
                report_run(self._client, replace(ended, reason=why))
            if self._slot is None:
                self._registry.forget([self._record.name])
            elif self._orphaned() and kind is not ExitKind.LOST_SLOT:
                self._registry.release(self._slot, self._record)
        except redis.RedisError as error:
            logger.warning("the final status could not be written to Redis: %s", error)
