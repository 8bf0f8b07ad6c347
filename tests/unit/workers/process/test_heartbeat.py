"""The thread that keeps a slot, and the errands it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import redis

from tests.support.processes import wait_until
from workers.process.heartbeat import Heartbeat
from workers.state.registry import Renewal, SlotCommand, SlotCommandKind

RETIRE = SlotCommand(word=SlotCommandKind.RETIRE)


@contextmanager
def beating(beat: Callable[[], Renewal | None], *, period_s: float) -> Iterator[Heartbeat]:
    heartbeat = Heartbeat(beat, period_s=period_s)
    heartbeat.start()
    try:
        yield heartbeat
    finally:
        heartbeat.stop()


def beats(*answers: Renewal | Exception | None) -> tuple[Callable[[], Renewal | None], list[int]]:
    """A beat that gives these answers, the last one for ever, and the list of its calls."""
    calls: list[int] = []

    def beat() -> Renewal | None:
        calls.append(len(calls))
        answer = answers[min(len(calls), len(answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return beat, calls


def test_it_remembers_the_last_answer() -> None:
    beat, _ = beats(Renewal(held=True), Renewal(held=True, order=RETIRE))
    with beating(beat, period_s=0.01) as heartbeat:
        wait_until(lambda: heartbeat.order == RETIRE, "the order was heard")
        assert not heartbeat.lost
    beat, _ = beats(Renewal(held=True, order=RETIRE), Renewal(held=False))
    with beating(beat, period_s=0.01) as heartbeat:
        wait_until(lambda: heartbeat.lost, "the loss was heard")


def test_a_redis_that_is_away_changes_nothing_and_is_asked_again() -> None:
    beat, calls = beats(Renewal(held=True, order=RETIRE), redis.ConnectionError("gone"), None, redis.ConnectionError("gone"))
    with beating(beat, period_s=0.01) as heartbeat:
        wait_until(lambda: len(calls) > 5, "it goes on")
        assert (heartbeat.lost, heartbeat.order) == (False, RETIRE)
        unanswered_s = heartbeat.unanswered_s
        wait_until(lambda: heartbeat.unanswered_s > unanswered_s, "and it knows how long it was not answered")


def test_now_does_not_wait_for_the_period() -> None:
    beat, calls = beats(Renewal(held=True))
    with beating(beat, period_s=60) as heartbeat:
        wait_until(lambda: len(calls) == 1, "the first beat")
        heartbeat.now()
        wait_until(lambda: len(calls) == 2, "the second beat")


def test_errands_are_run_in_order_before_the_next_beat_and_again_until_redis_has_taken_them() -> None:
    said: list[str] = []
    tries = iter([redis.ConnectionError("gone"), redis.TimeoutError("slow"), None])

    def first() -> None:
        if error := next(tries):
            raise error
        said.append("first")

    with beating(lambda: said.append("beat") or Renewal(held=True), period_s=0.01) as heartbeat:  # type: ignore[func-returns-value]
        wait_until(lambda: said, "a beat")
        heartbeat.errand(first)
        heartbeat.errand(lambda: said.append("second"))
        wait_until(lambda: "second" in said, lambda: str(said))
    assert said.index("second") == said.index("first") + 1


def test_stopping_runs_what_is_left_and_beats_no_more() -> None:
    said: list[str] = []
    beat, calls = beats(Renewal(held=True))
    heartbeat = Heartbeat(beat, period_s=60)
    heartbeat.start()
    wait_until(lambda: calls, "a beat")
    heartbeat.errand(lambda: said.append("release"))
    heartbeat.stop()
    assert said == ["release"]
    assert not [t for t in threading.enumerate() if t.name == "heartbeat"]


def test_stopping_does_not_wait_for_a_redis_that_hangs() -> None:
    hanging = threading.Event()

    def beat() -> Renewal:
        hanging.wait(60)
        return Renewal(held=True)

    heartbeat = Heartbeat(beat, period_s=1)
    heartbeat.start()
    heartbeat.stop(0.05)
    hanging.set()
