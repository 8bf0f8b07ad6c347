"""The supervisor of one slot: keeps one crawler process in it until it is told otherwise.

Decisions are elsewhere and pure (`workers.exits.decide`). Redis is spoken to in the heartbeat's thread: the loop here never waits
for it, so a crawler is watched, and a node drained, also while Redis hangs.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from redis_components.registry import CrawlerRecord, CrawlerState, OrderWord, Registry, Renewal, Slot
from redis_components.runs import Run

from .crawler_options import CrawlerOptions
from .exits import Decision, Exit, ExitKind, RestartPolicy, decide
from .heartbeat import Heartbeat
from .launcher import LaunchedCrawler, launch
from .log_stream import LogStream
from .logs import SlotLog
from .run_book import RunBook

TICK_S = 0.1  # how often the crawler is looked at
RELEASE_TIMEOUT_S = 5.0  # longest wait for Redis to take the slot back; without it the slot runs out by itself

logger = logging.getLogger(__name__)


class Verdict(StrEnum):
    """Why a supervisor let go of its slot."""

    DRAINED = "drained"  # this node is being shut down
    RETIRED = "retired"  # the fleet is smaller now
    LOST = "lost"  # the slot was given to somebody else while this node was cut off or frozen
    CRASH_LOOPING = "crash-looping"  # its crawlers died too often too fast
    REFUSED = "refused"  # its crawler cannot run as configured


_LAST_STATE = {Verdict.CRASH_LOOPING: CrawlerState.CRASH_LOOPING, Verdict.REFUSED: CrawlerState.REFUSED}


@dataclass(frozen=True, kw_only=True)
class SupervisorConfig:
    """How patient a supervisor is."""

    grace_s: float = 13.0  # from SIGTERM to SIGKILL; more than the crawler's own SHUTDOWN_GRACE
    silence_s: float = 12.0  # a crawler whose main thread has said nothing for so long is killed: frozen, or stuck in C code
    start_s: float = 60.0  # the same before its first word: a cold disk can be slow
    period_s: float = 2.0  # between renewals of the slot
    restarts: RestartPolicy = field(default_factory=RestartPolicy)


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a supervisor needs from its node: all of it can be left out in tests."""

    draining: Callable[[], bool] = lambda: False  # whether this node is being shut down
    on_record: Callable[[CrawlerRecord], None] = lambda _: None  # told the crawler's last word, in another thread; never raises
    on_run: Callable[[Run], object] = lambda _: (
        None
    )  # told when a crawler began and ended, in another thread; may raise RedisError
    expire_owner: Callable[[str, str], object] = lambda _spider, _owner: None  # take back the leases of a crawler that died (e)
    node: str = ""


