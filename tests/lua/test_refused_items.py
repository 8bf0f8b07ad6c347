"""Refused items go back into the stream to the byte, or are forgotten, one by one and whatever happens beside it."""

from __future__ import annotations

import json

import redis

from redis_components.admin.dead_letters import Cleared
from redis_components.items.stream import ItemStream, Refusal, newest, purge, replay
from redis_components.keys import CrawlKeys

KEYS = CrawlKeys.for_spider("books")


def refuse(client: redis.Redis, *items: bytes, reason: str = "no kind") -> None:
    client.rpush(KEYS.item_stream(), *items)
    stream = ItemStream(client, KEYS)
    stream.lock("a")
    stream.settle("a", len(items), [Refusal(place, reason) for place in range(len(items))], [])
    stream.unlock("a")


def test_a_replay_brings_every_item_back_to_the_byte_oldest_first(redis_client: redis.Redis) -> None:
    items = [b"\xff\x00\n{}", b"", *(f"item {n}".encode() for n in range(1203))]
    refuse(redis_client, *items)
    assert replay(redis_client, KEYS).done == len(items)
    assert redis_client.lrange(KEYS.item_stream(), 0, -1) == items
    assert redis_client.exists(KEYS.bad_items()) == 0
    assert replay(redis_client, KEYS).done == 0


def test_a_replay_of_some_leaves_the_others(redis_client: redis.Redis) -> None:
    refuse(redis_client, b"a", b"b", reason="views: no number")
    refuse(redis_client, b"c", b"d", b"e", reason="no kind")
    assert replay(redis_client, KEYS, reason="NO KIND", limit=2).done == 2
    assert redis_client.lrange(KEYS.item_stream(), 0, -1) == [b"c", b"d"]
    assert [one.payload for one in newest(redis_client, KEYS, 10)[0]] == [b"e", b"b", b"a"]


def test_purging_forgets_only_what_is_named(redis_client: redis.Redis) -> None:
    refuse(redis_client, b"a", reason="views")
    refuse(redis_client, b"b")
    assert purge(redis_client, KEYS, before_s=10).done == 0
    assert purge(redis_client, KEYS, reason="views").done == 1
    assert [one.payload for one in newest(redis_client, KEYS, 10)[0]] == [b"b"]


def test_foreign_entries_stay(redis_client: redis.Redis) -> None:
    redis_client.rpush(KEYS.bad_items(), json.dumps({"at": 5.0, "reason": "no id", "item": "x"}), "foreign")
    assert (replay(redis_client, KEYS), purge(redis_client, KEYS)) == (Cleared(foreign=2), Cleared(foreign=2))
    assert redis_client.llen(KEYS.bad_items()) == 2
