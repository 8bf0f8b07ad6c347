"""An item stream with consumer groups: nothing is removed that a group needs, nothing is lost by a death or a repeat."""

from __future__ import annotations

import json

import pytest
import redis

from redis_components.admin.inspector import snapshot
from redis_components.items.groups import ItemGroup, tend
from redis_components.items.stream import Lock, Refusal, Settled, replay
from redis_components.keys import CrawlKeys
from redis_components.server.scripts import script
from tests.support.owner import Owner
from tests.support.redis_server import RedisServer

KEYS = CrawlKeys.for_spider("s", item_groups=["files", "search"])
ITEMS = KEYS.item_stream()


def texts(client: redis.Redis) -> list[bytes]:
    return [fields[b"item"] for _, fields in client.xrange(ITEMS)]


@pytest.fixture
def crawler(redis_client: redis.Redis) -> Owner:
    return Owner(redis_client, "one", keys=KEYS).open()


def produce(crawler: Owner, *items: bytes) -> None:
    for item in items:
        crawler.frontier.add_item(item)
    crawler.advance()


def take(group: ItemGroup, token: str, n: int = 100) -> list[bytes]:
    """Read a batch and settle it."""
    assert group.lock(token) is not Lock.BUSY
    items = group.peek(n)
    if items:
        assert group.settle(token, len(items), [], []) is Settled.SETTLED
    return items


def test_every_group_gets_every_item_and_what_all_have_taken_is_removed(crawler: Owner, redis_client: redis.Redis) -> None:
    files, search = ItemGroup(redis_client, KEYS, "files"), ItemGroup(redis_client, KEYS, "search")
    produce(crawler, b"1", b"2", b"3")
    assert take(files, "a") == [b"1", b"2", b"3"]
    assert texts(redis_client) == [b"1", b"2", b"3"], "the other group needs them"
    assert take(search, "b", 2) == [b"1", b"2"]
    assert texts(redis_client) == [b"3"]
    produce(crawler, b"4")
    assert (take(search, "b"), take(files, "a")) == ([b"3", b"4"], [b"4"])
    assert texts(redis_client) == []


def test_a_repeated_exchange_adds_its_items_once(crawler: Owner, redis_client: redis.Redis) -> None:
    crawler.exchanger.lose_replies = 2
    produce(crawler, b"1", b"2")
    crawler.advance(5)
    assert texts(redis_client) == [b"1", b"2"]


def test_a_group_of_another_program_counts_and_is_trimmed_by_crawlers(crawler: Owner, redis_client: redis.Redis) -> None:
    produce(crawler, b"1", b"2")
    for group in ("files", "search", "theirs"):
        if group == "theirs":
            redis_client.xgroup_create(ITEMS, group, id="0")
            crawler.advance()
            assert len(texts(redis_client)) == 2
        entries = redis_client.xreadgroup(group, "me", {ITEMS: ">"}, count=5)
        ids = [number for number, _ in redis_client.xrange(ITEMS)]
        assert entries
        redis_client.xack(ITEMS, group, *ids)
    assert snapshot(redis_client, "s", KEYS).items == 0, "nobody waits for them, also before they are removed"
    produce(crawler, b"3")
    assert texts(redis_client) == [b"3"]


def test_what_one_consumer_was_given_and_left_comes_to_the_next(crawler: Owner, redis_client: redis.Redis) -> None:
    produce(crawler, b"1", b"2", b"3")
    dead = ItemGroup(redis_client, KEYS, "files")
    assert dead.lock("a") is Lock.ACQUIRED
    assert dead.peek(2) == [b"1", b"2"]
    assert dead.peek(2) == [b"1", b"2"], "the same until it is settled"
    redis_client.delete(KEYS.writer("files"))  # its lock has run out
    redis_client.xreadgroup("files", "theirs", {ITEMS: ">"})  # and a consumer of another program dies with the third
    heir = ItemGroup(redis_client, KEYS, "files", claim_after_s=0)
    assert [take(heir, "b"), take(heir, "b")] == [[b"1", b"2"], [b"3"]]
    assert dead.settle("a", 2, [], []) is Settled.LOCK_LOST
    assert redis_client.xpending(ITEMS, "files")["pending"] == 0


