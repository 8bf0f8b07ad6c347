"""What `/control` accepts, and what fate each page draws."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from demo.forum.behaviour import Behaviour, Fault, FaultChoice
from demo.forum.server import run_events
from demo.forum.words import Bodies, NoSuchPage, page_count, page_number


def test_each_fate_comes_as_often_as_its_share_says() -> None:
    behaviour = Behaviour(error_rate=0.1, throttle_rate=0.2, reset_rate=0.2)
    choice = FaultChoice(seed=3)

    fates = Counter(choice.next(behaviour) for _ in range(10_000))

    wanted = {Fault.ERROR: 1_000, Fault.THROTTLED: 2_000, Fault.RESET: 2_000, Fault.NOT: 5_000}
    assert all(abs(fates[fate] - count) < 150 for fate, count in wanted.items()), fates


def test_the_same_seed_draws_the_same_fates_also_after_a_quiet_phase() -> None:
    spoiling = Behaviour(error_rate=0.5)
    one, other = FaultChoice(seed=3), FaultChoice(seed=3)
    for _ in range(10):
        assert other.next(Behaviour(rate=9, latency_ms=1)) is Fault.NOT

    assert [one.next(spoiling) for _ in range(100)] == [other.next(spoiling) for _ in range(100)]


def test_a_share_of_one_spoils_every_page() -> None:
    choice = FaultChoice(seed=3)

    assert {choice.next(Behaviour(reset_rate=1)) for _ in range(100)} == {Fault.RESET}


def test_a_page_is_rendered_once_per_revision_and_old_revisions_are_dropped() -> None:
    bodies, rendered = Bodies(), Counter[int]()

    def get(revision: int, page: int) -> bytes:
        def render() -> bytes:
            rendered[page] += 1
            return f"{revision}/{page}".encode()

        return bodies.get("f1", revision, page, render)

    assert [get(1, 1), get(1, 1), get(1, 2), get(2, 1), get(2, 1)] == [b"1/1", b"1/1", b"1/2", b"2/1", b"2/1"]
    assert rendered == {1: 2, 2: 1}


@pytest.mark.parametrize(("entries", "pages"), [(0, 1), (1, 1), (20, 1), (21, 2), (40, 2), (41, 3)])
def test_twenty_entries_fill_a_page_and_none_make_one_empty_page(entries: int, pages: int) -> None:
    assert page_count(entries) == pages


@pytest.mark.parametrize("asked", ["0", "4", "-1", "", "x", "1.0", " 1", "²", "١", "9" * 5_000])
def test_a_page_outside_the_range_or_no_number_is_missing(asked: str) -> None:
    with pytest.raises(NoSuchPage, match=r"^forum f1 has pages 1 to 3, not "):
        page_number(asked, 3, "forum f1")


def test_life_goes_at_its_rate_follows_a_change_and_freezes_at_zero() -> None:
    events = 0

    def advance() -> None:
        nonlocal events
        events += 1

    async def watch() -> list[float]:
        """Events per second at the wanted 500, 0 and 50 per second, over what the clock says has passed."""
        loop = asyncio.get_running_loop()
        rate = 500.0
        life = asyncio.create_task(run_events(lambda: rate, advance))
        seen = []
        for following in (0.0, 50.0, 0.0):
            before, started = events, loop.time()
            await asyncio.sleep(0.5)
            seen.append((events - before) / (loop.time() - started))
            rate = following
        life.cancel()
        return seen

    fast, frozen, slow = asyncio.run(watch())

    assert 300 <= fast <= 550
    assert frozen == 0
    assert 30 <= slow <= 55
