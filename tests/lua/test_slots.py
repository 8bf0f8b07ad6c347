"""The slot scripts, through the registry: one holder at a time, and an old holder never comes back."""

from __future__ import annotations

from dataclasses import replace

import pytest
import redis

from tests.support.contents import contents
from workers.state.keys import FleetKeys
from workers.state.registry import SLOT_TTL_S, CrawlerRecord, CrawlerState, Registry, Slot, SlotCommand, SlotCommandKind, SlotView

KEYS = FleetKeys()
SLOT = KEYS.slot("list", 0)


@pytest.fixture
def registry(redis_client: redis.Redis) -> Registry:
    return Registry(redis_client)


def take(registry: Registry, owner: str = "node-a") -> Slot:
    slot = registry.acquire("list", 0, owner)
    assert slot is not None
    return slot


def record(state: CrawlerState = CrawlerState.RUNNING) -> CrawlerRecord:
    return CrawlerRecord(spider="list", number=0, pid=7, state=state)


def test_a_free_slot_is_acquired_and_a_held_one_is_not(registry: Registry, redis_client: redis.Redis) -> None:
    slot = take(registry)
    assert registry.acquire("list", 0, "node-b") is None
    assert registry.acquire("list", 0, "node-a") is None  # not even by the same node: it may have been launched twice
    assert registry.acquire("list", 1, "node-b") is not None
    assert 0 < redis_client.pttl(SLOT) <= SLOT_TTL_S * 1000
    assert redis_client.hget(KEYS.fences(), "list/0") == str(slot.token).encode()


def test_acquire_sent_again_after_a_lost_answer_returns_the_same_token(redis_client: redis.Redis) -> None:
    from workers.state.keys import script

    keys = {"slot": SLOT, "fences": KEYS.fences(), "orders": KEYS.orders(), "crawlers": KEYS.crawlers()}
    args = {"name": "list/0", "owner": "node-a#1234", "ttl_ms": 15_000}
    first = script("slot_acquire")(redis_client, keys, args)
    assert first[0] == b"acquired"
    assert script("slot_acquire")(redis_client, keys, args) == first


def test_tokens_rise_with_every_holder(registry: Registry) -> None:
    tokens = []
    for _ in range(3):
        slot = take(registry)
        tokens.append(slot.token)
        assert registry.release(slot)
    assert tokens == sorted(set(tokens))


def test_renewing_keeps_the_slot_and_stores_the_record_with_the_servers_time(
    registry: Registry, redis_client: redis.Redis
) -> None:
    slot = take(registry)
    redis_client.pexpire(SLOT, 100)
    assert registry.renew(slot, record()).held
    assert redis_client.pttl(SLOT) > 5_000
    (stored,) = registry.crawlers()
    assert (stored.name, stored.pid, stored.state) == ("list/0", 7, CrawlerState.RUNNING)
    assert stored.alive(registry.now())
    assert not stored.alive(registry.now() + 16)


def test_renewing_without_a_record_leaves_the_last_one(registry: Registry) -> None:
    slot = take(registry)
    registry.renew(slot, record())
    before = registry.crawlers()
    assert registry.renew(slot).held
    assert registry.crawlers() == before


def test_a_slot_that_vanished_is_taken_back_when_nobody_got_it_meanwhile(registry: Registry, redis_client: redis.Redis) -> None:
    slot = take(registry)
    redis_client.delete(SLOT)
    assert registry.renew(slot).held
    assert registry.acquire("list", 0, "node-b") is None
    redis_client.delete(SLOT, KEYS.fences())  # Redis came back without its data
    assert registry.renew(slot).held
    assert registry.acquire("list", 0, "node-b") is None


