"""Pages that lists lead to and that do not exist: believed one at a time, and not where every one of them is missing."""

from __future__ import annotations

from forum_reader.definition.site import BreakerOptions
from forums.breaker.missing import BELIEVED_S, IN_A_ROW, MissingPages
from workers.breaker.hosts import MOST_TURNS, SETTLING_S, Step

OPTIONS = BreakerOptions(in_a_row=3, attempts=3)


def step(
    pages: MissingPages,
    url: str,
    blocks: int = 0,
    *,
    file: str = "v1",
    goods: int = 0,
    is_check: bool = False,
    held: bool = False,
    now: float = 100.0,
    options: BreakerOptions = OPTIONS,
) -> Step | None:
    return pages.step(url, blocks, file, options, goods=goods, is_check=is_check, held=held, now=now)


def opened(*, now: float = 100.0) -> MissingPages:
    pages = MissingPages()
    steps = [step(pages, f"/{n}", now=now) for n in range(IN_A_ROW * OPTIONS.in_a_row)]
    assert steps == [None, *[Step.AGAIN] * 4, Step.OPEN]
    return pages


def test_one_missing_page_is_believed_and_so_is_each_where_others_are_there() -> None:
    pages = MissingPages()
    for n in range(100):
        assert step(pages, f"/{n}") is None
        assert step(pages, f"/{n}", 1) is None, "the same page once more says nothing more"
        pages.urls.clear()


def test_where_every_page_is_missing_none_is_believed_and_the_breaker_opens_and_says_why() -> None:
    pages = opened()
    assert pages.reason("thread", "HTTP 404") == (
        "every thread page is missing (HTTP 404), 6 one after the other: is [pages.thread] url right?"
    )
    assert step(pages, "/7") is Step.AGAIN, "what was under way goes back"
    assert step(pages, "/7", held=True, now=1e6) is Step.AGAIN


def test_a_small_board_opens_it_too_when_each_page_was_tried_often_enough() -> None:
    pages = MissingPages()
    urls = ("/1", "/2", "/3")
    assert [step(pages, url) for url in urls] == [None, Step.AGAIN, Step.AGAIN]
    assert [step(pages, url, 1) for url in urls] == [Step.AGAIN] * 3
    assert step(pages, "/2", 2) is Step.OPEN
    there = MissingPages()
    assert [step(there, url, 2, goods=1) for url in urls] == [None] * 3, "others were there: these three were removed"


def test_after_a_probe_found_the_site_well_missing_pages_are_believed_by_the_same_file_only() -> None:
    later = 100.0 + SETTLING_S
    assert step(opened(), "/1", 1, now=later) is None
    pages = opened()
    assert [step(pages, f"/{n}", file="v2", now=later) for n in range(6)][-1] is Step.OPEN
    pages = opened()
    assert [step(pages, f"/{n}", now=100.0 + BELIEVED_S) for n in range(6)][-1] is Step.OPEN, "an hour later"


def test_what_is_only_checked_once_more_opens_nothing() -> None:
    pages = MissingPages()
    assert {step(pages, f"/{n}", is_check=True) for n in range(50)} == {None}


def test_no_page_goes_round_for_ever_and_without_a_breaker_all_are_believed() -> None:
    pages = opened()
    assert step(pages, "/1", MOST_TURNS * OPTIONS.attempts, held=True) is None
    off = BreakerOptions(enabled=False)
    assert {step(MissingPages(), f"/{n}", options=off) for n in range(50)} == {None}
