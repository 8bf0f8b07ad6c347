"""Holes that reviews found in the frontier, each kept shut by a test. On a real Redis, moved by hand."""

from __future__ import annotations

import pytest
import redis

from redis_components.admin.inspector import expire_owner
from redis_components.frontier.messages import DeadLetter, StatChange
from redis_components.frontier.outbox import Outbox
from redis_components.start_tasks.seeding import Seed, seed
from tests.support.owner import KEYS, Owner


def test_a_reason_that_is_no_unicode_does_not_stop_the_exchange(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one", concurrency=4).open()
    one.add("page")
    lease = one.take()
    assert lease is not None
    one.frontier.add_item(b"item")
    one.frontier.bury(lease[0], "ValueError: bad title \ud83d")
    one.advance(20)
    assert (redis_client.llen(KEYS.item_stream()), redis_client.llen(KEYS.dead())) == (1, 1)


def test_deaths_count_only_for_what_a_process_worked_on_not_for_what_it_prefetched(redis_client: redis.Redis) -> None:
    seeder = Owner(redis_client, "seeder", concurrency=50).open()
    for number in range(30):
        seeder.add(f"p{number}")
    seeder.advance()
    seeder.close()
    for death in range(12):
        victim = Owner(redis_client, f"v{death}", concurrency=2, max_attempts=5).open()
        victim.advance(5)
        while victim.frontier.take() is not None:
            victim.advance(0.01)
        victim.frontier.stop()
        expire_owner(redis_client, KEYS, f"v{death}")
    last = Owner(redis_client, "last", concurrency=2, max_attempts=5).open()
    last.advance(5)
    assert redis_client.llen(KEYS.dead()) <= 4, "two are worked on at a time, and five deaths are needed for each"


def test_deaths_count_by_what_the_dead_process_worked_on_whoever_reclaims_it(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one", concurrency=4).open()
    for payload in "abcd":
        one.add(payload)
    assert one.take_all() == list("abcd")
    one.frontier.stop()
    expire_owner(redis_client, KEYS, "one")
    two = Owner(redis_client, "two", concurrency=1).open()
    two.advance(1)
    two.frontier.close(lambda: None)
    two.advance(1)
    assert [member[8] for member in redis_client.zrange(KEYS.ready(), 0, 9)] == [1, 1, 1, 1]


def test_an_old_lease_never_settles_a_new_one_after_fencing(redis_client: redis.Redis) -> None:
    redis_client.rpush(KEYS.start_tasks(), "task")
    one = Owner(redis_client, "one")
    one.frontier.want_tasks(1)
    one.open()
    task = one.frontier.take_task()
    assert task is not None
    expire_owner(redis_client, KEYS, "one")
    two = Owner(redis_client, "two").open()
    two.advance(1)
    two.add("other")
    two.advance()
    two.close()
    one.advance(5)
    assert one.fenced
    lease = one.frontier.take()
    assert lease is not None
    one.frontier.ack(task.id)
    one.advance(1)
    assert redis_client.hlen(KEYS.leases(one.frontier.owner)) == 1


def test_nothing_is_called_idle_while_redis_is_away(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one").open()
    one.frontier.take()
    one.advance(2)
    assert one.frontier.idle
    one.exchanger.lose_requests = 1_000_000
    one.advance(120)
    assert not one.frontier.idle
    assert not one.frontier.task_idle


def test_a_listener_that_raises_costs_no_lease(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one", concurrency=4).open()
    one.add("a")
    lease = one.take()
    assert lease is not None
    one.frontier.ack(lease[0])
    one.advance()

    def broken(payload: bytes) -> None:
        raise RuntimeError("a user's dupefilter")

    one.frontier.listeners.duplicate = broken
    one.add("b")
    one.add("a")
    one.advance(2)
    assert one.frontier.take() is not None


def test_marks_of_lost_scans_do_not_fill_the_room_for_ever(redis_client: redis.Redis) -> None:
    seeds = [Seed(id=str(number), data=str(number).encode(), wait_s=0) for number in range(3)]
    assert [one.outcome for one in seed(redis_client, KEYS, seeds, max_pending=3)] == ["seeded"] * 3
    redis_client.delete(KEYS.start_tasks())
    for number in range(3):
        redis_client.hincrby(KEYS.pending(), str(number), -3_600_001)
    assert [one.outcome for one in seed(redis_client, KEYS, seeds, max_pending=3)] == ["seeded"] * 3


def test_stats_of_a_fenced_exchange_are_sent_again(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one").open()
    one.advance(1)
    expire_owner(redis_client, KEYS, "one")
    Owner(redis_client, "two").open().advance(1)
    changes = [StatChange("add", "pages", "5")]

    def stats(final: bool) -> list[StatChange]:
        taken = list(changes)
        changes.clear()
        return taken

    one.frontier.listeners.stats = stats
    one.advance(5)
    assert one.fenced
    assert redis_client.hget(KEYS.stats_hash(), "pages") == b"5"


def test_a_replay_stores_once_also_when_the_answer_that_fenced_was_lost(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one", journal_s=1000).open()
    one.frontier.add_item(b"item")
    one.advance()
    expire_owner(redis_client, KEYS, "one")
    Owner(redis_client, "two").open().advance(5)
    one.exchanger.lose_replies = 1
    one.advance(10)
    assert one.fenced
    assert redis_client.lrange(KEYS.item_stream(), 0, 9) == [b"item"]


def test_the_engine_is_woken_when_the_outbox_has_room_again(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one", concurrency=2, max_outbox=10, batch=4).open()
    for payload in "ab":
        one.add(payload)
    one.advance(2)
    woken: list[bool] = []
    one.frontier.listeners.work = lambda: woken.append(True)
    for _ in range(20):
        one.frontier.add_item(b"x")
    assert one.frontier.take() is None
    one.advance(4)
    assert not one.frontier.outbox
    assert woken


def test_the_first_exchange_is_applied_once_even_when_its_owner_is_reclaimed_before_it_is_repeated(
    redis_client: redis.Redis,
) -> None:
    one = Owner(redis_client, "one")
    one.frontier.add_item(b"item")
    one.exchanger.lose_replies = 1
    one.frontier.open()
    one.clock.advance(0.01)
    expire_owner(redis_client, KEYS, "one")
    Owner(redis_client, "two").open().advance(1)
    one.advance(5)
    assert redis_client.llen(KEYS.item_stream()) == 1


def test_a_burial_does_not_travel_before_the_items_of_its_page() -> None:
    outbox = Outbox()
    outbox.entries.extend([("items", b"x", 1)] * 5)
    outbox.entries.append(("burials", DeadLetter("1.1", "why"), 0))
    assert not outbox.take(2, 1000).burials


def test_a_flush_after_the_end_is_answered(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one").open()
    one.frontier.stop()
    done: list[bool] = []
    one.frontier.close(lambda: done.append(True))
    assert done


@pytest.mark.usefixtures("redis_client")
def test_a_process_that_is_busy_for_longer_than_its_time_stays_alive(redis_server: object, redis_client: redis.Redis) -> None:
    from redis_components.frontier.frontier import Frontier, FrontierConfig
    from redis_components.frontier.transport import ThreadTransport
    from tests.support.owner import HandClock
    from tests.support.processes import wait_until

    clock = HandClock()
    transport = ThreadTransport(redis_client, clock, beat_s=0.05)
    config = FrontierConfig(keys=KEYS, owner="one", ttl_s=0.4)
    frontier = Frontier(config, transport, clock)
    try:
        frontier.open()
        clock.advance(0.1)
        wait_until(lambda: redis_client.zscore(KEYS.owners(), "one"), "the owner is known")
        first = redis_client.zscore(KEYS.owners(), "one")
        assert first is not None
        # The clock of the process stands still from now on: it computes. Only the thread can keep it alive.
        wait_until(
            lambda: (redis_client.zscore(KEYS.owners(), "one") or 0) > first + 400, "its time was extended beyond its first end"
        )
        assert redis_client.time()[0] * 1000 < (redis_client.zscore(KEYS.owners(), "one") or 0)
    finally:
        frontier.stop()
