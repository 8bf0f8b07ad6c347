"""Readings of a simulated thread whose pages move while they are read: what they must have seen, and what they say of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forums.spiders.scan_plan import page_to_begin
from forums.spiders.thread_reading import (
    MOST_REPAIRS,
    Reading,
    comments_known,
    follow,
    is_consistent,
    is_whole,
    listed,
    missing,
    overlap,
)
from forums.state.database_state import ThreadRecord
from tests.support.examples import examples


class Thread:
    """Comments in their order; `told`: whether the site says how many there are."""

    def __init__(self, comments: int, per_page: int, *, told: bool = True, letters: str = "c") -> None:
        self.per_page, self.told, self.letters = per_page, told, letters
        self.made = 0
        self.ids: list[str] = []
        for _ in range(comments):
            self.act("reply", 0)

    def act(self, what: str, which: int) -> None:
        if what == "reply":
            self.made += 1
            self.ids.append(self._name())
        elif what == "insert":  # below the comment that it answers
            self.made += 1
            self.ids.insert(which % (len(self.ids) + 1), self._name())
        elif self.ids:
            del self.ids[which % len(self.ids)]

    def _name(self) -> str:
        return f"{self.letters}{self.made}" if self.letters else f"{self.made * 7919 % 10007:05x}-no-number"


class Reader:
    """What `forum_detail` and the thread's record do."""

    def __init__(
        self, thread: Thread, *, numbered: bool = True, behind_the_end: str = "missing", newest_first: bool = False
    ) -> None:
        self.thread, self.numbered, self.behind_the_end = thread, numbered, behind_the_end
        self.newest_first = newest_first
        self.seen: set[str] = set()
        self.record: Reading | None = None
        self.requests = 0

    def read(self, events: Any = (), *, whole: bool = False, limit: int = 10_000) -> Reading:
        """One reading; `events` happen between its pages."""
        thread, events, number = self.thread, list(events), 1
        reading = Reading(started_at="", thread="t")
        if self.record is not None and not whole:
            last = self.record
            number = last.last_page
            known = comments_known(last) if last.total is None else last.total
            after = last.last if number > 1 else None
            pages, number = number, 1 if self.newest_first else number
            reading = Reading(started_at="", thread="t", after=after, known=known, first=number, page=number, last_page=pages)
        pages = 0
        while True:
            pages += 1
            assert pages < 500, "it never ends"
            begin = (number - 1) * thread.per_page
            ids = self.shown(begin, begin + thread.per_page)
            total = len(thread.ids) if thread.told else None
            if number > 1 and not ids and self.behind_the_end == "missing":
                step = missing(reading, numbered=self.numbered, newest_first=self.newest_first)
            else:
                if not ids and self.behind_the_end == "last":
                    ids = thread.ids[: thread.per_page] if self.newest_first else thread.ids[-thread.per_page :]
                has_next = begin + thread.per_page < len(thread.ids)
                self.seen.update(ids)
                given = {"has_next": has_next, "numbered": self.numbered, "newest_first": self.newest_first}
                step = follow(reading, ids, total=total, limit=limit, **given)
            reading = step.reading
            if step.go is None:
                break
            number = number + 1 if step.go == "on" else step.go
            assert number == reading.page
            if events:
                thread.act(*events.pop(0))
        for event in events:
            thread.act(*event)
        self.record = reading
        self.requests = pages
        return reading

    def shown(self, begin: int, end: int) -> list[str]:
        """The comments from one place to another, on a page the oldest first."""
        ids = self.thread.ids
        return ids[::-1][begin:end][::-1] if self.newest_first else ids[begin:end]

    @property
    def missed(self) -> set[str]:
        return set(self.thread.ids) - self.seen


def events(*kinds: str) -> Any:
    return st.lists(st.tuples(st.sampled_from(kinds), st.integers(0, 60)), max_size=10)


sizes = {"comments": st.integers(0, 40), "per_page": st.integers(1, 7), "told": st.booleans(), "numbered": st.booleans()}
ways = st.sampled_from(["missing", "empty", "last"])


