"""Start tasks from several keys: the most urgent first, and each goes back to where it came from."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import redis

from redis_components.admin import dead_letters
from redis_components.admin.inspector import expire_owner, snapshot
from redis_components.frontier.messages import KeyedItem
from tests.support.owner import KEYS, Owner

HIGH, MIDDLE, LOW = "s:high", "s:middle", "s:low"
SEVERAL = replace(KEYS, start_urls=HIGH, more_start_urls=(MIDDLE, LOW))


def fill(client: redis.Redis) -> None:
    """One key of each type."""
    client.rpush(HIGH, "h1", "h2")
    client.zadd(MIDDLE, {"m1": 7, "m2": 3})
    client.sadd(LOW, "l1")


def test_the_most_urgent_key_is_read_first_and_the_next_one_only_for_what_it_lacks(redis_client: redis.Redis) -> None:
    fill(redis_client)
    one = Owner(redis_client, "one", keys=SEVERAL).open()
    assert list(one.take_tasks(1)) == ["h1"]
    assert list(one.take_tasks(2)) == ["h2", "m1"]
    redis_client.rpush(HIGH, "h3")
    assert list(one.take_tasks(2)) == ["h3", "m2"]
    assert list(one.take_tasks(5)) == ["l1"]
    assert snapshot(redis_client, "s", SEVERAL).start_tasks == 0


def test_tasks_in_a_less_urgent_key_keep_the_crawl_alive(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one", keys=SEVERAL).open()
    one.advance()
    assert one.frontier.task_idle
    redis_client.sadd(LOW, "l1", "l2")
    one.frontier.want_tasks(0)
    one.advance(5)
    assert not one.frontier.task_idle
    assert snapshot(redis_client, "s", SEVERAL).start_tasks == 2


@pytest.mark.parametrize("how", ["released", "reclaimed", "replayed"])
def test_a_task_goes_back_to_its_key_whoever_gives_it_back(redis_client: redis.Redis, how: str) -> None:
    fill(redis_client)
    one = Owner(redis_client, "one", keys=SEVERAL).open()
    taken = one.take_tasks(9)
    assert len(taken) == 5
    match how:
        case "released":
            for lease_id in reversed(taken.values()):
                one.frontier.release(lease_id)
            one.advance()
        case "reclaimed":
            expire_owner(redis_client, KEYS, "one")
            Owner(redis_client, "two", keys=replace(KEYS, start_urls="s:other")).open().advance(5)
        case _:
            for task, lease_id in reversed(taken.items()):
                one.frontier.bury(lease_id, task)
            one.advance()
            assert dead_letters.replay(redis_client, replace(KEYS, start_urls="s:other")).done == 5
    assert redis_client.lrange(HIGH, 0, 9) == [b"h1", b"h2"]
    assert redis_client.zrange(MIDDLE, 0, 9, withscores=True) == [(b"m2", 3.0), (b"m1", 7.0)]
    assert redis_client.smembers(LOW) == {b"l1"}
    assert not redis_client.exists("s:other", KEYS.start_tasks())
    assert snapshot(redis_client, "s", SEVERAL).leased_tasks == 0


def test_a_task_whose_key_has_become_something_else_goes_to_the_first_key_of_who_gives_it_back(redis_client: redis.Redis) -> None:
    redis_client.sadd(LOW, "l1")
    Owner(redis_client, "one", keys=SEVERAL).open().take_tasks(9)
    redis_client.set(LOW, "foreign")
    expire_owner(redis_client, KEYS, "one")
    Owner(redis_client, "two").open().advance(5)
    assert redis_client.smembers(KEYS.start_tasks()) == {b"l1"}


def test_a_suspect_in_a_less_urgent_key_is_leased_alone(redis_client: redis.Redis) -> None:
    fill(redis_client)
    expire_owner_of_suspect(redis_client)
    one = Owner(redis_client, "one", keys=SEVERAL).open()
    one.advance(5)
    wishes = [list(one.take_tasks(9)) for _ in range(3)]
    assert wishes == [["h1", "h2"], ["m1"], ["m2", "l1"]]


def expire_owner_of_suspect(client: redis.Redis) -> None:
    """A crawler dies with m1."""
    client.rename(HIGH, "aside")
    Owner(client, "dies", keys=SEVERAL).open().take_tasks(1)
    expire_owner(client, KEYS, "dies")
    client.rename("aside", HIGH)


def test_a_less_urgent_key_of_a_foreign_type_is_named(redis_client: redis.Redis, caplog: pytest.LogCaptureFixture) -> None:
    redis_client.set(LOW, "foreign")
    redis_client.rpush(HIGH, "h1")
    one = Owner(redis_client, "one", keys=SEVERAL).open()
    assert one.take_tasks(1) == {}
    assert f"WRONGTYPE {LOW} is a string" in caplog.text
    redis_client.delete(LOW)
    one.advance(5)
    assert one.frontier.has_tasks


def test_the_reason_of_a_bad_task_is_kept_with_its_key(redis_client: redis.Redis) -> None:
    fill(redis_client)
    one = Owner(redis_client, "one", keys=SEVERAL).open()
    one.frontier.bury(one.take_tasks(3)["m1"], "bad")
    one.advance()
    head, _, payload = redis_client.lindex(KEYS.dead(), 0).partition(b"\n")
    about = json.loads(head)
    assert (about["kind"], about["key"], about["reason"], payload) == ("z", MIDDLE, "bad", b"m1")


def test_items_with_lists_of_their_own_are_stored_with_the_ack_of_their_request(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one", keys=SEVERAL).open()
    one.add("a")
    lease = one.take()
    assert lease is not None
    for key, data in (("x", b"1"), ("y", b"2"), ("x", b"3")):
        one.frontier.add_keyed_item(KeyedItem(key, data))
    one.frontier.add_item(b"4")
    one.frontier.ack(lease[0])
    one.exchanger.lose_replies = 2
    one.advance(5)
    assert redis_client.lrange("x", 0, 9) == [b"1", b"3"]
    assert redis_client.lrange("y", 0, 9) == [b"2"]
    assert redis_client.lrange(KEYS.item_stream(), 0, 9) == [b"4"]
    assert snapshot(redis_client, "s").acked == 1


def test_a_list_of_items_of_a_foreign_type_is_named_and_nothing_is_stored_half(
    redis_client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    redis_client.set("x", "foreign")
    one = Owner(redis_client, "one").open()
    one.frontier.add_item(b"0")
    one.frontier.add_keyed_item(KeyedItem("x", b"1"))
    one.advance(5)
    assert "WRONGTYPE x is a string" in caplog.text
    assert not redis_client.exists(KEYS.item_stream())
    redis_client.delete("x")
    one.advance(5)
    assert redis_client.lrange("x", 0, 9) == [b"1"]
    assert redis_client.lrange(KEYS.item_stream(), 0, 9) == [b"0"]


def test_items_with_lists_of_their_own_are_written_again_when_redis_has_forgotten_them(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one").open()
    one.frontier.add_keyed_item(KeyedItem("x", b"1"))
    one.advance()
    redis_client.flushall()
    one.advance(5)
    assert one.fenced == 1
    assert redis_client.lrange("x", 0, 9) == [b"1"]


def test_idle_time_begins_anew_after_each_work_of_anybody(redis_client: redis.Redis) -> None:
    one, two = Owner(redis_client, "one").open(), Owner(redis_client, "two").open()
    one.advance(5)
    since = one.frontier.task_idle_since
    assert since is not None
    assert since < 1
    redis_client.rpush(KEYS.start_tasks(), "t")
    (lease_id,) = two.take_tasks(1).values()
    one.advance(1)
    assert one.frontier.task_idle_since is None
    two.frontier.ack(lease_id)
    two.advance()
    one.advance(1)
    again = one.frontier.task_idle_since
    assert again is not None
    assert again > 5


def test_the_time_for_which_redis_was_away_is_not_idle_time(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one").open()
    one.advance(5)
    one.exchanger.lose_requests = 5
    one.advance(60)
    since = one.frontier.task_idle_since
    assert since is not None
    assert since > 5