class Supervisor:
    """Launches, watches, restarts and ends the crawler of one slot that this process holds. `run` returns why it let go."""

    def __init__(
        self,
        slot: Slot,
        registry: Registry,
        *,
        options: CrawlerOptions,
        log: SlotLog | None = None,
        config: SupervisorConfig | None = None,
        surroundings: Surroundings | None = None,
    ) -> None:
        self._slot = slot
        self._registry = registry
        self._config = config or SupervisorConfig()
        self._around = surroundings or Surroundings()
        self._options = replace(options, slot=slot, node=self._around.node)
        self._log = log or SlotLog.of(slot.spider, slot.number)
        self._stream = LogStream(self._log, slot.name)
        self._book = RunBook(slot, self._around.node, lambda run: self._heartbeat.errand(lambda: self._around.on_run(run)))
        self._heartbeat = Heartbeat(self._beat, period_s=self._config.period_s)
        self._crawler: LaunchedCrawler | None = None
        self._starts = 0
        self._last_exit: Exit | None = None
        self._quick_ends = 0
        self._reloaded: str | None = None  # the reason of the last order to reload that was obeyed
        self._record: CrawlerRecord | None = None  # what to tell the fleet while there is no crawler that tells it itself
        self._heard: CrawlerRecord | None = None  # the crawler's last word, not passed on yet

    def run(self) -> Verdict:
        """Supervise until there is a verdict. An exception ends the crawler too and gives the slot back."""
        last = self._state(CrawlerState.STOPPED)
        self._heartbeat.start()
        self._stream.start()
        try:
            verdict = self._supervise()
            last = self._state(_LAST_STATE.get(verdict, CrawlerState.STOPPED))
            if last.state.given_up:
                last = replace(last, note=self._last_lines())
            return verdict
        finally:
            # Also after SystemExit, which is how Celery revokes a task: no crawler outlives its supervisor.
            if self._crawler:
                self._end(self._crawler)
            self._heartbeat.errand(lambda: self._registry.release(self._slot, last))
            self._heartbeat.stop(RELEASE_TIMEOUT_S)
            self._stream.stop()

    def _supervise(self) -> Verdict:
        while (verdict := self._verdict()) is None:
            end = self._one_life()
            if end is None:
                continue  # it was ended on purpose: there is a verdict now, or a fresh process is wanted
            decision = decide(end, self._quick_ends, self._config.restarts, luck=random.random())  # noqa: S311 - jitter
            self._quick_ends = decision.quick_ends
            self._say_what_happened(end, decision)
            if not decision.restart:
                return self._given_up(end)
            self._wait(decision.wait_s)
        return verdict

    def _verdict(self) -> Verdict | None:
        if self._heartbeat.lost:
            return Verdict.LOST
        if self._around.draining():
            return Verdict.DRAINED
        order = self._heartbeat.order
        return Verdict.RETIRED if order and order.word is OrderWord.RETIRE else None

    def _reload_wanted(self) -> str | None:
        """The reason of an order to replace the crawler by a fresh process that was not obeyed yet."""
        order = self._heartbeat.order
        return order.reason if order and order.word is OrderWord.RELOAD and order.reason != self._reloaded else None

    def _given_up(self, end: Exit) -> Verdict:
        if end.kind is ExitKind.LOST_SLOT:
            return Verdict.LOST
        return Verdict.REFUSED if end.kind is ExitKind.REFUSED else Verdict.CRASH_LOOPING

    def _one_life(self) -> Exit | None:
        """From one crawler's launch to its end; None when that end was our doing."""
        crawler = self._crawler = self._launch()
        while (code := crawler.poll()) is None:
            if self._verdict() or self._reload_wanted():
                self._end(crawler)
                return None
            if crawler.pulse() and crawler.record:
                self._record = None  # it speaks for itself
                self._heard = crawler.record
                self._book.heard(crawler.record)
            if crawler.silent_s > (self._config.silence_s if crawler.record else self._config.start_s):
                logger.error("%s: crawler %d has fallen silent; killing it", self._slot.name, crawler.pid)
                crawler.dump_stacks()
                crawler.kill()
                return self._bury(crawler, -9, hung=True)
            time.sleep(TICK_S)
        return self._bury(crawler, code)

    def _launch(self) -> LaunchedCrawler:
        last_exit = str(self._last_exit) if self._last_exit else None
        self._reloaded = self._reload_wanted() or self._reloaded
        options = replace(self._options, restarts=self._starts, last_exit=last_exit, owner=self._owner())
        crawler = launch(options, self._log)
        self._stream.new_process(crawler.pid)
        self._book.began(options.owner, crawler.pid)
        self._record = self._state(CrawlerState.STARTING, pid=crawler.pid)
        self._heartbeat.now()
        logger.info("%s: launched crawler %d", self._slot.name, crawler.pid)
        self._starts += 1
        return crawler

    def _end(self, crawler: LaunchedCrawler) -> None:
        """Stop a crawler for good: gracefully, or at once when the slot is somebody else's."""
        crawler.terminate()
        deadline = time.monotonic() + (0.0 if self._heartbeat.lost else self._config.grace_s)
        while (code := crawler.poll()) is None and time.monotonic() < deadline and not self._heartbeat.lost:
            crawler.pulse()  # the pipe must not run full
            time.sleep(TICK_S / 2)
        if code is None:
            logger.warning("%s: crawler %d did not stop in time; killing it", self._slot.name, crawler.pid)
            crawler.kill()
        self._bury(crawler, crawler.poll() or 0)

    def _bury(self, crawler: LaunchedCrawler, code: int, *, hung: bool = False) -> Exit:
        crawler.pulse()
        stopping = crawler.record is not None and crawler.record.state is CrawlerState.STOPPING
        end = self._last_exit = Exit.of(code, lived_s=crawler.lived_s, stopping=stopping, hung=hung)
        crawler.close()
        self._stream.drain()
        if crawler.record:
            self._book.heard(crawler.record)
        self._book.ended(end, self._why(end))
        self._crawler = None
        if not end.kind.clean:
            owner = self._owner(restart=self._starts - 1)
            self._heartbeat.errand(lambda: self._around.expire_owner(self._slot.spider, owner))
        return end

    def _why(self, end: Exit) -> str | None:
        """For the history: who wanted this end, or what the crawler said last."""
        if verdict := self._verdict():
            order = self._heartbeat.order
            return order.reason if order and order.reason else str(verdict)
        return self._last_lines(1) if end.code > 0 else None

    def _say_what_happened(self, end: Exit, decision: Decision) -> None:
        what = f"{end} after {end.lived_s:.1f} s; {decision}"
        log = logger.info if end.kind.clean else logger.warning
        log("%s: crawler %s", self._slot.name, what)
        if decision.restart:
            self._record = self._state(CrawlerState.BACKING_OFF, note=what)
            self._heartbeat.now()
        if not end.kind.clean:
            # What a process said last is the reason only where it ended by itself.
            reason = self._last_lines(1) if end.code > 0 else None
            line = f"{what}; {reason or f'see {self._log.path.name}'}"
            self._heartbeat.errand(lambda: self._registry.report_error(self._slot.name, line))

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not (self._verdict() or self._reload_wanted()):
            time.sleep(min(TICK_S, max(0.0, deadline - time.monotonic())))

    def _owner(self, *, restart: int | None = None) -> str:
        """Id under which the frontier keeps the leases of one crawler process; no two processes ever have the same."""
        return f"{self._slot.name}#{self._slot.token}.{self._starts if restart is None else restart}"

    def _beat(self) -> Renewal:
        """In the heartbeat's thread."""
        answer = self._registry.renew(self._slot, self._record)
        heard, self._heard = self._heard, None
        if heard:
            self._around.on_record(heard)
        return answer

    def _state(self, state: CrawlerState, *, pid: int = 0, note: str | None = None) -> CrawlerRecord:
        return CrawlerRecord(
            spider=self._slot.spider,
            number=self._slot.number,
            pid=pid,
            node=self._around.node,
            state=state,
            token=self._slot.token,
            started_at=time.time(),
            restarts=max(0, self._starts - 1),
            last_exit=str(self._last_exit) if self._last_exit else None,
            note=note,
        )

    def _last_lines(self, lines: int = 20) -> str | None:
        return "\n".join(self._log.tail(lines)) or None
