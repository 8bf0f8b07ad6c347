"""Decides when a crawler is restarted and when its slot is given up, and keeps how its processes ended.

A *quick* end comes within seconds of the start. Quick ends in a row wait longer and longer, so that nothing spins; those that are
failures (the kinds with back-off in `workers.process.exit_kinds`) are counted until the slot is given up as crash-looping. One
longer life, or an order to reload, resets the count. The count is in the slot's record, so it survives the death of the
supervisor.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from redis_components.server.printable import without_class_names
from workers.logs.slot_log import SlotLog, last_words
from workers.process.exit_kinds import Exit, ExitKind, Next
from workers.state.registry import CrawlerRecord, CrawlerState, Slot, SlotStory


@dataclass(frozen=True, kw_only=True)
class RestartPolicy:
    """Delays and limits of restarts. An end within `quick_s` of the start is a quick one."""

    quick_s: float = 10.0
    first_wait_s: float = 0.5  # before the restart after the first quick end; doubled with each further one in a row
    max_wait_s: float = 30.0
    max_quick_failures: int = 6  # in a row; one more than it takes to set a deadly page aside (SCHEDULER_MAX_ATTEMPTS)
    jitter: float = 0.25  # so that crawlers which died together do not come back together


@dataclass(frozen=True, kw_only=True)
class Streak:
    """Quick ends in a row."""

    ends: int = 0
    failures: int = 0  # how many of them were failures

    def more(self, *, failure: bool) -> Streak:
        return Streak(ends=self.ends + 1, failures=self.failures + failure)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The step after a crawler's end."""

    restart: bool
    wait_s: float = 0.0
    streak: Streak = field(default_factory=Streak)  # this end included: hand it to the next `decide`
    crash_looping: bool = False

    def __str__(self) -> str:
        if self.restart:
            return f"restart in {self.wait_s:.1f} s"
        return f"given up after {self.streak.failures} failures in a row" if self.crash_looping else "not restarted"


def decide(end: Exit, streak: Streak, policy: RestartPolicy, *, luck: float = 0.5) -> Decision:
    """Decide the step after `end`, which comes after `streak`; `luck` is a random number in [0, 1).

    An end after a long life restarts at once, for every kind of end. A crawl that finishes quickly again and again has nothing
    to do, and one that is recycled quickly has a low limit: they wait longer and longer, and are never given up for that.
    """
    if end.kind.then is Next.STOP:
        return Decision(restart=False, streak=streak)
    if end.lived_s >= policy.quick_s:
        return Decision(restart=True)
    failure = end.kind.then is Next.BACK_OFF
    streak = streak.more(failure=failure)
    if failure and streak.failures >= policy.max_quick_failures:
        return Decision(restart=False, streak=streak, crash_looping=True)
    free = 1 if end.kind.then is Next.REPLACE else 0
    wait_s = policy.first_wait_s * 2.0 ** min(streak.ends - 1 - free, 30) if streak.ends > free else 0.0
    wait_s = min(policy.max_wait_s, wait_s) * (1 + policy.jitter * (2 * luck - 1))
    return Decision(restart=True, wait_s=wait_s, streak=streak)


def inherited(before: CrawlerRecord, policy: RestartPolicy) -> Streak:
    """Return the streak that a new supervisor continues, from the last record of its slot.

    A record with a running process was left by a supervisor that died with it: one more end, which was not counted. A slot that
    was given up, and is tried again all the same, has one try.
    """
    streak = Streak(ends=before.quick_ends, failures=before.quick_failures)
    if before.state.given_up:
        return Streak(ends=streak.ends, failures=min(streak.failures, policy.max_quick_failures - 1))
    orphaned = before.state is CrawlerState.STOPPED and before.last_exit_kind == ExitKind.ORPHANED.label
    if not (before.state.has_process or orphaned):
        return streak
    return streak.more(failure=True) if before.beat_at - before.started_at < policy.quick_s else Streak()


_RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Fault|Unavailable|Interrupt)\b(?:: .*)?$")  # below a traceback
_LOGGED = re.compile(r"\b(?:ERROR|CRITICAL)\b|^trawl: ")


def error_line(lines: Sequence[str]) -> str | None:
    """Return the last line that names an error: the end of a traceback, a logged error, else the last line; None
    without lines.
    """
    shown = [line.strip() for line in lines if line.strip()]
    for matches in (_RAISED.match, _LOGGED.search):
        if found := next((line for line in reversed(shown) if matches(line)), None):
            return found
    return shown[-1] if shown else None


LAST_LINES = 20  # of the log, kept in the record of a slot that was given up


class SlotHistory:
    """Begins with the slot's last record."""

    def __init__(
        self,
        slot: Slot,
        log: SlotLog,
        policy: RestartPolicy,
        *,
        node: str,
        before: CrawlerRecord | None,
    ) -> None:
        self._slot = slot
        self._log = log
        self._policy = policy
        self._node = node
        self.story = SlotStory()
        if before:
            streak = inherited(before, policy)
            self.story = replace(
                before.story,
                restarts=before.restarts + 1,
                quick_ends=streak.ends,
                quick_failures=streak.failures,
            )
        self._launched = False

    @property
    def streak(self) -> Streak:
        """Quick ends in a row, those before this supervisor included."""
        return Streak(ends=self.story.quick_ends, failures=self.story.quick_failures)

    @property
    def hopeless(self) -> bool:
        """True if another launch has no point: crawlers took their supervisors along, again and again."""
        return self.streak.failures >= self._policy.max_quick_failures

    def count(self, streak: Streak) -> None:
        self.story = replace(self.story, quick_ends=streak.ends, quick_failures=streak.failures)

    def launches(self, reload: str | None) -> None:
        """Record the coming launch of a crawler; `reload` is the reason of the order that asked for it."""
        if reload is not None:
            self.count(Streak())
        self.story = replace(
            self.story,
            reload=self.story.reload if reload is None else reload,
            restarts=self.story.restarts + self._launched,
        )
        self._launched = True

    def buries(self, end: Exit) -> None:
        """Record a crawler's end."""
        self.story = replace(self.story, last_exit=str(end), last_exit_at=time.time(), last_exit_kind=end.kind.label)
        if end.lived_s >= self._policy.quick_s:
            self.count(Streak())

    def record(self, state: CrawlerState, *, pid: int = 0, note: str | None = None) -> CrawlerRecord:
        """Return the record of a slot whose crawler does not report itself."""
        return CrawlerRecord(
            spider=self._slot.spider,
            number=self._slot.number,
            pid=pid,
            node=self._node,
            state=state,
            token=self._slot.token,
            started_at=time.time(),
            note=note,
            **vars(self.story),
        )

    def given_up(self, state: CrawlerState) -> CrawlerRecord:
        """Return the record of a slot that is left alone, with all the details for its repair."""
        note = self.story.last_exit or "its supervisor died with it"
        if state is CrawlerState.CRASH_LOOPING:
            note = f"{note}; {self.streak.failures} failures in a row, each within {self._policy.quick_s:.0f} s"
        lines = "\n".join(last_words(self._log, LAST_LINES))
        return replace(self.record(state, note=note), error=self.error(), log=lines or None)

    def error(self) -> str | None:
        """Return the line of the log with the reason of the last crawler's end, if there is one."""
        line = error_line(last_words(self._log, LAST_LINES))
        return line and without_class_names(line)
