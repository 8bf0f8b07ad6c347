"""What comes after a crawler's end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.process.exit_kinds import Exit, ExitKind, Next
from workers.state.registry import CrawlerRecord, CrawlerState
from workers.supervision.slot_history import Decision, RestartPolicy, Streak, decide, inherited

POLICY = RestartPolicy()
LEFT = CrawlerRecord(
    spider="toy",
    number=0,
    state=CrawlerState.RUNNING,
    started_at=100.0,
    beat_at=103.0,
    quick_ends=3,
    quick_failures=2,
)


def end(kind: ExitKind, lived_s: float = 1.0) -> Exit:
    return Exit(kind=kind, code=kind.code if kind.code is not None else -9, lived_s=lived_s)


def lives(kind: ExitKind, most: int = 50) -> list[Decision]:
    """The decisions after one short life after the other, until it is given up."""
    decisions, streak = [], Streak()
    for _ in range(most):
        decisions.append(decide(end(kind), streak, POLICY))
        streak = decisions[-1].streak
        if not decisions[-1].restart:
            break
    return decisions


def test_a_crawler_that_lived_long_is_restarted_at_once_however_it_ended() -> None:
    for kind in ExitKind:
        before = Streak(ends=4, failures=4)
        expected = Decision(restart=False, streak=before) if kind.then is Next.STOP else Decision(restart=True)
        assert decide(end(kind, lived_s=POLICY.quick_s), before, POLICY) == expected


def test_quick_failures_wait_longer_and_longer_and_then_are_given_up() -> None:
    *restarts, last = lives(ExitKind.CRASHED)
    assert [decision.wait_s for decision in restarts] == [0.5, 1.0, 2.0, 4.0, 8.0]
    assert last.crash_looping
    assert str(last) == "given up after 6 failures in a row"


def test_a_crawl_that_has_nothing_to_do_waits_but_is_never_given_up() -> None:
    decisions = lives(ExitKind.FINISHED)
    assert all(decision.restart for decision in decisions)
    assert decisions[-1].wait_s == POLICY.max_wait_s


def test_a_planned_replacement_does_not_wait_but_does_not_spin_either() -> None:
    decisions = lives(ExitKind.RECYCLED)
    assert all(decision.restart for decision in decisions)
    assert [decision.wait_s for decision in decisions[:4]] == [0.0, 0.5, 1.0, 2.0]
    assert decisions[-1].wait_s == POLICY.max_wait_s


def test_a_failure_after_short_lives_that_were_none_is_one_failure() -> None:
    streak = lives(ExitKind.FINISHED)[-1].streak
    decision = decide(end(ExitKind.CRASHED), streak, POLICY)
    assert decision.restart
    assert decision.streak.failures == 1


@pytest.mark.parametrize("kind", [ExitKind.REFUSED, ExitKind.LOST_SLOT, ExitKind.DRAINED])
def test_what_cannot_get_better_or_was_wanted_is_not_restarted(kind: ExitKind) -> None:
    assert decide(end(kind), Streak(), POLICY) == Decision(restart=False)


@given(
    kind=st.sampled_from(ExitKind),
    lived_s=st.floats(0, 1e6),
    ends=st.integers(0, 10_000),
    failures=st.integers(0, 5),
    luck=st.floats(0, 1, exclude_max=True),
)
def test_every_decision_is_sound(kind: ExitKind, lived_s: float, ends: int, failures: int, luck: float) -> None:
    streak = Streak(ends=ends + failures, failures=failures)
    decision = decide(end(kind, lived_s), streak, POLICY, luck=luck)
    assert 0 <= decision.wait_s <= POLICY.max_wait_s * (1 + POLICY.jitter)
    assert decision.streak in (Streak(), streak, streak.more(failure=True), streak.more(failure=False))
    assert not (decision.restart and decision.crash_looping)
    if decision.wait_s:
        assert decision.restart
        assert lived_s < POLICY.quick_s


# what a new supervisor goes on counting from


def test_a_supervisor_that_died_with_its_crawler_after_a_short_life_counts_as_a_failure() -> None:
    assert inherited(LEFT, POLICY) == Streak(ends=4, failures=3)
    orphaned = replace(LEFT, state=CrawlerState.STOPPED, last_exit_kind="orphaned")
    assert inherited(orphaned, POLICY) == Streak(ends=4, failures=3)


def test_after_a_long_life_nothing_is_counted() -> None:
    assert inherited(replace(LEFT, beat_at=LEFT.started_at + POLICY.quick_s), POLICY) == Streak()


@pytest.mark.parametrize("state", [CrawlerState.BACKING_OFF, CrawlerState.STOPPED])
def test_what_a_supervisor_has_counted_itself_is_not_counted_again(state: CrawlerState) -> None:
    assert inherited(replace(LEFT, state=state, last_exit="crashed (exit code 1)"), POLICY) == Streak(ends=3, failures=2)


def test_a_slot_that_was_given_up_has_one_try() -> None:
    given_up = replace(LEFT, state=CrawlerState.CRASH_LOOPING, quick_ends=9, quick_failures=9)
    streak = inherited(given_up, POLICY)
    assert decide(end(ExitKind.CRASHED), streak, POLICY).crash_looping
