"""What somebody else has put into our keys does not stop the crawlers, or is named and harms nothing until it is gone."""

from __future__ import annotations

import json
from hashlib import sha1

import pytest
import redis

from redis_components.admin.inspector import snapshot
from redis_components.frontier.messages import keys_of
from redis_components.keys import CrawlKeys
from tests.support.owner import KEYS, Owner


def lives_on(client: redis.Redis) -> None:
    """A crawler still stores, leases and finishes."""
    one = Owner(client, "one").open()
    one.advance(10)
    one.add("a", priority=1)
    lease = one.take()
    assert lease is not None
    assert lease[1] == "a"
    one.frontier.ack(lease[0])
    one.advance()
    assert snapshot(client, "s").acked == 1


@pytest.mark.parametrize("owner", [b"nobody", b"a~b~c", b"with spaces and ~"])
def test_a_foreign_owner_is_taken_for_dead_and_forgotten(redis_client: redis.Redis, owner: bytes) -> None:
    redis_client.zadd(KEYS.owners(), {owner: 1})
    lives_on(redis_client)
    assert redis_client.zrange(KEYS.owners(), 0, 9) == [b"one"]


def test_an_owner_without_a_name_does_not_hide_the_dead_behind_it(redis_client: redis.Redis) -> None:
    redis_client.zadd(KEYS.owners(), {b"": 1, "gone": 2})
    lives_on(redis_client)
    assert redis_client.zrange(KEYS.owners(), 0, 9) == [b"one"]


def test_a_foreign_owner_whose_name_is_no_text_does_not_stop_the_crawlers(redis_client: redis.Redis) -> None:
    redis_client.zadd(KEYS.owners(), {b"\xff\xfe": 1, b"\xc3(": 2, b"\xed\xa0\x80": 3, "n\u0153ud-\N{SNOWMAN}-\U0001f600": 4})
    lives_on(redis_client)
    assert redis_client.zrange(KEYS.owners(), 0, 9) == [b"one"]


MEMBER = bytes(9) + b"payload"
FOREIGN_LEASES = [
    ("1.1", b""),
    ("1.1", b"junk"),
    ("1.1", b"r0|short"),
    ("1.1", b"rx|" + MEMBER),
    ("1.1", b"l|task"),
    ("1.1", b"l|99|task"),
    ("1.1", b"s|0|task"),
    ("no number", b"r0|" + MEMBER),
]


@pytest.mark.parametrize("score", ["1e999", "-1e999", "1e-999", " 5", "0x10", "inf"])
@pytest.mark.parametrize("kind", ["r", "z"])
def test_a_score_that_redis_would_refuse_stops_nobody(redis_client: redis.Redis, kind: str, score: str) -> None:
    redis_client.zadd(KEYS.owners(), {"gone": 1})
    redis_client.hset(KEYS.leases("gone"), "1.1", f"{kind}{score}|".encode() + (b"3|key" if kind == "z" else b"") + MEMBER)
    one = Owner(redis_client, "one").open()
    one.frontier.add_item(b"item")
    one.advance(10)
    assert redis_client.lrange(KEYS.item_stream(), 0, 9) == [b"item"]
    assert not redis_client.exists(KEYS.leases("gone"))


@pytest.mark.parametrize(("field", "value"), FOREIGN_LEASES)
def test_a_foreign_lease_of_a_dead_owner_is_set_aside_and_the_others_are_given_back(
    redis_client: redis.Redis, field: str, value: bytes
) -> None:
    redis_client.zadd(KEYS.owners(), {"gone": 1})
    ours = field == "no number"
    redis_client.hset(KEYS.leases("gone"), mapping={field: value, "2.1": b"r0|" + MEMBER + b"2"})
    redis_client.hset(KEYS.counters(), mapping={"layout": 1, "leased": 1 + ours})
    one = Owner(redis_client, "one").open()
    one.advance(10)
    assert one.take_all() == ["payload"] * ours + ["payload2"]
    shot = snapshot(redis_client, "s")
    assert (shot.leased, shot.dead) == (1 + ours, 1 - ours)
    if not ours:
        (dead,) = redis_client.lrange(KEYS.dead(), 0, 9)
        about, _, kept = dead.partition(b"\n")
        assert (json.loads(about)["reason"], kept) == ("not a lease that Trawl wrote", value)


def test_a_foreign_value_in_a_lease_of_a_living_owner_is_not_taken_for_one(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one").open()
    one.add("a")
    lease = one.take()
    assert lease is not None
    redis_client.hset(KEYS.leases("one"), lease[0], "junk")
    one.frontier.ack(lease[0])
    one.add("b")
    assert one.take_all() == ["b"]


@pytest.mark.parametrize("field", ["order", "leased", "leased_tasks", "acked", "reclaimed"])
def test_a_foreign_counter_is_named_and_nothing_is_stored_twice_while_it_stands_there(
    redis_client: redis.Redis, caplog: pytest.LogCaptureFixture, field: str
) -> None:
    redis_client.hset(KEYS.counters(), field, "foreign")
    one = Owner(redis_client, "one").open()
    one.add("a")
    one.frontier.add_item(b"item")
    one.advance(60)
    assert redis_client.exists(KEYS.ready(), KEYS.fingerprints(), KEYS.item_stream()) == 0
    assert f"{KEYS.counters()} has the foreign value 'foreign' for {field}" in caplog.text
    redis_client.hdel(KEYS.counters(), field)
    one.advance(10)
    assert one.take_all() == ["a"]
    assert redis_client.lrange(KEYS.item_stream(), 0, 9) == [b"item"]


def test_a_foreign_count_of_deaths_is_begun_anew(redis_client: redis.Redis) -> None:
    redis_client.hset(KEYS.start_deaths(), sha1(b"task").hexdigest(), "foreign")
    redis_client.zadd(KEYS.owners(), {"gone": 1})
    redis_client.hset(
        KEYS.leases("gone"), "1.1", b"l|" + b"%d|%s" % (len(KEYS.start_tasks()), KEYS.start_tasks().encode()) + b"task"
    )
    redis_client.hset(KEYS.counters(), mapping={"layout": 1, "leased_tasks": 1})
    lives_on(redis_client)
    assert redis_client.lrange(KEYS.start_tasks(), 0, 9) == [b"task"]
    assert redis_client.hgetall(KEYS.start_deaths()) == {sha1(b"task").hexdigest().encode(): b"1"}


KEYS_OF_AN_OWNER = keys_of(KEYS, CrawlKeys.for_spider("next"), "one", "gone")


@pytest.mark.parametrize(
    "key", sorted(set(KEYS_OF_AN_OWNER) - {"dead_leases", "dead_gone", "dead_own_stats", "parked", "more_keys"})
)
def test_a_key_of_a_foreign_type_is_named(redis_client: redis.Redis, caplog: pytest.LogCaptureFixture, key: str) -> None:
    redis_key = KEYS_OF_AN_OWNER[key]
    assert isinstance(redis_key, str)
    if key == "own_gone":
        redis_client.rpush(redis_key, "foreign")
    else:
        redis_client.set(redis_key, "foreign")
    one = Owner(redis_client, "one", next_keys=CrawlKeys.for_spider("next")).open()
    one.advance(10)
    assert f"WRONGTYPE {redis_key} " in caplog.text
    redis_client.delete(redis_key)
    lives_on(redis_client)
