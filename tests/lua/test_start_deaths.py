"""Start tasks whose crawlers die while they hold them: counted, tried alone, given up with the reason."""

from __future__ import annotations

import json
from hashlib import sha1

import pytest
import redis

from redis_components.admin.inspector import expire_owner, snapshot
from tests.support.owner import KEYS, Owner

KINDS = ["list", "set", "zset"]


def seed(client: redis.Redis, kind: str, *tasks: str) -> None:
    match kind:
        case "list":
            client.rpush(KEYS.start_tasks(), *tasks)
        case "set":
            client.sadd(KEYS.start_tasks(), *tasks)
        case _:
            client.zadd(KEYS.start_tasks(), {task: -place for place, task in enumerate(tasks)})


def deaths(client: redis.Redis) -> dict[str, int]:
    return {field.decode(): int(count) for field, count in client.hgetall(KEYS.start_deaths()).items()}


def field(task: str) -> str:
    return sha1(task.encode()).hexdigest()


def die(client: redis.Redis, owner: Owner) -> None:
    owner.frontier.stop()
    expire_owner(client, KEYS, owner.frontier.owner)


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_whose_crawlers_keep_dying_is_given_up_and_its_neighbours_are_done(redis_client: redis.Redis, kind: str) -> None:
    good = {"good 1", "good 2", "good 3"}
    seed(redis_client, kind, "good 1", "poison", "good 2", "good 3")
    done: set[str] = set()
    for life in range(20):
        owner = Owner(redis_client, f"o{life}", max_attempts=3).open()
        owner.advance(1)  # it reclaims what the one before left
        for _ in range(10):
            tasks = owner.take_tasks()
            if "poison" in tasks:
                die(redis_client, owner)
                break
            for task, lease_id in tasks.items():
                owner.frontier.ack(lease_id)
                done.add(task)
            owner.advance()
        else:
            break
    shot = snapshot(redis_client, "s")
    assert (done, shot.start_tasks, shot.leased_tasks, shot.dead) == (good, 0, 0, 1)
    head, _, payload = redis_client.lindex(KEYS.dead(), 0).partition(b"\n")
    assert (json.loads(head)["reason"], payload) == ("attempts spent: its crawler died 3 times", b"poison")
    assert deaths(redis_client) == {}
    assert life == 3, "three deaths, and the fourth process finds nothing"


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_whose_crawler_died_is_leased_alone(redis_client: redis.Redis, kind: str) -> None:
    seed(redis_client, kind, "a", "b", "c")
    redis_client.hset(KEYS.start_deaths(), field("b"), 1)
    one = Owner(redis_client, "one").open()
    wishes = [set(one.take_tasks()) for _ in range(3)]
    assert {"b"} in wishes
    assert set.union(*wishes) == {"a", "b", "c"}
    assert snapshot(redis_client, "s").start_tasks == 0


def test_deaths_are_forgotten_when_the_task_is_done_or_given_up(redis_client: redis.Redis) -> None:
    seed(redis_client, "list", "a", "b")
    one = Owner(redis_client, "one").open()
    one.take_tasks()
    die(redis_client, one)
    two = Owner(redis_client, "two").open()
    two.advance(1)
    assert deaths(redis_client) == {field("a"): 1, field("b"): 1}
    assert 86_000 < redis_client.ttl(KEYS.start_deaths()) <= 86_400
    two.frontier.ack(two.take_tasks()["a"])
    two.frontier.bury(two.take_tasks()["b"], "bad")
    two.advance()
    assert deaths(redis_client) == {}


def test_only_a_death_counts(redis_client: redis.Redis) -> None:
    seed(redis_client, "list", "a", "b")
    one = Owner(redis_client, "one").open()
    one.frontier.want_tasks(2)
    one.advance()
    one.close()
    assert deaths(redis_client) == {}
    assert redis_client.lrange(KEYS.start_tasks(), 0, 9) == [b"a", b"b"], "in their old order"


def test_what_is_counted_is_bounded(redis_client: redis.Redis) -> None:
    redis_client.hset(KEYS.start_deaths(), mapping={f"gone {number}": 1 for number in range(10_000)})
    seed(redis_client, "list", "a")
    one = Owner(redis_client, "one").open()
    one.take_tasks()
    die(redis_client, one)
    Owner(redis_client, "two").open().advance(1)
    assert deaths(redis_client) == {field("a"): 1}


def test_the_tasks_of_a_dead_process_go_back_in_their_order(redis_client: redis.Redis) -> None:
    seed(redis_client, "list", "a", "b", "c", "d")
    one = Owner(redis_client, "one").open()
    one.take_tasks(3)
    die(redis_client, one)
    Owner(redis_client, "two").open().advance(1)
    assert redis_client.lrange(KEYS.start_tasks(), 0, 9) == [b"a", b"b", b"c", b"d"]
