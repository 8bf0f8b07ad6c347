"""The supervisor of one slot: keeps one crawler process in it until an order ends it.

Decisions are elsewhere and pure (`workers.supervision.slot_history.decide`). The heartbeat's thread talks to Redis: the loop
here never waits for it, so a crawler is watched, and a node drained, also while Redis hangs.

Orders of the fleet come with the answer to a renewal of the slot, so within 2 s. The crawler itself gets SIGTERM alone.

Requests that a crawler held when it died go back to the queue in Redis: `redis_components/lua/lib/reclaim_leases.lua`.
"""

from __future__ import annotations

import logging
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial

from redis_components.errors import ConfigError
from workers.logs.slot_log import SlotLog
from workers.logs.worker_log import LogStream
from workers.process.exit_kinds import MARGIN_S, RELEASE_TIMEOUT_S, SHUTDOWN_GRACE_S, Exit, ExitKind
from workers.process.exit_kinds import VARIABLE as GRACE_VARIABLE
from workers.process.heartbeat import PERIOD_S, Heartbeat
from workers.process.memory import oom_kills
from workers.process.options import CrawlerOptions
from workers.process.page_at_work import PageAtWork
from workers.process.pipes import HandshakeLimits, Wake
from workers.process.run_recorder import RunRecorder
from workers.state.history import Run
from workers.state.registry import CrawlerRecord, CrawlerState, Registry, Renewal, Slot, SlotCommand, SlotCommandKind
from workers.state.reports import Note

from .launcher import TICK_S, LaunchedCrawler, Watch, launch
from .slot_history import Decision, RestartPolicy, SlotHistory, decide


class SlotOutcome(StrEnum):
    """Reason for which a supervisor released its slot."""

    DRAINED = "drained"  # this node is being shut down
    RETIRED = "retired"  # the fleet is smaller now
    LOST = "lost"  # the slot was given to another process while this node was cut off or frozen
    CRASH_LOOPING = "crash-looping"  # its crawlers died too often too fast
    REFUSED = "refused"  # its crawler cannot run as configured
    FINISHED = "finished"  # of a job: its crawler came to the end of the crawl


@dataclass(frozen=True, kw_only=True)
class SupervisorConfig:
    """Timeouts of a supervisor."""

    node_grace_s: float = SHUTDOWN_GRACE_S  # of crawlers, that this node counts with when it is shut down itself
    margin_s: float = MARGIN_S  # from the end of the crawler's own SHUTDOWN_GRACE to SIGKILL
    silence_s: float = 7.0  # of a crawler's main thread (three missed reports) until it is killed: frozen, or stuck in C code
    start_s: float = 120.0  # the same before its first report
    period_s: float = PERIOD_S  # between renewals of the slot
    restarts: RestartPolicy = field(default_factory=RestartPolicy)


@dataclass(frozen=True, kw_only=True)
class SupervisorHooks:
    """Callbacks of a supervisor to its node: all of them can be left out in tests."""

    draining: Callable[[], bool] = lambda: False  # True while this node is being shut down
    before_launch: Callable[[CrawlerOptions], Callable[[], object] | None] = lambda _: None  # returns an errand
    on_launch: Callable[[int], object] = lambda _: None  # with each crawler's pid
    on_record: Callable[[CrawlerRecord], None] = lambda _: None  # with each new record, in another thread; never raises
    on_run: Callable[[Run], object] = lambda _: None  # when a crawler began and ended, in another thread; may fail for Redis
    expire_owner: Callable[[str, str, str], object] = lambda _spider, _owner, _why: None  # reclaim a dead crawler's leases (e)
    on_deadly_page: Callable[[PageAtWork, str], object] = lambda _page, _what: None  # the page at which a crawler hung or died
    on_finished: Callable[[str], object] = lambda _: None  # of a job: with Scrapy's finish reason; may fail for Redis
    declared: Callable[[CrawlerOptions], CrawlerOptions] = lambda options: options  # as the service is declared now; asks Redis
    before: CrawlerRecord | None = None  # the slot's last record
    node: str = ""


logger = logging.getLogger(__name__)


