"""The writer's three scripts: one writer at a time, each batch settled once, nothing half done."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
import redis

from redis_components.items.stream import ItemStream, Lock, Refusal, Settled
from redis_components.keys import CrawlKeys
from redis_components.server.scripts import script
from tests.support.contents import contents
from tests.support.redis_server import RedisServer

KEYS = CrawlKeys.for_spider("forum_list")


def fill(client: redis.Redis, n: int = 5) -> None:
    client.rpush(KEYS.item_stream(), *(f"item {i}" for i in range(n)))
    client.hset(KEYS.pending(), mapping={"demo/f1": 1, "demo/f2": 2})


def state(client: redis.Redis) -> dict[str, Any]:
    """Everything that the scripts may touch."""
    return {
        "items": client.lrange(KEYS.item_stream(), 0, -1),
        "bad": [json.loads(entry.partition(b"\n")[0])["reason"] for entry in client.lrange(KEYS.bad_items(), 0, -1)],
        "pending": sorted(client.hkeys(KEYS.pending())),
        "writer": client.get(KEYS.writer()),
    }


def settle(
    client: redis.Redis, token: str, number: int, count: int, *, bad: tuple[str, ...] = (), done: tuple[str, ...] = ()
) -> bytes:
    """The script itself, with any number."""
    keys = {"items": KEYS.item_stream(), "writer": KEYS.writer(), "bad": KEYS.bad_items(), "pending": KEYS.pending()}
    keys["part"] = KEYS.item_part()
    args = {"token": token, "number": number, "count": count, "ttl_ms": 30_000, "done": msgspec.msgpack.encode(done)}
    refused = [part for place, reason in enumerate(bad) for part in (place, json.dumps(reason))]
    answer: bytes = script("settle")(client, keys=keys, args=args | {"refused": refused})
    return answer


@pytest.fixture
def stream(redis_client: redis.Redis) -> ItemStream:
    return ItemStream(redis_client, KEYS)


# the lock


def test_one_writer_has_the_lock_and_keeps_it_until_it_gives_it_back(redis_client: redis.Redis, stream: ItemStream) -> None:
    assert stream.lock("a") is Lock.ACQUIRED
    assert stream.lock("a") is Lock.RENEWED
    assert stream.lock("b") is Lock.BUSY
    stream.unlock("b")
    assert redis_client.get(KEYS.writer()) == b"a|0"
    stream.unlock("a")
    assert stream.lock("b") is Lock.ACQUIRED


def test_the_lock_of_a_dead_writer_runs_out(redis_client: redis.Redis, stream: ItemStream) -> None:
    stream.lock("a")
    assert 29_000 < redis_client.pttl(KEYS.writer()) <= 30_000


def test_asking_again_and_settling_prolong_the_lock(redis_client: redis.Redis, stream: ItemStream) -> None:
    fill(redis_client)
    stream.lock("a")
    redis_client.pexpire(KEYS.writer(), 5_000)
    stream.lock("a")
    assert redis_client.pttl(KEYS.writer()) > 29_000
    redis_client.pexpire(KEYS.writer(), 5_000)
    stream.settle("a", 1, [], [])
    assert redis_client.pttl(KEYS.writer()) > 29_000


# settling


def test_settling_removes_the_batch_sets_bad_items_aside_and_ends_pending_marks(
    redis_client: redis.Redis, stream: ItemStream
) -> None:
    fill(redis_client)
    stream.lock("a")
    assert stream.peek(3) == [b"item 0", b"item 1", b"item 2"]
    assert stream.settle("a", 3, [Refusal(1, "no JSON"), Refusal(2, "no id")], ["demo/f1"]) is Settled.SETTLED
    assert state(redis_client) == {
        "items": [b"item 3", b"item 4"],
        "bad": ["no JSON", "no id"],
        "pending": [b"demo/f2"],
        "writer": b"a|1",
    }


@pytest.mark.parametrize("item", [b'{"title": "\xff\x00 \\u00fc / \\""}\n{}', b"x" * 1_000_000, b""])
def test_a_refused_item_is_kept_to_the_byte_with_reason_and_redis_time(
    redis_client: redis.Redis, stream: ItemStream, item: bytes
) -> None:
    redis_client.rpush(KEYS.item_stream(), b"good", item, b"good")
    stream.lock("a")
    stream.settle("a", 3, [Refusal(1, 'views: "\udc80" is bad')], [])
    head, _, kept = redis_client.lrange(KEYS.bad_items(), 0, 0)[0].partition(b"\n")
    entry = json.loads(head)
    assert entry.pop("at") == pytest.approx(redis_client.time()[0], abs=5)
    assert (entry, kept) == ({"reason": 'views: "\udc80" is bad'}, item)


def test_who_does_not_hold_the_lock_changes_nothing(redis_client: redis.Redis, stream: ItemStream) -> None:
    fill(redis_client)
    stream.lock("a")
    before = state(redis_client)
    assert settle(redis_client, "b", 1, 5, bad=("no id",), done=("demo/f1",)) == b"lock_lost"
    assert settle(redis_client, "", 1, 5) == b"lock_lost"
    assert state(redis_client) == before


def test_a_lock_that_ran_out_is_lost(redis_client: redis.Redis, stream: ItemStream) -> None:
    fill(redis_client)
    stream.lock("a")
    redis_client.delete(KEYS.writer())  # what its time to live does
    before = state(redis_client)
    assert stream.settle("a", 5, [], ["demo/f1"]) is Settled.LOCK_LOST
    assert state(redis_client) == before


def test_a_batch_that_was_read_before_another_writer_came_and_went_is_not_settled(redis_client: redis.Redis) -> None:
    fill(redis_client)
    slow, quick = ItemStream(redis_client, KEYS), ItemStream(redis_client, KEYS)
    slow.lock("a")
    slow.peek(3)
    redis_client.delete(KEYS.writer())
    quick.lock("b")
    quick.settle("b", len(quick.peek(3)), [], [])
    quick.unlock("b")
    assert slow.settle("a", 3, [], []) is Settled.LOCK_LOST
    assert state(redis_client)["items"] == [b"item 3", b"item 4"]


def test_the_same_number_again_is_settled_once(redis_client: redis.Redis, stream: ItemStream) -> None:
    fill(redis_client)
    stream.lock("a")
    for _ in range(3):  # the reply was lost twice
        assert settle(redis_client, "a", 1, 2, bad=("no id",), done=("demo/f1",)) == b"settled"
    assert state(redis_client) == {
        "items": [b"item 2", b"item 3", b"item 4"],
        "bad": ["no id"],
        "pending": [b"demo/f2"],
        "writer": b"a|1",
    }


@pytest.mark.parametrize("number", [0, 3, 99], ids=["an old call that arrives late", "one ahead", "far ahead"])
def test_a_number_out_of_turn_changes_nothing(redis_client: redis.Redis, stream: ItemStream, number: int) -> None:
    fill(redis_client)
    stream.lock("a")
    settle(redis_client, "a", 1, 1)
    before = state(redis_client)
    assert settle(redis_client, "a", number, 1, bad=("no id",)) == b"lock_lost"
    assert state(redis_client) == before


def test_a_batch_of_many_items_fits(redis_client: redis.Redis, stream: ItemStream) -> None:
    fill(redis_client, 20_000)
    stream.lock("a")
    bad = [Refusal(place, "no") for place in range(20_000)]
    assert stream.settle("a", 20_000, bad, [f"demo/f{n}" for n in range(20_000)]) is Settled.SETTLED
    assert len(stream) == 0
    assert redis_client.llen(KEYS.bad_items()) == 20_000, "nothing is dropped by a count"
    assert redis_client.exists(KEYS.pending()) == 0


@pytest.mark.parametrize("key", [KEYS.item_stream(), KEYS.bad_items(), KEYS.pending()])
def test_a_key_of_a_foreign_type_is_found_before_anything_is_written(
    redis_client: redis.Redis, stream: ItemStream, key: str
) -> None:
    fill(redis_client)
    stream.lock("a")
    redis_client.delete(key)
    redis_client.set(key, "foreign")
    before = contents(redis_client)
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        settle(redis_client, "a", 1, 2, bad=("no id",), done=("demo/f1",))
    assert contents(redis_client) == before


def test_a_redis_without_memory_can_be_drained() -> None:
    with RedisServer() as server:
        client = server.client()
        fill(client, 100)
        client.config_set("maxmemory", 1)
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            client.set("anything", "else")
        stream = ItemStream(client, KEYS)
        assert stream.lock("a") is Lock.ACQUIRED
        assert stream.settle("a", 60, [Refusal(1, "no id")], ["demo/f1"]) is Settled.SETTLED
        assert (len(stream), client.llen(KEYS.bad_items()), client.hkeys(KEYS.pending())) == (40, 1, [b"demo/f2"])