@settings(max_examples=examples(150), deadline=None)
@given(
    **sizes, way=ways, back=st.booleans(),
    rounds=st.lists(st.tuples(events("reply"), events("reply", "reply", "remove")), max_size=4),
)  # fmt: skip
def test_each_new_comment_is_read_whatever_was_removed_between_two_readings(
    comments: int, per_page: int, told: bool, numbered: bool, way: str, back: bool, rounds: list[tuple[Any, Any]]
) -> None:
    reader = Reader(Thread(comments, per_page, told=told), numbered=numbered, behind_the_end=way, newest_first=back)
    for during, between in rounds:
        reader.read(during)
        for event in between:
            reader.thread.act(*event)
    reader.read()
    assert reader.missed == set()


def test_replies_that_push_a_whole_page_down_are_followed_by_the_next_reading() -> None:
    """With its newest comments first: the second page has what the first one had, and those below were not read."""
    reader = Reader(Thread(0, 1, told=False), numbered=False, newest_first=True)
    reader.read([("reply", 0), ("reply", 0)])
    reader.read([("reply", 0)])
    reader.read()
    assert reader.missed == set()


@settings(max_examples=examples(150), deadline=None)
@given(**sizes, back=st.booleans(), between=events("reply", "reply", "remove"))
def test_ids_that_are_no_numbers_cost_requests_and_lose_nothing(
    comments: int, per_page: int, told: bool, numbered: bool, back: bool, between: Any
) -> None:
    reader = Reader(Thread(comments, per_page, told=told, letters=""), numbered=numbered, newest_first=back)
    reader.read()
    for event in between:
        reader.thread.act(*event)
    reader.read()
    assert reader.missed == set()


@settings(max_examples=examples(150), deadline=None)
@given(comments=st.integers(0, 40), per_page=st.integers(1, 7), back=st.booleans(), between=events("reply", "insert"))
def test_answers_that_stand_on_earlier_pages_are_found_where_the_site_tells_how_many_there_are(
    comments: int, per_page: int, back: bool, between: Any
) -> None:
    reader = Reader(Thread(comments, per_page), newest_first=back)
    reader.read()
    for event in between:
        reader.thread.act(*event)
    reader.read()
    assert reader.missed == set()


@settings(max_examples=examples(150), deadline=None)
@given(comments=st.integers(0, 40), per_page=st.integers(2, 7), before=st.integers(0, 5), removed=st.integers(0, 60))
def test_a_removal_in_the_middle_of_a_reading_hides_nothing_where_the_site_tells_how_many_there_are(
    comments: int, per_page: int, before: int, removed: int
) -> None:
    reader = Reader(Thread(comments, per_page))
    reading = reader.read([*[("reply", 0)] * before, ("remove", removed)])
    assert (
        reader.missed == set() or before >= reader.requests - 2
    )  # it came after the last page, or was preceded by a reply there
    assert reading.repairs <= MOST_REPAIRS


