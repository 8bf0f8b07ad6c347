"""When a site counts as broken for one process, and what becomes of the pages that were blocked."""

from __future__ import annotations

import pytest

from forum_reader.definition.site import BreakerOptions
from forum_reader.page.soft_block import BlockVerdict, Cause
from workers.breaker.hosts import LEAST_BLOCKED, SETTLING_S, WINDOW, SiteHealth, Step

OPTIONS = BreakerOptions(in_a_row=5, share=0.5, attempts=3)
WALL = BlockVerdict(cause=Cause.CHALLENGE, reason="a challenge")
PRIVATE = BlockVerdict(cause=Cause.REFUSED, reason="refused", this_page_only=True)


def bad(
    health: SiteHealth, verdict: BlockVerdict = WALL, blocks: int = 1, *, url: str = "/1", held: bool = False, now: float = 100.0
) -> Step:
    return health.bad(verdict, url, blocks, OPTIONS, held=held, now=now)


def test_a_wall_opens_after_so_many_in_a_row_and_its_pages_go_back() -> None:
    health = SiteHealth()
    assert [bad(health) for _ in range(5)] == [Step.AGAIN] * 4 + [Step.OPEN]
    assert [bad(health) for _ in range(20)] == [Step.AGAIN] * 20, "what was under way goes back, and opens nothing again"


def test_a_page_between_them_begins_the_count_anew() -> None:
    health = SiteHealth()
    for _ in range(4):
        bad(health)
    health.good()
    assert [bad(health) for _ in range(5)][-1] is Step.OPEN


def test_what_may_be_about_one_page_has_to_be_met_on_several() -> None:
    health = SiteHealth()
    assert [bad(health, PRIVATE, n, url=f"/{page}") for n in (1, 2) for page in (1, 2)] == [Step.AGAIN] * 4
    assert [bad(health, PRIVATE, 3, url=f"/{page}") for page in (1, 2)] == [Step.AGAIN] * 2, "two pages, and no other: who knows"
    assert [bad(health, PRIVATE, url=f"/{page}") for page in (3, 4, 5)] == [Step.AGAIN] * 2 + [Step.OPEN]


def test_a_list_that_was_never_anything_else_opens_it_too() -> None:
    health = SiteHealth()
    steps = [bad(health, PRIVATE, blocks) for _ in range(5) for blocks in (1, 2, 3)]
    assert steps == [Step.AGAIN, Step.AGAIN, Step.GIVE_UP] * 4 + [Step.AGAIN, Step.AGAIN, Step.OPEN]


@pytest.mark.parametrize(("verdict", "end"), [(PRIVATE, Step.PRIVATE), (WALL, Step.GIVE_UP)])
def test_one_page_of_a_site_that_is_well_is_given_up_and_may_be_private(verdict: BlockVerdict, end: Step) -> None:
    health = SiteHealth()
    steps = []
    for blocks in (1, 2, 3):
        steps.append(bad(health, verdict, blocks))
        health.good()
    assert steps == [Step.AGAIN, Step.AGAIN, end]


def test_it_is_private_also_where_the_good_pages_came_first_and_the_private_ones_together() -> None:
    health = SiteHealth()
    first = [bad(health, PRIVATE, 1, url=url) for url in ("/1", "/2")]
    health.good()
    rest = [bad(health, PRIVATE, blocks, url=url) for blocks in (2, 3) for url in ("/1", "/2")]
    assert first + rest == [Step.AGAIN] * 4 + [Step.PRIVATE] * 2


def test_without_a_good_page_since_nobody_knows_whether_a_page_is_private() -> None:
    health = SiteHealth()
    for _ in range(100):
        health.good()
    assert [bad(health, PRIVATE, blocks) for blocks in (1, 2, 3)] == [Step.AGAIN, Step.AGAIN, Step.GIVE_UP]


def test_one_page_alone_speaks_for_the_site_when_nothing_else_comes() -> None:
    health = SiteHealth()
    assert [bad(health, WALL, blocks) for blocks in (1, 2, 3)] == [Step.AGAIN, Step.AGAIN, Step.OPEN]


def test_every_second_answer_is_enough_when_there_were_many() -> None:
    health = SiteHealth()
    steps = []
    for _ in range(WINDOW):
        steps.append(bad(health))
        health.good()
    assert steps.index(Step.OPEN) >= LEAST_BLOCKED


def test_a_few_odd_pages_at_the_end_of_a_queue_are_given_up_many_open_it() -> None:
    odd = BlockVerdict(cause=Cause.FORMAT, reason="has no rows", this_page_only=True)
    health = SiteHealth()
    for _ in range(300):
        health.good()
    rounds = [[bad(health, odd, blocks, url=f"/{page}") for page in range(6)] for blocks in (1, 2, 3)]
    assert rounds == [[Step.AGAIN] * 6] * 2 + [[Step.GIVE_UP] * 6]
    assert Step.OPEN in [bad(health, odd, 1, url=f"/more/{page}") for page in range(WINDOW)]
    fresh = SiteHealth()
    assert [bad(fresh, odd, url=f"/{page}") for page in range(5)][-1] is Step.OPEN, "nothing else was ever read"


def test_one_in_four_is_not_enough() -> None:
    health = SiteHealth()
    for _ in range(200):
        assert bad(health) is Step.AGAIN
        for _ in range(3):
            health.good()


def test_while_the_site_is_held_nothing_is_counted_but_the_attempts_have_an_end() -> None:
    health = SiteHealth()
    assert {bad(health, blocks=n, held=True) for n in range(1, 9)} == {Step.AGAIN}
    assert bad(health, blocks=9, held=True) is Step.GIVE_UP


def test_it_opens_again_when_the_wall_is_still_there_later() -> None:
    health = SiteHealth()
    for _ in range(5):
        bad(health)
    later = 100 + SETTLING_S
    assert [bad(health, now=later) for _ in range(5)][-1] is Step.OPEN


def test_a_breaker_that_is_switched_off_opens_nothing() -> None:
    off = BreakerOptions(enabled=False, attempts=3)
    health = SiteHealth()
    assert [health.bad(WALL, "/1", n, off, held=False, now=0.0) for n in (1, 2, 3)] == [Step.AGAIN, Step.AGAIN, Step.GIVE_UP]
    assert not any(health.stumbled(off, now=0.0) for _ in range(100))


def test_a_site_that_hangs_is_held_before_the_tries_of_each_page_are_spent() -> None:
    health = SiteHealth()
    assert [health.stumbled(OPTIONS, now=0.0) for _ in range(20)] == [False] * 19 + [True]
    health = SiteHealth()
    for _ in range(19):
        health.stumbled(OPTIONS, now=0.0)
    health.answered()
    assert not health.stumbled(OPTIONS, now=0.0)
