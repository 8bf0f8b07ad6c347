"""Before a process says good-bye, what it wrote is safe. On a real Redis with an append-only file, with a clock moved by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from redis_components.admin.inspector import snapshot
from redis_components.frontier.messages import StatChange
from tests.support.owner import KEYS, Owner
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.processes


@pytest.fixture
def durable() -> Iterator[redis.Redis]:
    with RedisServer(aof=True) as server:
        yield server.client()


def state_of(client: redis.Redis) -> dict[bytes, Any]:
    return {key: client.dump(key) for key in client.scan_iter("*")}


def come_back_as(client: redis.Redis, state: dict[bytes, Any]) -> None:
    """What a crash with a lost last second does."""
    client.flushall()
    for key, dumped in state.items():
        client.restore(key, 0, dumped)


def leave(owner: Owner) -> list[float]:
    """The times at which the process has left; its close is done when this returns."""
    left: list[float] = []
    owner.frontier.close(lambda: None)
    owner.frontier.leave(lambda: left.append(owner.frontier.now()))
    owner.advance(0.1)
    return left


def test_a_process_stays_until_its_last_write_is_on_the_disk(durable: redis.Redis) -> None:
    one = Owner(durable, "one").open()
    one.frontier.add_item(b"item")
    written = one.frontier.now()
    left = leave(one)
    one.advance(1.3)
    assert (left, snapshot(durable, "s").owners) == ([], 1)
    one.advance(0.2)
    assert left == [pytest.approx(written + 1.5, abs=0.05)]
    shot = snapshot(durable, "s")
    assert (shot.owners, shot.items) == (0, 1)
    assert one.exchanger.closed


def test_what_a_crash_took_back_meanwhile_is_written_again_and_the_time_begins_anew(durable: redis.Redis) -> None:
    one = Owner(durable, "one").open()
    one.add("a")
    one.advance()
    older = state_of(durable)
    one.frontier.add_item(b"item")
    one.add("b")
    left = leave(one)
    one.advance(1)
    come_back_as(durable, older)
    one.advance(0.6)
    again = one.frontier.now()
    assert (one.fenced, left) == (1, [])
    assert snapshot(durable, "s").items == 1
    one.advance(1.2)
    assert left == []
    one.advance(0.5)
    assert len(left) == 1
    assert left[0] >= again + 1.2
    shot = snapshot(durable, "s")
    assert (shot.items, shot.ready, shot.leased, shot.owners) == (1, 2, 0, 0)


def test_the_final_stats_are_safe_too(durable: redis.Redis) -> None:
    one = Owner(durable, "one").open()
    one.advance(5)
    changes = [StatChange("add", "pages", "5")]

    def stats(final: bool) -> list[StatChange]:
        told = list(changes) if final else []
        if final:
            changes.clear()
        return told

    one.frontier.listeners.stats = stats
    left = leave(one)
    assert (left, durable.hget(KEYS.stats_hash(), "pages")) == ([], b"5")
    older = {key: dumped for key, dumped in state_of(durable).items() if key.decode() not in (KEYS.stats_hash(), KEYS.numbers())}
    come_back_as(durable, older)
    one.advance(5)
    assert (len(left), durable.hget(KEYS.stats_hash(), "pages")) == (1, b"5")


def test_who_wrote_long_ago_leaves_at_once(durable: redis.Redis) -> None:
    one = Owner(durable, "one").open()
    one.frontier.add_item(b"item")
    one.advance(5)
    assert len(leave(one)) == 1


def test_without_an_append_only_file_nobody_stays(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one").open()
    one.frontier.add_item(b"item")
    assert len(leave(one)) == 1
    assert snapshot(redis_client, "s").items == 1


def test_the_stay_can_be_switched_off(durable: redis.Redis) -> None:
    one = Owner(durable, "one", fsync_window_s=0).open()
    one.frontier.add_item(b"item")
    assert len(leave(one)) == 1


def test_who_may_not_ask_redis_stays(redis_client: redis.Redis, redis_server: RedisServer) -> None:
    redis_client.acl_setuser("crawler", enabled=True, nopass=True, keys=["*"], categories=["+@all", "-@dangerous"])
    client = redis.Redis(host="127.0.0.1", port=redis_server.port, username="crawler", password="any")
    try:
        one = Owner(client, "one").open()
        one.frontier.add_item(b"item")
        left = leave(one)
        assert left == []
        one.advance(2)
        assert len(left) == 1
    finally:
        client.close()
        redis_client.acl_deluser("crawler")


def test_a_long_stay_keeps_the_process_alive(durable: redis.Redis) -> None:
    one = Owner(durable, "one", fsync_window_s=30, ttl_s=4).open()
    one.frontier.add_item(b"item")
    left = leave(one)
    before = one.frontier.exchanges
    one.advance(20)
    assert left == []
    assert 18 <= one.frontier.exchanges - before <= 22, "a beat each second"
    one.advance(20)
    assert len(left) == 1