@settings(max_examples=examples(150), deadline=None)
@given(comments=st.integers(0, 40), per_page=st.integers(1, 7), told=st.booleans(), during=events("reply", "remove"))
def test_only_a_reading_in_which_the_count_stood_still_says_that_it_saw_all(
    comments: int, per_page: int, told: bool, during: Any
) -> None:
    assert is_consistent(Reader(Thread(comments, per_page, told=told)).read())
    thread = Thread(comments, per_page)
    pages = -(-comments // per_page)
    reading = Reader(thread).read(during[:1])
    assert is_consistent(reading) == (pages <= 1 or not during)
    assert is_whole(reading)


def test_a_thread_that_grew_costs_its_last_page() -> None:
    reader = Reader(Thread(100, 20))
    assert reader.read().requests == 0
    assert reader.requests == 5
    reader.thread.act("reply", 0)
    reading = reader.read()
    assert (reader.requests, reading.first, reading.fresh, is_whole(reading)) == (2, 5, 1, False)
    assert is_consistent(reading)
    assert comments_known(reading) == 101
    reader.thread.act("reply", 0)
    reader.read()
    assert reader.requests == 1


def test_pages_that_moved_far_are_met_by_doubling_steps() -> None:
    reader = Reader(Thread(200, 5), behind_the_end="empty")
    reader.read()
    del reader.thread.ids[20:120]
    reader.thread.act("reply", 0)
    reading = reader.read()
    assert reader.missed == set()
    assert reading.first < 17
    assert reader.requests < 20


def test_the_last_post_that_is_repeated_on_the_next_page_counts_once() -> None:
    reading = Reading(started_at="", thread="t")
    first = follow(reading, ["a", "b", "c"], total=5, has_next=True, numbered=True, limit=99)
    last = follow(first.reading, ["c", "d", "e"], total=5, has_next=False, numbered=True, limit=99).reading
    assert (last.seen, is_whole(last), is_consistent(last)) == (5, True, True)


def test_a_page_that_comes_again_is_the_end_and_no_proof() -> None:
    reading = Reading(started_at="", thread="t")
    first = follow(reading, ["a", "b"], total=None, has_next=True, numbered=True, limit=99)
    again = follow(first.reading, ["a", "b"], total=None, has_next=True, numbered=True, limit=99)
    assert again.go is None
    assert not is_consistent(again.reading)
    assert again.reading.last_page == 1


def test_empty_pages_end_a_chain_that_always_has_a_next_page() -> None:
    step = follow(Reading(started_at="", thread="t"), ["a"], total=None, has_next=True, numbered=True, limit=99)
    for _ in range(2):
        assert step.go == "on"
        step = follow(step.reading, [], total=None, has_next=True, numbered=True, limit=99)
    assert step.go is None
    assert step.reading.last_page == 1


def test_a_reading_ends_at_the_limit() -> None:
    step = follow(Reading(started_at="", thread="t"), ["a", "b"], total=9, has_next=True, numbered=True, limit=2)
    assert (step.go, step.cut) == (None, True)


def test_a_site_that_claims_more_than_it_shows_is_no_proof_of_removals() -> None:
    step = follow(Reading(started_at="", thread="t"), ["a", "b"], total=9, has_next=False, numbered=True, limit=99)
    assert not is_consistent(step.reading)


@pytest.mark.parametrize(
    ("ids", "after", "known"),
    [
        (["c1", "c2", "c3"], "c2", 2),
        (["c1", "c2", "c3"], "c9", 3),
        (["c4", "c5"], "c3", None),
        (["c4", "c6"], "c5", 1),  # the last stored one was removed
        (["x4", "x6"], "c5", None),
        (["a", "b"], "b", 2),
        (["a", "b"], "z", None),
        ([], "z", None),
    ],
)
def test_what_is_known_of_a_page(ids: list[str], after: str, known: int | None) -> None:
    assert overlap(ids, after) == known


def test_a_thread_that_lost_comments_is_read_whole_where_it_is_short() -> None:
    assert page_to_begin(30, ThreadRecord("", listed=30, last_page=2)) == 2
    assert page_to_begin(None, ThreadRecord("", listed=30, last_page=2)) == 2
    assert page_to_begin(29, ThreadRecord("", comments=30, last_page=2)) == 2
    assert page_to_begin(29, ThreadRecord("", listed=30, last_page=2)) == 1
    assert page_to_begin(29, ThreadRecord("", listed=300, last_page=20)) == 20
    assert page_to_begin(31, ThreadRecord("", listed=30, last_page=2, short=1)) == 1


@pytest.mark.parametrize(
    ("reading", "then"),
    [
        ({"seen": 7, "replies": 7}, (7, 0)),
        ({"seen": 9, "replies": 7}, (9, 0)),  # two came meanwhile
        ({"seen": 6, "replies": 7}, (6, 1)),  # the page was older than the list
        ({"seen": 6, "replies": 7, "short": 1}, (6, 2)),
        ({"seen": 6, "replies": 7, "short": 2}, (7, 0)),  # the list counts otherwise
        ({"seen": 6, "replies": None}, (None, 0)),
        ({"first": 3, "fresh": 1, "expected": 1, "replies": 41}, (41, 0)),
        ({"first": 3, "fresh": 0, "expected": 1, "replies": 41}, (40, 1)),
        ({"first": 3, "fresh": 0, "expected": None, "replies": 41}, (41, 0)),
        ({"first": 3, "fresh": 0, "expected": -2, "replies": 38}, (40, 0)),
    ],
)
def test_a_reading_that_saw_fewer_than_the_list_claims_is_tried_again_twice(
    reading: dict[str, Any], then: tuple[int | None, int]
) -> None:
    assert listed(Reading(started_at="", thread="t", **reading)) == then


def test_a_reading_travels_with_its_requests() -> None:
    reading = Reading(started_at="2026-01-01", thread="t", after="c9", tail=("a", "b"), total=3)
    assert msgspec.convert(msgspec.to_builtins(reading), Reading) == reading
