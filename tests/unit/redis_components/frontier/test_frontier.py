"""When a process exchanges, what it does while Redis is away, and when it calls itself idle. On a real Redis, with a clock
moved by hand.
"""

from __future__ import annotations

import logging

import pytest
import redis

from redis_components.frontier.demand import LONGEST_SILENCE_S
from redis_components.frontier.messages import NextTask, QueueOrder
from tests.support.owner import KEYS, Owner


@pytest.fixture
def one(redis_client: redis.Redis) -> Owner:
    return Owner(redis_client, "one", concurrency=4).open()


def test_an_idle_process_polls_less_and_less_but_not_more_seldom_than_twice_a_second(one: Owner) -> None:
    one.frontier.take()
    one.advance(2)
    before = one.frontier.exchanges
    one.advance(5)
    assert 5 / 0.15 - 2 <= one.frontier.exchanges - before <= 5 / 0.15 + 2
    one.advance(60)
    before = one.frontier.exchanges
    one.advance(10)
    assert 18 <= one.frontier.exchanges - before <= 22


def test_a_busy_process_with_nothing_to_say_exchanges_only_to_stay_alive(one: Owner) -> None:
    for number in range(40):
        one.add(f"p{number}")
    one.advance(1)
    before = one.frontier.exchanges
    one.advance(20)
    assert one.frontier.exchanges - before <= 20 / LONGEST_SILENCE_S + 1


def test_what_a_busy_process_says_is_gathered_for_one_interval(one: Owner) -> None:
    for number in range(40):
        one.add(f"p{number}")
    one.advance(1)
    before = one.frontier.exchanges
    for _ in range(100):
        one.frontier.add_item(b"item")
        one.advance(0.001)
    assert one.frontier.exchanges - before <= 0.1 / one.frontier.config.interval_s + 2


def test_a_starving_process_sends_what_it_finds_at_once_and_gets_it_back_in_the_same_exchange(one: Owner) -> None:
    one.advance(10)
    assert one.frontier.take() is None
    one.add("found")
    one.advance(0)
    lease = one.frontier.take()
    assert lease is not None
    assert lease.data == b"found"


def test_the_prefetch_follows_what_is_consumed_and_never_passes_its_bound(redis_client: redis.Redis) -> None:
    fast = Owner(redis_client, "fast", concurrency=4, max_prefetch=50).open()
    for number in range(2000):
        fast.add(f"p{number}")
    fast.advance(1)
    taken, most = 0, 0
    for _ in range(1500):
        taken += fast.frontier.take() is not None
        fast.advance(0.001)
        most = max(most, int(redis_client.hlen(KEYS.leases("fast"))) - taken)
    assert 4 < most <= 50
    assert taken > 1000, "a process that takes a thousand a second is not kept waiting"


