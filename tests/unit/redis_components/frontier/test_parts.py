"""The frontier's parts without Redis: what travels together, what is started first, when, what is written again, who may go."""

from __future__ import annotations

import pytest

from redis_components.errors import ConfigError, Unserializable
from redis_components.frontier.config import FrontierConfig
from redis_components.frontier.demand import LONGEST_REST_S, LONGEST_SILENCE_S, REST, Haste, Pace
from redis_components.frontier.frontier import score_of
from redis_components.frontier.messages import NO_FILTER, DeadLetter, Lease, NewRequest, NextTask, StatChange
from redis_components.frontier.outbox import Batch, Outbox, ShutdownSequence, WriteJournal
from redis_components.frontier.stock import Buffer
from redis_components.keys import CrawlKeys

CONFIG = FrontierConfig(keys=CrawlKeys.for_spider("s"), owner="one", concurrency=4, max_prefetch=50)


def lease(lease_id: str, *, priority: int = 0, order: int = 0) -> Lease:
    return Lease(-float(priority), order.to_bytes(8, "big"), lease_id, b"")


# Outbox


def test_what_is_taken_keeps_its_order_and_leaves_no_elder_behind() -> None:
    outbox = Outbox()
    outbox.entries.extend([("items", b"1", 1), ("acks", "a", 0), ("items", b"2", 1), ("acks", "b", 0)])
    first, second = outbox.take(3, 1000), outbox.take(3, 1000)
    assert (first.items, first.acks) == ([b"1", b"2"], ["a"])
    assert (second.items, second.acks) == ([], ["b"])
    assert not outbox


@pytest.mark.parametrize(("max_bytes", "batches"), [(1000, [3]), (25, [2, 1]), (15, [1, 1, 1]), (1, [1, 1, 1])])
def test_a_batch_has_no_more_bytes_than_allowed_but_one_entry_at_least(max_bytes: int, batches: list[int]) -> None:
    outbox = Outbox()
    outbox.entries.extend(
        [
            ("items", b"x" * 10, 10),
            ("requests", NewRequest(b"ffff", "0", b"x" * 12), 12),
            ("tasks", NextTask("id", "token", b"x" * 12), 12),
        ]
    )
    taken = []
    while outbox:
        batch = outbox.take(100, max_bytes)
        taken.append(len(batch.items) + len(batch.requests) + len(batch.tasks))
    assert taken == batches


def test_a_batch_has_fewer_start_tasks_than_other_entries_as_redis_needs_longer_for_them() -> None:
    outbox = Outbox()
    outbox.entries.extend([("acks", "a", 0)] * 8 + [("tasks", NextTask("id", "token", b"x"), 1)] * 9)
    taken = []
    while outbox:
        batch = outbox.take(16, 1000)
        taken.append((len(batch.acks), len(batch.tasks)))
    assert taken == [(8, 2), (0, 4), (0, 3)]
    outbox.entries.append(("tasks", NextTask("id", "token", b"x"), 1))
    assert len(outbox.take(1, 1000).tasks) == 1


def test_an_ack_waits_for_an_item_that_is_too_large_for_this_batch() -> None:
    outbox = Outbox()
    outbox.entries.extend(
        [("acks", "before", 0), ("items", b"x" * 10, 10), ("acks", "after", 0), ("burials", DeadLetter("b", "why"), 11)]
    )
    batch = outbox.take(100, 5)
    assert (batch.acks, batch.items, batch.burials) == (["before"], [], [])
    batch = outbox.take(100, 10)
    assert (batch.acks, batch.items, batch.burials) == (["after"], [b"x" * 10], [])
    assert outbox.take(100, 10).burials == [DeadLetter("b", "why")]