def test_a_slot_whose_key_was_deleted_is_not_given_away_while_its_holder_is_heard(
    registry: Registry, redis_client: redis.Redis
) -> None:
    slot = take(registry)
    alive = replace(record(), token=slot.token)
    registry.renew(slot, alive)
    redis_client.delete(SLOT)
    assert registry.acquire("list", 0, "node-b") is None
    assert registry.renew(slot, alive).held
    assert registry.release(slot, replace(alive, state=CrawlerState.STOPPED))
    heir = take(registry, "node-b")  # given back, it is free at once

    stamped = redis_client.hget(KEYS.crawlers(), "list/0") or b""
    registry.renew(heir, replace(alive, token=heir.token))
    redis_client.delete(SLOT)
    said = redis_client.hget(KEYS.crawlers(), "list/0") or b""
    old = f'{{"beat_at":{registry.now() - SLOT_TTL_S - 1:.3f},'.encode() + said.partition(b",")[2]
    assert stamped.startswith(b'{"beat_at":')
    redis_client.hset(KEYS.crawlers(), "list/0", old)  # and when it was not heard for a TTL
    assert registry.acquire("list", 0, "node-c") is not None


def test_a_late_holder_is_fenced_by_a_newer_token(registry: Registry, redis_client: redis.Redis) -> None:
    late = take(registry)
    redis_client.delete(SLOT)  # it ran out while the process was paused
    fresh = take(registry, "node-b")
    registry.renew(fresh, record())

    assert not registry.renew(late, record(CrawlerState.STOPPING)).held
    assert not registry.release(late, record(CrawlerState.STOPPED))
    redis_client.delete(SLOT)  # and also when the newer one has run out in turn
    assert not registry.renew(late, record(CrawlerState.STOPPING)).held
    assert not registry.release(late, record(CrawlerState.STOPPED))

    assert [r.state for r in registry.crawlers()] == [CrawlerState.RUNNING]
    assert registry.renew(fresh).held


def test_releasing_frees_the_slot_at_once_and_leaves_a_last_word(registry: Registry, redis_client: redis.Redis) -> None:
    slot = take(registry)
    assert registry.release(slot, record(CrawlerState.STOPPED))
    assert not redis_client.exists(SLOT)
    assert [r.state for r in registry.crawlers()] == [CrawlerState.STOPPED]
    assert registry.release(slot)  # sent again after a lost answer
    assert not registry.renew(slot).held  # a renewal that was under way comes too late
    assert not redis_client.exists(SLOT)
    assert registry.acquire("list", 0, "node-b") is not None


def test_an_order_reaches_the_holder_it_was_meant_for_and_no_other(registry: Registry) -> None:
    slot = take(registry)
    registry.order(
        SlotView(spider="list", number=0, token=slot.token), SlotCommand(word=SlotCommandKind.RETIRE, reason="2 | are enough")
    )
    assert registry.renew(slot).order == SlotCommand(word=SlotCommandKind.RETIRE, reason="2 | are enough")
    assert registry.renew(slot).order is not None  # until it is obeyed
    registry.release(slot)
    successor = take(registry)
    assert registry.renew(successor).order is None
    registry.order(
        SlotView(spider="list", number=0, token=slot.token), SlotCommand(word=SlotCommandKind.RETIRE)
    )  # meant for the one before
    assert registry.renew(successor).order is None


def test_an_order_for_a_slot_that_nobody_holds_is_not_kept(registry: Registry, redis_client: redis.Redis) -> None:
    registry.order(SlotView(spider="list", number=0), SlotCommand(word=SlotCommandKind.RETIRE))
    assert not redis_client.exists(KEYS.orders())


@pytest.mark.parametrize("operation", ["acquire", "renew", "release"])
def test_a_refused_call_changes_nothing(operation: str, registry: Registry, redis_client: redis.Redis) -> None:
    late = take(registry)
    redis_client.delete(SLOT)
    registry.renew(take(registry, "node-b"), record())
    before = contents(redis_client)
    if operation == "acquire":
        assert registry.acquire("list", 0, "node-c") is None
    elif operation == "renew":
        assert not registry.renew(late, record(CrawlerState.STOPPING)).held
    else:
        assert not registry.release(late, record(CrawlerState.STOPPED))
    assert contents(redis_client) == before
