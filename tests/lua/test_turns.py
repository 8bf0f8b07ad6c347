"""Start tasks that take turns by their site: nobody waits behind another site's backlog."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import redis

from redis_components.admin import dead_letters
from redis_components.admin.inspector import expire_owner, snapshot
from tests.support.owner import KEYS, Owner

LANES = replace(KEYS, more_start_urls=(KEYS.later_tasks(),))


def owner(client: redis.Redis, name: str = "one") -> Owner:
    return Owner(client, name, keys=LANES, turn_by="site").open()


def push(client: redis.Redis, site: str, *names: str, key: str = KEYS.start_tasks()) -> None:
    client.rpush(key, *(json.dumps({"site": site, "post": name}, separators=(",", ":")) for name in names))


def posts(taken: dict[str, str]) -> list[str]:
    return [json.loads(task)["post"] for task in taken]


def test_one_of_each_site_in_turn_each_in_its_own_order(redis_client: redis.Redis) -> None:
    push(redis_client, "a", *(f"a{number}" for number in range(5000)))
    push(redis_client, "b", "b1", "b2")
    push(redis_client, "c", "c1")
    one = owner(redis_client)
    one.take_tasks(0)
    one.advance(5)
    taken = posts(one.take_tasks(4)) + posts(one.take_tasks(4))
    assert sorted(taken[:3]) == ["a0", "b1", "c1"]
    assert [name for name in taken if name[0] == "a"] == ["a0", "a1", "a2", "a3", "a4"]
    assert [name for name in taken if name[0] == "b"] == ["b1", "b2"]
    assert (redis_client.exists(KEYS.start_tasks()), redis_client.zcard(KEYS.turns())) == (0, 4995)
    assert snapshot(redis_client, "s").start_tasks == 4995


def test_a_backlog_is_sorted_in_without_a_pause_so_that_who_comes_behind_it_is_seen(redis_client: redis.Redis) -> None:
    push(redis_client, "a", *(f"a{number}" for number in range(30_000)))
    push(redis_client, "b", "b1")
    one = owner(redis_client)
    one.advance(0.2)
    assert (redis_client.exists(KEYS.start_tasks()), redis_client.zcard(KEYS.turns())) == (0, 30_001)


def test_a_site_behind_a_backlog_has_its_turn_before_that_is_sorted_in(redis_client: redis.Redis) -> None:
    one = owner(redis_client)
    push(redis_client, "a", *(f"a{number}" for number in range(30_000)))
    push(redis_client, "b", "b1", "b1", "b2")
    one.exchanger.cut_after = 1
    taken = posts(one.take_tasks(4))
    assert sorted(taken) == ["a0", "a1", "a2", "b1"]
    assert redis_client.llen(KEYS.start_tasks()) == 28_002
    one.exchanger.cut_after = None
    rest = [*posts(one.take_tasks(2)), *posts(one.take_tasks(3))]
    assert [name for name in rest if name[0] == "b"] == ["b1", "b2"]
    assert redis_client.zcard(KEYS.turns()) == 30_003 - 9


def test_the_turn_goes_on_where_another_crawler_ended(redis_client: redis.Redis) -> None:
    for site in "abc":
        push(redis_client, site, f"{site}1", f"{site}2")
    one, two = owner(redis_client, "one"), owner(redis_client, "two")
    taken = [*posts(one.take_tasks(1)), *posts(two.take_tasks(1)), *posts(one.take_tasks(2)), *posts(two.take_tasks(9))]
    assert taken == ["a1", "b1", "c1", "a2", "b2", "c2"]


def test_of_a_site_that_has_enough_here_no_more_are_taken_and_later_ones_of_others_are(redis_client: redis.Redis) -> None:
    push(redis_client, "a", "a1", "a2", "a3")
    push(redis_client, "b", "b1")
    push(redis_client, "b", "b2", key=KEYS.later_tasks())
    one = owner(redis_client)
    one.frontier.listeners.room = lambda: {"a": 1}
    assert posts(one.take_tasks(9)) == ["a1", "b1", "b2"]
    one.frontier.listeners.room = lambda: {"a": 0}
    assert posts(one.take_tasks(9)) == []
    assert posts(owner(redis_client, "two").take_tasks(9)) == ["a2", "a3"], "another crawler has room for it"


def test_urgent_tasks_of_any_site_come_before_later_ones(redis_client: redis.Redis) -> None:
    push(redis_client, "a", "a-later", key=KEYS.later_tasks())
    push(redis_client, "b", "b1", "b2")
    assert posts(owner(redis_client).take_tasks(2)) == ["b1", "b2"]


@pytest.mark.parametrize("how", ["released", "reclaimed"])
def test_a_task_that_comes_back_has_its_old_place(redis_client: redis.Redis, how: str) -> None:
    push(redis_client, "a", "a1", "a2", "a3")
    one = owner(redis_client)
    taken = one.take_tasks(2)
    assert posts(taken) == ["a1", "a2"]
    if how == "released":
        for lease_id in taken.values():
            one.frontier.release(lease_id)
        one.advance()
    else:
        expire_owner(redis_client, KEYS, "one")
    again = owner(redis_client, "two")
    again.advance(5)
    came = [name for _ in range(3) for name in posts(again.take_tasks(9))]  # whose crawler died comes alone
    assert came == ["a1", "a2", "a3"]
    assert snapshot(redis_client, "s").leased_tasks == 3


def test_a_task_that_is_given_up_is_kept_as_its_producer_wrote_it_and_replayed_to_its_key(redis_client: redis.Redis) -> None:
    push(redis_client, "a", "a1", key=KEYS.later_tasks())
    one = owner(redis_client)
    ((task, lease_id),) = one.take_tasks(1).items()
    one.frontier.bury(lease_id, "no")
    one.advance()
    (entry,), _ = dead_letters.newest(redis_client, KEYS, 9)
    assert (entry.payload.decode(), entry.key) == (task, KEYS.later_tasks())
    assert dead_letters.replay(redis_client, LANES).done == 1
    assert redis_client.lrange(KEYS.later_tasks(), 0, 9) == [task.encode()]


@pytest.mark.parametrize(
    "task", [b"no JSON", b'{"post": "1"}', b'{"site": 7}', b'["site"]', b'{"site": "a\\u0000b"}', b"\x00\xff"]
)
def test_a_task_without_a_site_has_a_turn_too(redis_client: redis.Redis, task: bytes) -> None:
    redis_client.rpush(KEYS.start_tasks(), task)
    push(redis_client, "a", "a1")
    one = owner(redis_client)
    one.frontier.want_tasks(9)
    one.advance()
    leased = {one.frontier.take_task().data, one.frontier.take_task().data}  # type: ignore[union-attr]
    assert leased == {task, b'{"site":"a","post":"a1"}'}


def test_start_keys_of_other_types_are_sorted_in_too(redis_client: redis.Redis) -> None:
    redis_client.zadd(KEYS.start_tasks(), {'{"site": "a", "post": "low"}': 1, '{"site": "a", "post": "high"}': 2})
    redis_client.sadd(KEYS.later_tasks(), '{"site": "b", "post": "b1"}')
    assert posts(owner(redis_client).take_tasks(9)) == ["high", "low", "b1"]


def test_hosts_take_turns_by_their_urls(redis_client: redis.Redis) -> None:
    redis_client.rpush(KEYS.start_tasks(), *(f"http://slow.example/{number}" for number in range(50)))
    redis_client.rpush(KEYS.start_tasks(), json.dumps({"url": "https://me@B.example:81/x?y"}), "c.example", '{"url": 7}')
    redis_client.rpush(KEYS.start_tasks(), json.dumps({"url": "http://slow.example/", "host": "named"}))
    one = Owner(redis_client, "one", keys=LANES, turn_by="host").open()
    one.frontier.listeners.room = lambda: {"slow.example": 1}
    taken = list(one.take_tasks(9))
    assert sorted(taken) == sorted(
        [
            '{"url": "https://me@B.example:81/x?y"}',
            "c.example",
            '{"url": 7}',
            '{"url": "http://slow.example/", "host": "named"}',
            "http://slow.example/0",
        ]
    )
    assert {one.partition(b"\0")[0] for one in redis_client.zrange(KEYS.turns(), 0, -1)} == {b"slow.example"}