def test_what_is_written_again_comes_first_and_without_the_leases_it_ended() -> None:
    outbox = Outbox()
    outbox.entries.extend([("acks", "lost", 0), ("items", b"3", 1)])
    outbox.forget_leases()
    outbox.put_first([Batch(items=[b"1"], acks=["old"]), Batch(items=[b"2"], requests=[NewRequest(NO_FILTER, "0", b"r")])])
    batch = outbox.take(100, 1000)
    assert (batch.items, batch.acks) == ([b"1", b"2", b"3"], [])
    assert [request.payload for request in batch.requests] == [b"r"]


# Buffer


def test_the_buffer_starts_lower_scores_first_and_equal_ones_in_their_order_whenever_they_came() -> None:
    buffer = Buffer()
    buffer.add([lease("1.1", order=1), lease("1.2", order=2)])
    buffer.add([lease("2.1", priority=5, order=9), lease("2.2", order=0), lease("2.3", priority=-1, order=3)])
    assert buffer.best == -5
    taken = []
    while (one := buffer.take()) is not None:
        taken.append(one.id)
    assert taken == ["2.1", "2.2", "1.1", "1.2", "2.3"]


def test_leases_that_wait_while_later_ones_run_are_overtaken() -> None:
    buffer = Buffer()
    buffer.add([lease("9.1", order=1), lease("9.2", order=2), lease("9.3", order=3)])
    assert buffer.take() == lease("9.1", order=1)
    assert buffer.overtaken() == []
    buffer.add([lease("10.1", priority=1, order=4), lease("10.2", priority=1, order=5)])
    assert buffer.overtaken() == [], "it came later, but it was not started yet"
    assert buffer.take() == lease("10.1", priority=1, order=4)
    assert buffer.overtaken() == ["9.3", "9.2"]
    assert [one.id for one in buffer.drain()] == ["10.2", "9.2", "9.3"]
    assert (buffer.overtaken(), len(buffer)) == ([], 0)


# Journal


def test_the_journal_returns_what_redis_lacks_however_long_it_was_away() -> None:
    journal = WriteJournal(5)
    old, kept, refused = Batch(items=[b"old"]), Batch(items=[b"kept"]), Batch(stats=[StatChange("add", "pages", "1")])
    journal.remember(0, 1, old)
    journal.remember(6, 2, Batch(acks=["a"]))
    journal.remember(7, 3, kept)
    assert journal.replay(2, 99, 4, refused) == [kept, refused]
    assert journal.replay(0, 99, 5, Batch(acks=["b"])) == []


def test_what_redis_knows_is_not_written_again_unless_it_comes_back_older_yet() -> None:
    journal = WriteJournal(5)
    first, second = Batch(items=[b"first"]), Batch(items=[b"second"])
    journal.remember(1, 1, first)
    assert journal.replay(2, 2, 2, second) == []
    assert journal.replay(0, 3, 3, Batch()) == [first, second]
    assert not journal


# Pace


def test_the_more_urgent_the_sooner() -> None:
    pace = Pace(CONFIG, 0)
    pace.begin(10)
    due = [pace.due(haste) - 10 for haste in (Haste.NOW, Haste.GATHERED, Haste.BEAT)]
    assert due == pytest.approx([0.001, 0.02, LONGEST_SILENCE_S])


def test_a_process_that_gets_nothing_polls_less_and_less() -> None:
    pace = Pace(CONFIG, 0)
    waits = {}
    for now in range(41):
        pace.begin(now)
        waits[now] = pace.due(Haste.POLL) - now
        pace.answered(now, got=False)
    assert [*waits.values()] == sorted(waits.values())
    assert (waits[0], waits[8]) == pytest.approx((0.01, 0.15))
    assert (waits[16], waits[40]) == pytest.approx((15 * REST, LONGEST_REST_S)), "work is found late by 2 % of the wait for it"
    pace.answered(41, got=True)
    pace.begin(41)
    assert pace.due(Haste.POLL) - 41 == pytest.approx(0.01)