_LEFT_ALONE = {ExitKind.LOST_SLOT: SlotOutcome.LOST, ExitKind.REFUSED: SlotOutcome.REFUSED}
_LAST_STATE = {SlotOutcome.CRASH_LOOPING: CrawlerState.CRASH_LOOPING, SlotOutcome.REFUSED: CrawlerState.REFUSED}


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
        hooks: SupervisorHooks | None = None,
        resting: LaunchedCrawler | None = None,
    ) -> None:
        self._slot = slot
        self._registry = registry
        self._config = config or SupervisorConfig()
        self._around = hooks or SupervisorHooks()
        self._options = replace(options, slot=slot, node=self._around.node)
        self._log = log or SlotLog.of(slot.spider, slot.number)
        self._stream = LogStream(self._log, slot.name)
        self._book = RunRecorder(slot, self._around.node, lambda run: self._heartbeat.errand(lambda: self._around.on_run(run)))
        self._wake = Wake()
        self._heartbeat = Heartbeat(self._beat, period_s=self._config.period_s, on_news=self._wake.set)
        self._crawler: LaunchedCrawler | None = None
        self._starts = 0
        self._ledger = SlotHistory(
            slot,
            self._log,
            self._config.restarts,
            node=self._around.node,
            before=self._around.before,
        )
        self._record: CrawlerRecord | None = None  # the record to send while no crawler sends its own
        self._news: CrawlerRecord | None = None  # the last record of the crawler, not passed on yet
        self.last: CrawlerRecord | None = None
        """After `run`: what was left in the slot's record."""
        self.resting = resting
        """A process that takes the first crawl; after `run`: one that may take another, to be let go by the caller."""

    def run(self) -> SlotOutcome:
        """Supervise until there is a verdict. An exception ends the crawler too and gives the slot back."""
        self.last = self._ledger.record(CrawlerState.STOPPED)
        self._heartbeat.start()
        if (before := self._around.before) and before.state.has_process:
            lost = f"{before.name}: process {before.pid} on {before.node}: its node is gone, and its end was not reported"
            event = Note(about="crawler", type="lost", said=lost, at=before.beat_at)
            self._heartbeat.errand(lambda: self._registry.add_note(event))
        try:
            verdict = self._supervise()
            state = _LAST_STATE.get(verdict)
            self.last = self._ledger.given_up(state) if state else self._ledger.record(CrawlerState.STOPPED)
            return verdict
        finally:
            # Also after SystemExit, which is how Celery revokes a task: no crawler outlives its supervisor.
            if self._crawler:
                self._end(self._crawler, ExitKind.DRAINED, "its task was revoked, or its worker shut down cold")
                self.last = self._ledger.record(CrawlerState.STOPPED)
            last = self.last
            self._heartbeat.errand(lambda: self._registry.release(self._slot, last))
            self._heartbeat.stop(RELEASE_TIMEOUT_S)
            self._stream.close()

    # the slot

    def _supervise(self) -> SlotOutcome:
        if self._ledger.hopeless:
            logger.error("%s: %d supervisors in a row died with their crawlers", self._slot.name, self._ledger.streak.failures)
            return SlotOutcome.CRASH_LOOPING
        while (verdict := self._verdict()) is None:
            if self._heartbeat.unanswered_s > self._registry.slot_ttl_s:
                # Redis was away, or this node stood still: the slot may be another's by now, the next answer shows it.
                self._wake.wait(TICK_S)
                continue
            end = self._one_life()
            if end is None:
                continue  # it was ended on purpose: there is a verdict or an order now
            if self._options.job_of and end.kind is ExitKind.FINISHED:
                self._heartbeat.errand(partial(self._around.on_finished, end.reason or end.kind.label))
                return SlotOutcome.FINISHED
            decision = decide(end, self._ledger.streak, self._config.restarts, luck=random.random())  # noqa: S311 - jitter
            self._ledger.count(decision.streak)
            self._say_what_happened(end, decision)
            if not decision.restart:
                return _LEFT_ALONE.get(end.kind, SlotOutcome.CRASH_LOOPING)
            self._wait(decision.wait_s)
        return verdict

    def _verdict(self) -> SlotOutcome | None:
        if self._heartbeat.lost:
            return SlotOutcome.LOST
        if self._around.draining():
            return SlotOutcome.DRAINED
        order = self._heartbeat.order
        return SlotOutcome.RETIRED if order and order.word in (SlotCommandKind.RETIRE, SlotCommandKind.STOP) else None

    def _reload(self) -> SlotCommand | None:
        """Return an order to reload that was not obeyed yet. It stays with the slot; its reason distinguishes it from the one
        before.
        """
        order = self._heartbeat.order
        return order if order and order.word is SlotCommandKind.RELOAD and order.reason != self._ledger.story.reload else None

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not (self._verdict() or self._reload()):
            self._wake.wait(min(TICK_S, max(0.0, deadline - time.monotonic())))

    # one crawler's life

    def _one_life(self) -> Exit | None:
        """Run one crawler from its launch to its end; return None when the supervisor caused that end."""
        killed = oom_kills()
        try:
            crawler = self._crawler = self._launch()
        except OSError as error:  # a full disk, a read-only folder, no more processes: it may pass
            return self._not_launched(error)
        watch = Watch(crawler, silence_s=self._config.silence_s, start_s=self._config.start_s)
        while (code := crawler.poll()) is None:
            self._stream.pass_on()
            if self._verdict():
                self._end(crawler, ExitKind.DRAINED)
                return None
            if order := self._reload():
                self._end(crawler, ExitKind.RECYCLED, order.reason)
                return None
            if crawler.pulse() and crawler.record:
                self._on_report(crawler.record, crawler.terms)
            if crawler.rests:
                continue
            if trouble := watch.trouble():
                return self._kill(crawler, *trouble)
            watch.tick(self._wake)
        if code == -signal.SIGKILL and oom_kills() > killed:
            return self._bury(crawler, code, ExitKind.OUT_OF_MEMORY, "by the kernel")
        return self._bury(crawler, code)

    def _not_launched(self, error: OSError) -> Exit:
        where = f" ({error.filename})" if error.filename else ""
        reason = f"it could not be launched: {error.strerror or error}{where}"
        end = Exit.of(ExitKind.CRASHED.exit_code, lived_s=0.0, reason=reason)
        self._ledger.buries(end)
        return end

    def _on_report(self, record: CrawlerRecord, terms: HandshakeLimits) -> None:
        first, self._record = self._record is not None, None  # its own reports replace it
        self._news = record
        self._book.reported(record)
        if first and terms.grace_s > self._config.node_grace_s:
            what = f"SHUTDOWN_GRACE = {terms.grace_s:g} in its settings: a worker that is shut down does not wait this long"
            what = f"{what}; start workers with {GRACE_VARIABLE}={terms.grace_s:g} instead"
            self._heartbeat.errand(lambda: self._registry.report_error(self._slot.name, what))

    def _launch(self) -> LaunchedCrawler:
        order = self._reload()
        self._ledger.launches(order.reason if order else None)
        options = replace(self._options, story=self._ledger.story, owner=self._owner())
        if errand := self._around.before_launch(options):
            self._heartbeat.errand(errand)
        resting, self.resting = self.resting, None
        crawler = launch(options, self._log, resting)
        self._around.on_launch(crawler.pid)
        self._stream.new_process(crawler.pid)
        self._book.began(options.owner, crawler.pid)
        self._send(self._ledger.record(CrawlerState.STARTING, pid=crawler.pid))
        logger.info("%s: launched crawler %d", self._slot.name, crawler.pid)
        self._starts += 1
        return crawler

    def _kill(self, crawler: LaunchedCrawler, why: ExitKind, reason: str) -> Exit:
        logger.error("%s: killing crawler %d: %s", self._slot.name, crawler.pid, reason)
        if why is ExitKind.HUNG:
            crawler.excuse_page_if_stopped()
            crawler.dump_stacks()
        crawler.kill()
        return self._bury(crawler, -signal.SIGKILL, why, reason)

    def _end(self, crawler: LaunchedCrawler, why: ExitKind, reason: str | None = None) -> None:
        """Stop a crawler: gracefully, or at once when the slot belongs to another process, or when an operator orders it."""
        crawler.terminate()
        began = time.monotonic()
        while (code := crawler.poll()) is None and not self._heartbeat.lost:
            crawler.pulse()  # the pipe must not run full, and it may send its terms only now
            self._stream.pass_on()
            if (order := self._heartbeat.order) and order.word is SlotCommandKind.STOP:
                break
            if time.monotonic() - began > crawler.terms.grace_s + self._config.margin_s:
                break
            crawler.wait(TICK_S / 5, self._wake)
        if code is None:
            logger.warning("%s: crawler %d did not stop in time; killing it", self._slot.name, crawler.pid)
            crawler.kill()
        end = self._bury(crawler, crawler.poll() or 0, why, reason)
        logger.info("%s: crawler %s after %.1f s", self._slot.name, end, end.lived_s)

    def _bury(self, crawler: LaunchedCrawler, code: int, why: ExitKind | None = None, reason: str | None = None) -> Exit:
        crawler.pulse()
        stopping = crawler.record is not None and crawler.record.state is CrawlerState.STOPPING
        page = crawler.page_at_work()
        has_reason = stopping or (code == 0 and self._options.job_of)  # at the end of a crawl the note is Scrapy's finish reason
        reason = reason or (crawler.record.note if crawler.record and has_reason else None)
        end = Exit.of(code, lived_s=crawler.lived_s, announced=crawler.announced, why=why, reason=reason)
        blamed = page if page and end.kind.blames_page(code, page.lasted_s) else None
        if blamed:
            end = replace(end, reason=f"{end.over(blamed)}{f'; {reason}' if reason else ''}")
        if crawler.rests:
            self.resting = crawler
        else:
            crawler.close()
        self._stream.pass_on()
        if crawler.record:
            self._book.reported(crawler.record)
        self._book.ended(end, self._why(end))
        self._crawler = None
        self._ledger.buries(end)
        if not end.kind.clean:
            owner = self._owner(start=self._starts - 1)
            over = end.over(blamed) if blamed else ""
            self._heartbeat.errand(lambda: self._around.expire_owner(self._slot.spider, owner, over))
        if blamed:
            self._heartbeat.errand(lambda: self._around.on_deadly_page(blamed, end.over(blamed)))
        return end

    def _why(self, end: Exit) -> str | None:
        """Return the reason of an end, for the history: of the order, or from the crawler's last line."""
        order = self._heartbeat.order
        match self._verdict():
            case SlotOutcome.DRAINED:
                return "its node is shutting down"
            case SlotOutcome.LOST:
                return "its slot is another's"
            case SlotOutcome.RETIRED:
                return order.reason if order else None
        if reload := self._reload():
            return f"reload: {reload.reason}"
        return end.reason or self._last_line(end)

    # reports

    def _say_what_happened(self, end: Exit, decision: Decision) -> None:
        what = f"{end} after {end.lived_s:.1f} s{f', {end.reason}' if end.reason else ''}; {decision}"
        log = logger.info if end.kind.clean else logger.warning
        log("%s: crawler %s", self._slot.name, what)
        if decision.restart:
            self._send(self._ledger.record(CrawlerState.BACKING_OFF, note=what))
        if end.kind is ExitKind.RECYCLED and decision.wait_s:
            line = f"recycled after short lives, again and again: {end.reason}; raise that limit"
            self._heartbeat.errand(lambda: self._registry.report_error(self._slot.name, line))
        elif not end.kind.clean:
            reason = self._last_line(end)
            # Without figures: the same again is counted, not added.
            line = f"{end}{f', {end.reason}' if end.reason else ''}: {reason or f'see {self._log.path.name}'}"
            line = line if decision.restart else f"{decision}; {line}"
            self._heartbeat.errand(lambda: self._registry.report_error(self._slot.name, line))

    def _last_line(self, end: Exit) -> str | None:
        """Return the reason that a process logged for its end: its last error line. After a hang that would be part of a stack
        dump.
        """
        return self._ledger.error() if end.code > 0 and end.kind is not ExitKind.HUNG else None

    def _send(self, record: CrawlerRecord) -> None:
        self._record = self._news = record
        self._heartbeat.now()

    def _beat(self) -> Renewal:
        """Renew the slot, in the heartbeat's thread."""
        with suppress(ConfigError):  # a file that is being edited: the crawler runs as it was declared before
            self._options = self._around.declared(self._options)  # before an order to reload can come
        answer = self._registry.renew(self._slot, self._record)
        news, self._news = self._news, None
        if news:
            self._around.on_record(news)
        return answer

    def _owner(self, *, start: int | None = None) -> str:
        """Return the id under which the frontier keeps the leases of one crawler process; no two processes ever have the same."""
        return f"{self._slot.name}#{self._slot.token}.{self._starts if start is None else start}"