def test_a_settled_batch_is_settled_once_and_refused_items_go_back(crawler: Owner, redis_client: redis.Redis) -> None:
    produce(crawler, b"1", b"no json", b"3")
    group = ItemGroup(redis_client, KEYS, "files")
    group.lock("a")
    assert len(group.peek(10)) == 3
    held = list(group._held)
    bad = [Refusal(1, "it is not JSON")]
    assert group.settle("a", 3, bad, []) is Settled.SETTLED
    group._held, group._settled = held, 0  # the answer was lost, and the call comes again
    assert group.settle("a", 3, bad, []) is Settled.SETTLED
    refused = redis_client.lrange(KEYS.bad_items(), 0, -1)
    assert [json.loads(one.partition(b"\n")[0])["reason"] for one in refused] == ["it is not JSON"]
    assert refused[0].endswith(b"\nno json")
    assert replay(redis_client, KEYS).done == 1
    assert texts(redis_client)[-1] == b"no json"


def test_the_crawl_stops_at_its_bound_until_the_slowest_group_has_taken_some(redis_client: redis.Redis) -> None:
    crawler = Owner(redis_client, "one", keys=KEYS, max_items=10).open()
    produce(crawler, *(str(n).encode() for n in range(12)))
    crawler.add("page")
    assert crawler.take() is None
    take(ItemGroup(redis_client, KEYS, "files"), "a")
    assert crawler.take() is None
    take(ItemGroup(redis_client, KEYS, "search"), "b", 6)
    assert crawler.take() is not None


def test_a_list_becomes_the_stream_when_groups_are_named(redis_client: redis.Redis) -> None:
    items = [str(n).encode() for n in range(1_203)]
    redis_client.rpush(ITEMS, *items)
    tend(redis_client, KEYS)
    assert texts(redis_client) == items
    assert {group["name"] for group in redis_client.xinfo_groups(ITEMS)} == {b"files", b"search"}
    assert not redis_client.exists(KEYS.items_moving())
    # A crawler that has not heard of the groups adds to what is there.
    produce(Owner(redis_client, "old", keys=CrawlKeys.for_spider("s")).open(), b"late")
    assert texts(redis_client)[-1] == b"late"


def test_a_consumer_of_a_group_makes_the_stream_of_a_list_that_no_crawler_has_tended_yet(redis_client: redis.Redis) -> None:
    redis_client.rpush(ITEMS, "1", "2")
    files = ItemGroup(redis_client, KEYS, "files")
    assert take(files, "a") == [b"1", b"2"]
    assert take(ItemGroup(redis_client, KEYS, "search"), "b") == [b"1", b"2"]


def test_tending_is_done_by_crawlers_too_and_is_safe_to_repeat(redis_client: redis.Redis) -> None:
    redis_client.rpush(ITEMS, "1", "2")
    redis_client.rpush(KEYS.items_moving(), "0")  # somebody died while he moved an older list
    crawler = Owner(redis_client, "one", keys=KEYS).open()
    crawler.advance(5)
    assert sorted(texts(redis_client)) == [b"0", b"1", b"2"]
    assert script("items_tend")(redis_client, keys=KEYS, args={"groups": []}) == 0
    assert len(texts(redis_client)) == 3


def test_a_redis_without_memory_can_be_drained_by_a_group() -> None:
    with RedisServer() as server:
        client = server.client()
        tend(client, KEYS)
        for n in range(100):
            client.xadd(ITEMS, {"item": str(n)})
        client.config_set("maxmemory", 1)
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            client.set("anything", "else")
        for name in KEYS.item_groups:
            group = ItemGroup(client, KEYS, name)
            assert group.lock("a") is Lock.ACQUIRED
            assert len(group.peek(60)) == 60
            assert group.settle("a", 60, [Refusal(1, "no id")] if name == "files" else [], []) is Settled.SETTLED
        assert (len(texts(client)), len(group), client.llen(KEYS.bad_items())) == (40, 40, 1)
