"""How a crawler ended, and what comes next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers import exits
from workers.exits import Decision, Exit, ExitKind, Next, RestartPolicy, decide

POLICY = RestartPolicy()


def end(kind: ExitKind, lived_s: float = 1.0) -> Exit:
    return Exit(kind=kind, code=kind.code if kind.code is not None else -9, lived_s=lived_s)


def test_the_table_in_the_docstring_is_the_table_in_the_code() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in (exits.__doc__ or "").splitlines() if line[:1] == "|"
    ]
    documented = {row[0]: (row[1].removesuffix(", others"), row[2]) for row in rows[2:]}
    assert documented == {k.label: ("-signal" if k.code is None else str(k.code), k.then.value) for k in ExitKind}


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        (0, ExitKind.FINISHED, "finished"),
        (1, ExitKind.CRASHED, "crashed (exit code 1)"),
        (2, ExitKind.REFUSED, "refused"),
        (3, ExitKind.ABORTED, "aborted"),
        (9, ExitKind.CRASHED, "crashed (exit code 9)"),
        (75, ExitKind.HUNG, "hung"),
        (77, ExitKind.LOST_SLOT, "lost-slot"),
        (-9, ExitKind.KILLED, "killed (SIGKILL)"),
        (-11, ExitKind.KILLED, "killed (SIGSEGV)"),
        (-64 - 1, ExitKind.KILLED, "killed (signal 65)"),
    ],
)
def test_an_exit_code_tells_the_kind(code: int, kind: ExitKind, text: str) -> None:
    exit_ = Exit.of(code, lived_s=1)
    assert exit_.kind is kind
    assert str(exit_) == text


def test_what_the_process_had_said_tells_a_stop_from_an_end() -> None:
    assert Exit.of(0, lived_s=1, stopping=True).kind is ExitKind.STOPPED
    assert Exit.of(1, lived_s=1, stopping=True).kind is ExitKind.CRASHED
    assert Exit.of(-9, lived_s=1, hung=True).kind is ExitKind.HUNG


def test_only_ends_that_gave_their_leases_back_are_clean() -> None:
    assert {kind for kind in ExitKind if kind.clean} == {ExitKind.FINISHED, ExitKind.STOPPED}


def test_a_crawler_that_lived_long_is_restarted_at_once_however_it_ended() -> None:
    for kind in ExitKind:
        expected = Decision(restart=False) if kind.then is Next.STOP else Decision(restart=True)
        assert decide(end(kind, lived_s=POLICY.quick_s), 4, POLICY) == expected


def test_quick_failures_wait_longer_and_longer_and_then_are_given_up() -> None:
    waits, quick_ends = [], 0
    while (decision := decide(end(ExitKind.CRASHED), quick_ends, POLICY)).restart:
        waits.append(decision.wait_s)
        quick_ends = decision.quick_ends
    assert waits == [0.5, 1.0, 2.0, 4.0]
    assert decision.crash_looping


def test_a_crawl_that_has_nothing_to_do_waits_but_is_never_given_up() -> None:
    quick_ends = 0
    for _ in range(50):
        decision = decide(end(ExitKind.FINISHED), quick_ends, POLICY)
        assert decision.restart
        quick_ends = decision.quick_ends
    assert decision.wait_s == POLICY.max_wait_s


@pytest.mark.parametrize("kind", [ExitKind.REFUSED, ExitKind.LOST_SLOT])
def test_what_cannot_get_better_is_not_restarted(kind: ExitKind) -> None:
    assert decide(end(kind), 0, POLICY) == Decision(restart=False)


@given(
    kind=st.sampled_from(ExitKind),
    lived_s=st.floats(0, 1e6),
    quick_ends=st.integers(0, 10_000),
    luck=st.floats(0, 1, exclude_max=True),
)
def test_every_decision_is_sound(kind: ExitKind, lived_s: float, quick_ends: int, luck: float) -> None:
    decision = decide(end(kind, lived_s), quick_ends, POLICY, luck=luck)
    assert 0 <= decision.wait_s <= POLICY.max_wait_s * (1 + POLICY.jitter)
    assert decision.quick_ends in (0, quick_ends + 1)
    assert not (decision.restart and decision.crash_looping)
    if decision.wait_s:
        assert decision.restart
        assert lived_s < POLICY.quick_s
