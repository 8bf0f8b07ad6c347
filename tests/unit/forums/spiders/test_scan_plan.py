"""Scans of a simulated forum whose list moves while it is read: what they must find, and when they stop."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forum_reader.reading.page_records import ListedThread
from forum_reader.reading.read_page import NO_SIGN
from forums.records.stored import Marks, PostTask, Scan
from forums.records.tasks_and_items import marks_after
from forums.spiders.scan_plan import (
    MOST_FED,
    MOST_KEPT,
    Change,
    PagePlan,
    ScanState,
    change_of,
    checks_of,
    front_of,
    is_gap,
    plan_page,
    vanished,
)
from forums.state.database_state import ThreadRecord
from tests.support.examples import examples

START = datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)


class Forum:
    """A list in the order of activity, sticky threads first. Each event takes a second; times are shown in steps of `grain_s`."""

    def __init__(self, threads: int, per_page: int, grain_s: int = 1, *, times: bool = True) -> None:
        self.now = 0
        self.per_page, self.grain_s, self.times = per_page, grain_s, times
        self.threads: dict[str, tuple[int, bool]] = {}  # activity, sticky
        self.made = 0
        for _ in range(threads):
            self.act("new", 0)

    def act(self, what: str, which: int) -> None:
        """One event, for the thread at place `which` of the list."""
        self.now += 1
        listed = self.listed()
        one = listed[which % len(listed)] if listed else None
        if what == "new" or one is None:
            self.made += 1
            self.threads[f"t{self.made}"] = (self.now, False)
        elif what == "reply":
            self.threads[one] = (self.now, self.threads[one][1])
        elif what == "remove":
            del self.threads[one]
        elif what == "stick":
            self.threads[one] = (self.threads[one][0], True)
        elif what == "unstick":
            self.threads[one] = (self.threads[one][0], False)

    def listed(self) -> list[str]:
        return sorted(self.threads, key=lambda one: (not self.threads[one][1], -self.threads[one][0]))

    def page(self, number: int) -> tuple[list[ListedThread], bool]:
        listed = self.listed()
        rows = listed[(number - 1) * self.per_page : number * self.per_page]
        return [self._row(one) for one in rows], number * self.per_page < len(listed)

    def _row(self, one: str) -> ListedThread:
        activity, sticky = self.threads[one]
        shown = START + timedelta(seconds=activity - activity % self.grain_s)
        return ListedThread(id=one, token=str(activity), last_activity=shown if self.times else None, sticky=sticky)


class Scanner:
    """What a crawl does with the plans: it stores what it fetches, and keeps the marks."""

    def __init__(self, forum: Forum) -> None:
        self.forum = forum
        self.marks: Marks | None = None
        self.records: dict[str, ThreadRecord] = {}
        self.fed: set[tuple[str, str]] = set()
        self.checked: list[str] = []  # by the last scan
        self.scans = 0
        self.pages = 0

    def scan(self, events: Any = (), *, limit: int = 1000, fails_at: int = 0, stored: bool = True, **state: Any) -> Scan:
        """One scan; `events` happen one by one between its pages, and those that are left after it."""
        self.scans += 1
        begun = ScanState(started_at=START + timedelta(days=1, seconds=self.scans), limit=limit, marks=self.marks, **state)
        self.checked = []
        scan, events, number, outcome, stopped = begun, list(events), 1, "failed", "error"
        while number != fails_at:
            threads, has_next = self.forum.page(number)
            plan = plan_page(scan, threads, self.records, has_next=has_next)
            scan = plan.state
            self.pages += 1
            self.checked += [row.id for row in plan.missed] + [row.id for row in plan.renamed]
            for listed in plan.fetch:
                self.fed.add((listed.thread.id, listed.thread.token))
                if stored:
                    self.records[listed.thread.id] = ThreadRecord(listed.thread.token)
            if plan.stopped is not None:
                outcome, stopped = ("gap" if is_gap(scan, plan.stopped, "activity") else "complete"), plan.stopped
                break
            if events:
                self.forum.act(*events.pop(0))
            number += 1
        for event in events:
            self.forum.act(*event)
        report = Scan(
            site="s",
            forum_id="f",
            started_at=scan.started_at,
            finished_at=scan.started_at,
            pages=scan.pages,
            threads=scan.threads,
            outcome=outcome,  # type: ignore[arg-type]
            reason=None,
            mode=scan.mode,
            new=scan.new,
            changed=scan.changed,
            stopped=stopped,  # type: ignore[arg-type]
            newest_at=scan.newest_at,
            oldest_at=scan.oldest_at,
            front=scan.front,
        )
        self.marks = marks_after(self.marks, report)
        return report

    @property
    def missed(self) -> list[str]:
        """Threads whose present state was never fetched."""
        return [one for one, (activity, _) in self.forum.threads.items() if (one, str(activity)) not in self.fed]


shifts = st.lists(st.tuples(st.sampled_from(["new", "reply", "reply", "stick"]), st.integers(0, 40)), max_size=12)
removals = st.lists(
    st.tuples(st.sampled_from(["new", "reply", "reply", "stick", "remove", "unstick"]), st.integers(0, 40)), max_size=12
)
sizes = {"threads": st.integers(0, 40), "per_page": st.integers(3, 9)}


@settings(max_examples=examples(150), deadline=None)
@given(
    **sizes, grain_s=st.sampled_from([1, 7, 60]), scans=st.lists(st.tuples(shifts, st.integers(0, 4), st.booleans()), max_size=6)
)
def test_whatever_moves_up_while_it_is_read_the_next_scan_finds_it(
    threads: int, per_page: int, grain_s: int, scans: list[tuple[Any, int, bool]]
) -> None:
    scanner = Scanner(Forum(threads, per_page, grain_s))
    for events, fails_at, stored in scans:
        scanner.scan(events, fails_at=fails_at, stored=stored)
    assert scanner.scan().outcome == "complete"
    assert scanner.missed == []


@settings(max_examples=examples(150), deadline=None)
@given(**sizes, scans=st.lists(st.tuples(removals, shifts), max_size=4))
def test_a_row_that_a_removal_hid_is_found_by_the_scan_after(threads: int, per_page: int, scans: list[tuple[Any, Any]]) -> None:
    scanner = Scanner(Forum(threads, per_page))
    for hiding, moving in scans:
        scanner.scan(hiding)
        scanner.scan(moving)
    scanner.scan()
    assert scanner.missed == []


@settings(max_examples=examples(100), deadline=None)
@given(**sizes, scans=st.lists(st.tuples(shifts, st.integers(0, 4)), max_size=5))
def test_a_list_without_times_is_read_until_what_is_known(threads: int, per_page: int, scans: list[tuple[Any, int]]) -> None:
    scanner = Scanner(Forum(threads, per_page, times=False))
    for events, fails_at in scans:
        scanner.scan(fails_at=fails_at)
        for event in events:
            scanner.forum.act(*event)
    assert scanner.scan().outcome == "complete"
    assert scanner.missed == []


@settings(max_examples=examples(100), deadline=None)
@given(**sizes, limit=st.integers(1, 3), scans=st.lists(shifts, max_size=5))
def test_a_scan_that_reached_too_little_says_so_and_a_deep_one_mends_it(
    threads: int, per_page: int, limit: int, scans: Any
) -> None:
    scanner = Scanner(Forum(threads, per_page))
    scanner.scan()
    for events in scans:
        for event in events:
            scanner.forum.act(*event)
        if scanner.scan(limit=limit).outcome == "complete":
            assert scanner.missed == []
    scanner.scan(mode="deep")
    assert scanner.missed == []


def test_without_times_a_scan_is_not_misled_by_what_a_failed_one_has_fed() -> None:
    scanner = Scanner(Forum(30, 5, times=False))
    scanner.scan()
    for _ in range(12):
        scanner.forum.act("reply", 20)
    scanner.scan(fails_at=2)
    assert scanner.scan().outcome == "complete"
    assert scanner.missed == []


def test_a_quiet_forum_costs_one_page() -> None:
    scanner = Scanner(Forum(100, 20))
    assert scanner.scan().stopped == "end"
    assert scanner.scan().pages == 5  # what took more than a page is read twice
    report = scanner.scan()
    assert (report.pages, report.stopped, report.new, report.changed) == (1, "overlap", 0, 0)


def test_what_waits_to_be_stored_neither_makes_scans_longer_nor_counts_as_news_again() -> None:
    scanner = Scanner(Forum(100, 20))
    assert scanner.scan(stored=False).new == 100
    scanner.scan(stored=False)
    report = scanner.scan(stored=False)
    assert (report.pages, report.new) == (1, 3)  # those at the mark


def test_the_first_scan_ends_at_its_limit_without_a_gap() -> None:
    scanner = Scanner(Forum(100, 20))
    report = scanner.scan(limit=2)
    assert (report.outcome, report.stopped, report.pages) == ("complete", "limit", 2)
    assert scanner.scan(limit=2).outcome == "complete"  # reading it twice is no gap, either
    assert scanner.scan(limit=2).pages == 1


def test_an_old_thread_on_top_and_dates_in_the_future_do_not_end_a_scan() -> None:
    scanner = Scanner(Forum(40, 10))
    scanner.scan()
    scanner.scan()
    odd = [ListedThread(id="moved", token="1", last_activity=START - timedelta(days=99))]
    odd += [ListedThread(id=f"future {n}", token="1", last_activity=START + timedelta(days=9999)) for n in range(2)]
    for _ in range(15):
        scanner.forum.act("reply", 39)
    page = scanner.forum.page
    scanner.forum.page = lambda number: (odd + page(number)[0] if number == 1 else page(number)[0], page(number)[1])  # type: ignore[method-assign]
    scanner.scan()
    assert scanner.missed == []
    assert scanner.marks is not None
    assert scanner.marks.newest is not None
    assert scanner.marks.newest < START + timedelta(days=1)


@settings(max_examples=examples(100), deadline=None)
@given(**sizes, grain_s=st.sampled_from([1, 60]), scans=st.lists(shifts, max_size=6))
def test_a_thread_that_others_pushed_down_is_not_taken_for_removed(
    threads: int, per_page: int, grain_s: int, scans: list[Any]
) -> None:
    scanner = Scanner(Forum(threads, per_page, grain_s))
    for events in scans:
        scanner.scan(events)
        assert scanner.checked == []


def test_what_was_removed_from_the_first_page_is_checked_once() -> None:
    scanner = Scanner(forum := Forum(30, 10))
    scanner.scan([("stick", 25), ("reply", 3), ("new", 0)])
    scanner.scan([("remove", 2), ("reply", 6), ("remove", 4), ("remove", 20), ("new", 0), ("stick", 8)])
    shown = {row.id for row in scanner.marks.front if row.at} if scanner.marks else set()
    scanner.scan()
    assert len(scanner.checked) == 2
    assert set(scanner.checked) == shown - forum.threads.keys()
    scanner.scan()
    assert scanner.checked == []


def test_another_list_says_nothing_of_what_was_removed() -> None:
    scanner = Scanner(forum := Forum(30, 10))
    scanner.scan()
    for _ in range(6):
        forum.act("remove", 1)
    scanner.scan()
    assert scanner.checked == []


def test_a_check_that_a_list_asks_for_carries_the_rows_token_so_that_it_is_asked_for_once() -> None:
    row = ListedThread(id="a", token="7@noon", reply_count=7, last_activity=START, url="/t/a")
    state = ScanState(started_at=START, limit=1)
    gone, renamed = checks_of(PagePlan([], state, None, list(front_of([row], "activity")), [row]), "s", "f")
    assert gone == PostTask(site="s", post="a", forum="f", mode="check", token="7@noon", url="/t/a")
    assert renamed == msgspec.structs.replace(gone, replies=7)


def test_dates_that_change_by_themselves_say_nothing_of_what_was_removed() -> None:
    def rows(*hours_ago: int) -> list[ListedThread]:
        return [ListedThread(id=str(hours), token="1@", last_activity=START - timedelta(hours=hours)) for hours in hours_ago]

    front = front_of(rows(1, 2, 3), "activity")
    assert [row.id for row in vanished(front, rows(1, 3), has_next=False)] == ["2"]
    later = [msgspec.structs.replace(row, last_activity=START) for row in rows(1, 3)]
    assert vanished(front, later, has_next=False) == []


def test_a_thread_with_another_title_is_read_anew_in_place_of_its_last_page() -> None:
    def rows(*titles: str) -> list[ListedThread]:
        return [ListedThread(id=str(n), token=title[:1], title=title or None) for n, title in enumerate(titles)]

    def plan(state: ScanState, *titles: str, pages: int = 1) -> tuple[list[str], list[str], ScanState]:
        records = {str(n): ThreadRecord("a", last_page=pages) for n in range(4)}
        found = plan_page(state, rows(*titles), records, has_next=True)
        return [row.thread.id for row in found.fetch], [row.id for row in found.renamed], found.state

    fetch, renamed, first = plan(ScanState(started_at=START, limit=9), "a old", "a", "", "b")
    assert (fetch, renamed) == (["2", "3"], [])
    state = ScanState(started_at=START, limit=9, marks=Marks(scanned_at=START, front=first.front))
    assert plan(state, "a new", "b new", "a", "b")[:2] == (["3"], ["0", "1"])
    assert plan(state, "a new", "b new", "a", "b", pages=11)[:2] == (["1", "3"], []), "it is long"
    assert plan(msgspec.structs.replace(state, pages=1), "a new", "b new", "a", "b")[1] == [], "a later page"
    assert plan(state, "a 1", "a 2", "a 3", "a 4")[1] == ["0", "1", "3"]


def test_a_date_without_a_time_stands_for_its_whole_day() -> None:
    mark = datetime(2026, 3, 2, 14, 0, tzinfo=UTC)
    state = ScanState(started_at=START, limit=9, marks=Marks(scanned_at=START, newest=mark, until=mark))

    def stopped(*days: datetime) -> str | None:
        rows = [ListedThread(id=str(place), token="", last_activity=day) for place, day in enumerate(days)]
        return plan_page(state, rows, {}, has_next=True).stopped

    assert stopped(datetime(2026, 3, 2, tzinfo=UTC)) is None
    assert stopped(datetime(2026, 3, 1, tzinfo=UTC)) == "overlap"
    assert stopped(datetime(2026, 3, 2, 13, 59, tzinfo=UTC)) == "overlap"


def test_a_page_that_comes_again_is_the_end() -> None:
    rows = [ListedThread(id="a", token="1")]
    first = plan_page(ScanState(started_at=START, limit=9), rows, {}, has_next=True)
    assert first.stopped is None
    assert plan_page(first.state, rows, {}, has_next=True).stopped == "end"
    assert plan_page(first.state, [], {}, has_next=True).stopped == "end"


def test_a_backfill_reads_down_to_its_day_and_leaves_out_what_is_known_or_older() -> None:
    forum = Forum(100, 20)
    scanner = Scanner(forum)
    scanner.records = {"t100": ThreadRecord("100")}
    report = scanner.scan(mode="backfill", since=START + timedelta(seconds=51))
    assert (report.stopped, report.pages) == ("overlap", 3)
    assert {one for one, _ in scanner.fed} == {f"t{n}" for n in range(51, 100)}
    assert scanner.marks is None


@pytest.mark.parametrize("order", ["created", "none"])
def test_a_list_in_another_order_is_read_to_its_limit(order: Any) -> None:
    state = ScanState(started_at=START, limit=2, marks=Marks(scanned_at=START, newest=START, until=START))
    rows = [ListedThread(id=str(n), token="1", created_at=START - timedelta(days=n + 1)) for n in range(5)]
    plan = plan_page(state, rows, {}, has_next=True, order=order)
    assert plan.stopped is None
    plan = plan_page(plan.state, [ListedThread(id="x", token="1")], {}, has_next=True, order=order)
    assert plan.stopped == "limit"
    assert not is_gap(plan.state, "limit", order)


def test_a_thread_that_was_gone_and_is_listed_is_asked_for_once_a_day() -> None:
    row, gone = ListedThread(id="a", token="1"), ThreadRecord("1", last_page=0, hour=int(START.timestamp()) // 3600)
    assert change_of(row, gone, START) is Change.UNCHANGED
    assert change_of(row, gone, START + timedelta(days=1)) is Change.NEW
    assert change_of(ListedThread(id="a", token="2"), gone, START) is Change.NEW


def test_a_thread_that_was_gone_by_another_site_file_is_asked_for_at_once() -> None:
    row = ListedThread(id="a", token="1")
    gone = ThreadRecord("1", last_page=0, hour=int(START.timestamp()) // 3600, asked="c0ffee")
    assert change_of(row, gone, START, "c0ffee") is Change.UNCHANGED
    assert change_of(row, gone, START, "decade") is Change.NEW
    assert change_of(row, ThreadRecord("1", asked="c0ffee"), START, "decade") is Change.UNCHANGED, "it is stored"


def test_a_thread_of_which_fewer_comments_were_seen_than_the_list_claims_is_read_again() -> None:
    row = ListedThread(id="a", token="1")
    assert change_of(row, ThreadRecord("1", short=1), START) is Change.CHANGED
    assert change_of(row, ThreadRecord("1"), START) is Change.UNCHANGED


def test_reports_that_come_twice_or_late_do_not_move_the_marks() -> None:
    scanner = Scanner(Forum(100, 20))
    first = scanner.scan()
    second = scanner.scan()
    marks = scanner.marks
    assert marks_after(marks, second) == marks
    assert marks_after(marks, first) == marks


def test_a_thread_that_stands_on_several_pages_of_a_list_is_read_once_in_a_scan() -> None:
    """Lists of messages show a thread once for each, with another token."""
    state = ScanState(started_at=START, mode="deep", limit=9)
    fetched = []
    for page in range(4):
        rows = [ListedThread(id="same", token=f"{page}@"), ListedThread(id=f"own {page}", token="1@")]
        plan = plan_page(state, rows, {}, has_next=True)
        fetched += [row.thread.id for row in plan.fetch]
        state = plan.state
    assert fetched == ["same", "own 0", "own 1", "own 2", "own 3"]
    again = plan_page(ScanState(started_at=START, mode="deep", limit=9), rows, {}, has_next=False)
    assert [row.thread.id for row in again.fetch] == ["same", "own 3"], "the next scan asks anew"


def test_what_a_scan_remembers_of_what_it_fetched_is_bounded() -> None:
    state = ScanState(started_at=START, mode="backfill", limit=99)
    for page in range(30):
        rows = [ListedThread(id=f"{page}.{n}", token="1@") for n in range(50)]
        state = plan_page(state, rows, {}, has_next=True).state
    assert len(state.fed) == MOST_FED


@pytest.mark.parametrize(("rows", "url"), [(MOST_KEPT, "/t"), (MOST_KEPT + 1, "/t"), (20, "/" + "x" * 4000)])
def test_what_a_scan_leaves_of_a_first_page_to_the_next_one_is_bounded(rows: int, url: str) -> None:
    threads = [ListedThread(id=f"t{n}", token="1@", url=url) for n in range(rows)]
    plan = plan_page(ScanState(started_at=START, mode="scan", limit=9), threads, {}, has_next=True)
    assert len(plan.fetch) == rows
    assert len(plan.state.front) == (rows if (rows, url) == (MOST_KEPT, "/t") else 0)


def listed_thread(replies: int, active_s: float, token: str = "new") -> ListedThread:
    return ListedThread(id="t1", token=token, reply_count=replies, last_activity=START + timedelta(seconds=active_s))


def test_a_row_that_says_what_is_stored_is_no_change() -> None:
    """After replies that no list had shown, the token is another one, and the count is that of what is stored."""
    told = int((START + timedelta(seconds=60)).timestamp())
    record = ThreadRecord(token="old", comments=7, listed=5, told_at=told)
    assert change_of(listed_thread(5, 50), record, START) is Change.UNCHANGED
    assert change_of(listed_thread(6, 50), record, START) is Change.CHANGED  # one more
    assert change_of(listed_thread(4, 50), record, START) is Change.CHANGED  # one less
    assert change_of(listed_thread(5, 61), record, START) is Change.CHANGED  # one more and one less, since then
    assert change_of(listed_thread(5, 50), msgspec.structs.replace(record, told_at=None), START) is Change.CHANGED
    assert change_of(listed_thread(5, 50), msgspec.structs.replace(record, short=1), START) is Change.CHANGED
    assert change_of(listed_thread(7, 50), msgspec.structs.replace(record, listed=None), START) is Change.UNCHANGED


def test_a_row_that_shows_no_sign_of_a_change_is_none_where_another_list_has_shown_one() -> None:
    """As an article that is on a feed with dates and on a list without."""
    record = ThreadRecord(token="None@2026-11-13T11:00:00+00:00")
    unsigned = ListedThread(id="t1", token=NO_SIGN)
    assert change_of(unsigned, record, START) is Change.UNCHANGED
    assert change_of(unsigned, None, START) is Change.NEW
    assert change_of(ListedThread(id="t1", token="None@2026-11-14T11:00:00+00:00"), record, START) is Change.CHANGED


def test_what_the_newest_messages_will_tell_is_left_to_them_and_looked_at_again() -> None:
    looked = START + timedelta(seconds=100)
    state = ScanState(started_at=looked + timedelta(seconds=20), limit=20, told_until=looked)
    rows = [
        msgspec.structs.replace(listed_thread(1, 110), id="soon"),
        msgspec.structs.replace(listed_thread(1, 130), id="ahead"),  # the site's clock is another one
        msgspec.structs.replace(listed_thread(1, 96), id="told"),  # and being read
        msgspec.structs.replace(listed_thread(1, 40), id="missed"),
    ]
    found = plan_page(state, rows, {}, has_next=True)
    assert [one.thread.id for one in found.fetch] == ["ahead", "told", "missed"]
    assert (found.state.left, found.state.new) == (True, 1)  # the rate is of what it does not tell
    for usual in ({"mode": "deep"}, {"read_all": True}, {"told_until": None}):
        other = plan_page(msgspec.structs.replace(state, **usual), rows, {}, has_next=True)
        assert (len(other.fetch), other.state.left) == (4, False)