def test_an_outage_is_said_once_each_way_and_nothing_is_lost(
    one: Owner, redis_client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    one.exchanger.lose_requests = 20
    for number in range(5):
        one.add(f"p{number}")
        one.advance(1)
    one.advance(60)
    said = [record.getMessage() for record in caplog.records]
    assert [line.split(" (")[0].split(" after")[0] for line in said] == [
        "Redis does not take the exchange",
        "Redis answers again",
    ]
    assert one.take_all() == [f"p{number}" for number in range(5)]


def test_no_new_page_is_started_while_too_much_waits_for_redis(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one", concurrency=4, max_outbox=10).open()
    for payload in "abcd":
        one.add(payload)
    one.advance()
    one.exchanger.lose_requests = 5
    for number in range(20):
        one.frontier.add_item(f"item {number}".encode())
    assert one.frontier.take() is None
    one.advance(60)
    assert one.take_all() == list("abcd")


def test_idle_is_never_said_while_another_process_works(one: Owner, redis_client: redis.Redis) -> None:
    two = Owner(redis_client, "two").open()
    two.add("a")
    lease = two.take()
    assert lease is not None
    one.frontier.take()
    one.advance(10)
    assert not one.frontier.idle
    two.frontier.ack(lease[0])
    two.advance(1)
    one.advance(1)
    assert one.frontier.idle


def test_closing_releases_what_was_not_started_and_is_told_when_it_is_stored(one: Owner, redis_client: redis.Redis) -> None:
    for payload in "abc":
        one.add(payload)
    one.advance()
    taken = one.take()
    assert taken is not None
    done: list[str] = []
    one.frontier.close(lambda: done.append("closed"))
    one.advance()
    assert done == ["closed"]
    assert redis_client.zcard(KEYS.ready()) == 2
    one.frontier.ack(taken[0])
    one.frontier.leave(lambda: done.append("left"))
    one.advance()
    assert done == ["closed", "left"]
    assert redis_client.zcard(KEYS.owners()) == 0
    assert one.exchanger.closed


def test_feeding_a_service_that_is_not_named_is_a_clear_error(one: Owner) -> None:
    with pytest.raises(TypeError, match="set `feeds` on the spider class"):
        one.frontier.add_task(NextTask("a", "1", b"x"))


def test_what_is_urgent_overtakes_what_is_buffered_before_the_buffer_is_refilled(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one", concurrency=8).open()
    for number in range(30):
        one.add(f"p{number}")
    one.advance(1)
    first = one.take()
    assert first is not None
    assert redis_client.hlen(KEYS.leases("one")) == 8, "seven are buffered, more than half: no refill"
    one.add("urgent 1", priority=1)
    one.add("urgent 2", priority=2)
    one.add("not urgent", priority=-1)
    before = one.frontier.exchanges
    one.advance(0.03)
    assert one.frontier.exchanges == before + 1, "in the exchange that stores it"
    assert redis_client.hlen(KEYS.leases("one")) == 10, "as many more as are urgent"
    assert one.take_all()[:3] == ["urgent 2", "urgent 1", "p1"]


def test_many_urgent_requests_neither_fill_the_buffer_nor_are_taken_from_others(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one", concurrency=4).open()
    two = Owner(redis_client, "two", concurrency=4).open()
    for number in range(20):
        one.add(f"p{number}")
    one.advance(1)
    for number in range(100):
        one.add(f"urgent {number}", priority=1 + number)
        one.advance(0.01)
    assert int(redis_client.hlen(KEYS.leases("one"))) <= 4 + 4
    two.advance(1)
    lease = two.take()
    assert lease is not None
    assert lease[1].startswith("urgent")


@pytest.mark.parametrize("order", [QueueOrder.FIFO, QueueOrder.LIFO, QueueOrder.RANDOM])
def test_priorities_overtake_nothing_in_the_other_orders(redis_client: redis.Redis, order: QueueOrder) -> None:
    one = Owner(redis_client, "one", concurrency=4, order=order).open()
    for number in range(20):
        one.add(f"p{number}")
    one.advance(1)
    one.add("urgent", priority=1)
    one.advance(1)
    assert redis_client.hlen(KEYS.leases("one")) == 4
    assert redis_client.zscore(KEYS.ready(), redis_client.zrange(KEYS.ready(), 0, 0)[0]) == 0


def test_a_batch_is_bounded_in_bytes_and_everything_arrives(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one", max_batch_bytes=1000).open()
    sent: list[int] = []
    send = one.exchanger.send
    one.exchanger.send = lambda keys, args, answer: (sent.append(len(args["blobs"])), send(keys, args, answer))  # type: ignore[func-returns-value,method-assign,assignment]
    for size in (300, 300, 300, 300, 5000, 10):
        one.frontier.add_item(b"x" * size)
    one.advance(1)
    assert [size for size in sent if size] == [900, 300, 5000, 10]
    assert [len(item) for item in redis_client.lrange(KEYS.item_stream(), 0, 9)] == [300, 300, 300, 300, 5000, 10]
