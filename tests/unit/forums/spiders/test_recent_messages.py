"""What the newest messages of a site make a fleet do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from forum_reader.reading.page_records import RecentMessage
from forums.records.stored import FrontRow, Marks
from forums.spiders.recent_messages import RecentPlan, plan_recent
from forums.spiders.scan_plan import MOST_KEPT, Change
from forums.state.database_state import ThreadRecord

START = datetime(2026, 1, 1, tzinfo=UTC)
KNOWN = ThreadRecord(token="4@x", comments=4, last_page=1, last_comment="c14", listed=4)


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def message(number: int, thread: str = "t1", **more: Any) -> RecentMessage:
    """Message `c<number>`, written in that minute."""
    name = f"c{number}"
    given = {
        "mark": name,
        "id": name,
        "body": f"text {number}",
        "forum_id": "f1",
        "created_at": at(number),
        "digest": f"d{number}",
    }
    return RecentMessage(thread=thread, **(given | more))


def state(*before: RecentMessage) -> Marks | None:
    """The marks of a look that saw these messages; None where it saw none."""
    front = tuple(FrontRow(one.mark, one.thread, one.created_at, one.digest) for one in before)
    return Marks(scanned_at=at(15), newest=at(15), front=front) if before else None


def plan(now: list[RecentMessage], looked: Marks | None, record: ThreadRecord | None = KNOWN, **more: Any) -> RecentPlan:
    given: dict[str, Any] = {"at": at(30), "has_next": True, "watched": frozenset({"f1"})}
    return plan_recent(looked, now, dict.fromkeys([one.thread for one in now], record), **(given | more))


def test_replies_behind_what_is_stored_are_stored_as_they_stand_there() -> None:
    found = plan([message(16), message(15), message(14), message(13)], state(message(14), message(13)))
    (direct,) = found.direct
    upside_down = plan([message(13), message(14), message(15), message(16)], state(message(14), message(13)))
    assert upside_down.direct == found.direct, "a page may begin with the oldest"
    assert ([one.id for one in direct.messages], found.fetch, found.stopped) == (["c15", "c16"], [], "overlap")
    assert (found.seen.news, found.seen.newest_at) == (2, at(16))
    assert [row.id for row in found.seen.front] == ["c16", "c15", "c14", "c13"]
    assert len(plan([message(n) for n in range(2 * MOST_KEPT)], state()).seen.front) == MOST_KEPT


def test_a_thread_that_is_gone_is_asked_for_at_once_by_another_site_file_alone() -> None:
    gone, before = ThreadRecord(token="", last_page=0, hour=int(START.timestamp()) // 3600, asked="that file"), message(14)
    for file, asked_for in (("that file", []), ("another", ["t1"])):
        found = plan([message(15), before], state(before), gone, file=file)
        assert ([listed.thread.id for _, listed in found.fetch], found.direct) == (asked_for, [])


def test_what_the_page_does_not_show_whole_is_read_in_its_thread() -> None:
    before = message(14)
    for odd in (
        {"body": None},
        {"has_unknown_parent": True},
        {"id": "x15", "mark": "x15"},  # ids of another form do not tell what comes behind what
    ):
        found = plan([message(15, **odd), before], state(before))
        ((row, listed),) = found.fetch
        assert (found.direct, row.mark[1:], listed.change, listed.record) == ([], "15", Change.CHANGED, KNOWN)
    assert plan([message(15, opening=True), before], state(before)).fetch == []  # that of a known thread is stored
    for record in (msgspec.structs.replace(KNOWN, short=1), ThreadRecord(token="", comments=4)):
        assert plan([message(15), before], state(before), record).direct == []


def test_replies_that_are_stored_already_make_no_request() -> None:
    record = msgspec.structs.replace(KNOWN, last_comment="c15")
    found = plan([message(16), message(15), message(14)], state(message(14)), record)
    assert [one.id for one in found.direct[0].messages] == ["c16"]
    bodiless = [message(15, body=None), message(14, body=None)]
    assert plan(bodiless, state(message(14, body=None)), record).fetch == []


def test_where_a_page_does_not_reach_what_was_known_its_threads_are_read_from_what_is_stored_of_them() -> None:
    """Messages between may be of the same threads."""
    found = plan([message(40), message(39)], state(message(14)))
    assert (found.direct, len(found.fetch), found.stopped) == ([], 1, "limit")
    assert plan([message(40), message(39)], state(message(14)), has_next=False).stopped == "end"


def test_the_first_look_reads_one_page() -> None:
    found = plan([message(16), message(15)], state())
    assert (found.stopped, found.direct, [one.change for _, one in found.fetch]) == ("overlap", [], [Change.CHANGED])


def test_new_threads_are_read_where_their_forum_is_watched() -> None:
    before = message(14)
    new = [message(15, "t9", opening=True), before]
    assert [one.change for _, one in plan(new, state(before), None).fetch] == [Change.NEW]
    assert plan(new, state(before), None, watched=frozenset({"f2"})).fetch == []
    assert len(plan(new, state(before), None, watched=None).fetch) == 1
    nameless = [message(15, "t9", forum_id=None), before]
    assert plan(nameless, state(before), None).fetch == []  # which forum it is in, the lists say


def test_another_text_of_a_known_message_is_an_edit() -> None:
    before = message(14)
    found = plan([message(14, body="other", digest="other")], state(before))
    assert ([one.id for one, _ in found.edited], found.direct, found.fetch) == (["c14"], [], [])


def test_a_message_that_vanished_has_its_thread_checked() -> None:
    before = [message(14, "t3"), message(13), message(12)]
    assert plan([message(13), message(12)], state(*before)).checked == ["t3"]
    assert (
        plan([message(15), message(14, "t3"), message(13)], state(*before)).checked == []
    )  # the last one was pushed off the page
    assert plan([], state(*before)).checked == []


def test_old_messages_that_are_pulled_up_are_no_news() -> None:
    found = plan([message(13), message(12), message(2)], state(message(14, "t3"), message(13), message(12)))
    assert (found.direct, found.fetch) == ([], [])


def test_rows_may_be_threads() -> None:
    def row(replies: int, **more: Any) -> RecentMessage:
        return RecentMessage(mark=f"t1 {replies}", digest="", thread="t1", reply_count=replies, created_at=at(15), **more)

    ((_, listed),) = plan([row(5)], state(message(3))).fetch
    assert (listed.change, listed.thread.reply_count, listed.thread.token) == (Change.CHANGED, 5, "")
    assert plan([row(4)], state(message(3))).fetch == []  # as many as are stored
    assert plan([row(5, token="4@x")], state(message(3))).fetch == []  # the token says that nothing has changed
    assert plan([row(4, token="5@x")], state(message(3))).fetch[0][1].thread.token == "5@x"
    bare = RecentMessage(mark="t1 noon", digest="", thread="t1", created_at=at(15))
    assert len(plan([bare], state(message(3))).fetch) == 1
    assert plan([bare], state()).fetch == []  # at the first look everything is there that was there before
