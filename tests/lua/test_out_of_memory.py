"""Redis is out of memory: what is in flight gets in, nothing more is leased, and it goes on by itself. On a server of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from redis_components.admin.inspector import expire_owner, snapshot
from redis_components.filters import Filter
from redis_components.server.scripts import script
from tests.support.dupefilters import KINDS
from tests.support.owner import KEYS, Owner
from tests.support.redis_server import RedisServer


@pytest.fixture
def client() -> Iterator[redis.Redis]:
    with RedisServer() as server:
        yield server.client()


def out_of_memory(client: redis.Redis) -> None:
    client.config_set("maxmemory", 1)
    with pytest.raises(redis.exceptions.OutOfMemoryError):
        client.set("any", "thing")


def memory_again(client: redis.Redis) -> None:
    client.config_set("maxmemory", 0)


def test_what_pages_in_flight_say_gets_in_and_nothing_more_is_leased(client: redis.Redis) -> None:
    client.rpush(KEYS.start_tasks(), "t1", "t2")
    one = Owner(client, "one", concurrency=3).open()
    one.frontier.want_tasks(1)
    one.advance()
    for payload in ("a", "b", "c"):
        one.add(payload)
    task, leases = one.frontier.take_task(), [one.take(), one.take(), one.take()]
    assert task is not None
    ids = [lease[0] for lease in leases if lease]
    for number in range(10):
        one.add(f"more {number}")
    one.advance()
    assert snapshot(client, "s").ready == 7, "ten wait, three of them buffered"

    out_of_memory(client)
    one.frontier.add_item(b"item")
    one.add("child")
    one.frontier.ack(ids[0])
    one.frontier.release(ids[1])
    one.frontier.bury(ids[2], "why")
    one.frontier.ack(task.id)
    one.frontier.want_tasks(5)
    one.advance(30)
    shot = snapshot(client, "s")
    assert (shot.ready, shot.leased, shot.leased_tasks, shot.start_tasks) == (9, 3, 0, 1)
    assert (shot.items, shot.acked, shot.dead) == (1, 1, 1)
    assert one.frontier.take() is None, "not even what is buffered already is started"
    assert not one.frontier.idle

    memory_again(client)
    one.advance(1)
    assert one.frontier.take() is not None


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_dupefilter_takes_what_pages_in_flight_find(kind: Filter, client: redis.Redis) -> None:
    one = Owner(client, "one", filter=kind).open()
    one.add("a")
    lease = one.take()
    assert lease is not None
    out_of_memory(client)
    for payload in ("child", "a", "child"):
        one.add(payload)
    one.frontier.ack(lease[0])
    one.advance(30)
    assert one.duplicates == [b"a", b"child"]
    assert (snapshot(client, "s").fingerprints, snapshot(client, "s").ready) == (2, 1)
    memory_again(client)
    one.advance(5)
    assert one.take_all() == ["child"]


def test_no_start_task_is_leased_until_there_is_memory(client: redis.Redis) -> None:
    client.rpush(KEYS.start_tasks(), "t")
    one = Owner(client, "one").open()
    out_of_memory(client)
    one.frontier.want_tasks(5)
    one.advance(5)
    assert (one.frontier.take_task(), snapshot(client, "s").start_tasks) == (None, 1)
    memory_again(client)
    one.advance(5)
    assert one.frontier.take_task() is not None


def test_it_is_said_once_each_way(client: redis.Redis, caplog: pytest.LogCaptureFixture) -> None:
    one = Owner(client, "one").open()
    out_of_memory(client)
    one.advance(20)
    memory_again(client)
    one.advance(20)
    assert [record.getMessage() for record in caplog.records] == [
        "Redis is out of memory (maxmemory): no page is started, what runs is stored; raise maxmemory or make room",
        "Redis has memory again; the crawl goes on",
    ]


def test_a_process_that_finds_nothing_asks_no_faster_than_it_polls(client: redis.Redis) -> None:
    one = Owner(client, "one").open()
    one.add("a")
    one.advance()
    out_of_memory(client)
    one.advance(2)
    assert one.frontier.take() is None
    before = one.frontier.exchanges
    one.advance(10)
    assert one.frontier.exchanges - before <= 10 / one.frontier.config.slowest_poll_s + 2


def test_the_engine_and_the_feed_are_woken_when_there_is_memory_again(client: redis.Redis) -> None:
    one = Owner(client, "one").open()
    one.add("a")
    one.advance()
    out_of_memory(client)
    one.advance(5)
    woken: list[str] = []
    assert one.frontier.take() is None
    one.frontier.listeners.work = lambda: woken.append("work")
    one.frontier.listeners.tasks = lambda: woken.append("tasks")
    one.advance(5)
    assert woken == []
    memory_again(client)
    one.advance(5)
    assert {"work", "tasks"} <= set(woken)


def test_a_dead_owner_is_reclaimed_and_a_live_one_stays_alive(client: redis.Redis) -> None:
    one = Owner(client, "one").open()
    two = Owner(client, "two").open()
    one.add("a")
    assert one.take_all() == ["a"]
    out_of_memory(client)
    assert expire_owner(client, KEYS, "one")
    assert script("heartbeat")(client, {"owners": KEYS.owners()}, {"owner": "two", "ttl_ms": 60_000}) == 1
    two.advance(5)
    shot = snapshot(client, "s")
    assert (shot.ready, shot.leased, shot.owners) == (1, 0, 1)


def test_a_process_that_leaves_gives_everything_back(client: redis.Redis) -> None:
    one = Owner(client, "one").open()
    for payload in "ab":
        one.add(payload)
    one.advance()
    out_of_memory(client)
    one.close()
    shot = snapshot(client, "s")
    assert (shot.ready, shot.leased, shot.owners) == (2, 0, 0)