def test_the_buffer_is_refilled_at_half_of_what_a_few_round_trips_consume() -> None:
    pace = Pace(CONFIG, 0)
    assert (pace.want(3, 0), pace.want(2, 0), pace.want(0, 0)) == (0, 2, 4)
    for now in range(1, 40):
        pace.taken = 400
        pace.begin(now)
        pace.answered(now + 0.01, got=True)
    assert pace.refill_at == 18, "400 a second, three times 10 ms there and back and a 20 ms interval: 36"
    assert (pace.want(18, 0), pace.want(19, 0)) == (18, 0)


def test_the_prefetch_has_a_bound() -> None:
    pace = Pace(CONFIG, 0)
    pace.taken = 1_000_000
    pace.begin(1)
    assert pace.want(0, 0) == 50
    assert pace.want(48, 10) == 2


@pytest.mark.parametrize(("held", "found", "wanted"), [(4, 2, 2), (4, 100, 4), (6, 100, 2), (8, 100, 0), (1, 1, 3), (1, 4, 4)])
def test_urgent_finds_are_leased_at_once_but_do_not_fill_the_buffer(held: int, found: int, wanted: int) -> None:
    assert Pace(CONFIG, 0).want(held, found) == wanted


# ShutdownSequence


def test_a_process_may_go_when_its_last_word_is_old_enough() -> None:
    farewell = ShutdownSequence(1.5)
    farewell.answered(10, carried=True, survives=None)
    assert (farewell.may_go(11, carries=False), farewell.may_go(11.5, carries=False)) == (False, True)
    assert not farewell.may_go(20, carries=True), "what it tells now is not safe yet"
    farewell.answered(20, carried=False, survives=None)
    assert (farewell.due(soonest=11), farewell.due(soonest=21)) == (11.5, 21)


@pytest.mark.parametrize(("window_s", "survives"), [(1.5, False), (0, True), (0, None)])
def test_where_nothing_becomes_safer_a_process_goes_with_its_last_word(window_s: float, survives: bool | None) -> None:
    farewell = ShutdownSequence(window_s)
    farewell.answered(10, carried=True, survives=survives)
    assert not farewell.asks
    assert farewell.may_go(10, carries=True)
    assert farewell.due(soonest=10) == 10


def test_who_did_not_say_whether_it_has_an_append_only_file_counts_as_if_it_had() -> None:
    farewell = ShutdownSequence(1.5)
    farewell.answered(10, carried=True, survives=None)
    assert farewell.asks
    assert not farewell.may_go(11, carries=False)


def test_a_priority_is_an_integer_that_redis_can_sort_by_and_anything_else_is_refused() -> None:
    assert [score_of(priority) for priority in (0, 7, -7, True, 2**53, 10**300)] == [
        "0",
        "-7",
        "7",
        "-1",
        "-9007199254740992",
        f"-{10**300}",
    ]
    for priority in (10**400, -(10**400), float("inf"), float("nan")):
        with pytest.raises(Unserializable, match="priority"):
            score_of(priority)  # type: ignore[arg-type]  # what a spider may set on a request


@pytest.mark.parametrize(
    ("field", "value", "setting"),
    [
        ("concurrency", 0, "CONCURRENT_REQUESTS"),
        ("max_prefetch", 0, "SCHEDULER_MAX_PREFETCH"),
        ("max_attempts", 0, "SCHEDULER_MAX_ATTEMPTS"),
        ("max_attempts", 256, "SCHEDULER_MAX_ATTEMPTS"),
        ("ttl_s", 0, "SCHEDULER_OWNER_TTL"),
        ("ttl_s", float("nan"), "SCHEDULER_OWNER_TTL"),
        ("fsync_window_s", -1, "SCHEDULER_FSYNC_WINDOW"),
    ],
)
def test_a_number_that_would_let_the_crawl_stand_still_is_refused_by_its_setting(field: str, value: float, setting: str) -> None:
    with pytest.raises(ConfigError, match=setting):
        FrontierConfig(keys=CrawlKeys.for_spider("s"), owner="one", **{field: value})  # type: ignore[arg-type]
