"""Decides when a crawler is restarted and when its slot is given up. Pure: no clock, no I/O.

A *quick* end comes within seconds of the start. Quick ends in a row wait longer and longer, so that nothing spins; those that are
failures (the kinds with back-off in `workers.process.exit_kinds`) are counted until the slot is given up as crash-looping. One
longer life, or another configuration, resets the count. The count is in the slot's record, so it survives the death of the
supervisor.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from workers.process.exit_kinds import Exit, ExitKind, Next
from workers.state.registry import CrawlerRecord, CrawlerState


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


def inherited(before: CrawlerRecord | None, config: str | None, policy: RestartPolicy) -> Streak:
    """Return the streak that a new supervisor continues, from the last record of its slot and the configuration of its node.

    A record with a running process was left by a supervisor that died with it: one more end, which was not counted. A slot that
    was given up, and is tried again all the same, has one try.
    """
    if before is None or before.config != config:
        return Streak()
    streak = Streak(ends=before.quick_ends, failures=before.quick_failures)
    if before.state.given_up:
        return Streak(ends=streak.ends, failures=min(streak.failures, policy.max_quick_failures - 1))
    orphaned = before.state is CrawlerState.STOPPED and before.last_exit_kind == ExitKind.ORPHANED.label
    if not (before.state.has_process or orphaned):
        return streak
    return streak.more(failure=True) if before.beat_at - before.started_at < policy.quick_s else Streak()
