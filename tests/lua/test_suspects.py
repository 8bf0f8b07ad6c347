"""Requests that were at work in several deaths, here called suspects: each process tries one at a time, so that only the guilty
one is there each time its crawler dies. Nobody else waits for that, and nothing is forgotten over it.
"""

from __future__ import annotations

import pytest
import redis

from redis_components.admin.inspector import expire_owner, snapshot
from redis_components.frontier.messages import Lease
from tests.support.owner import KEYS, Owner

SUSPECT = 2
"""Attempts that make a suspect, by default."""


def ready(client: redis.Redis, *payloads: str, attempts: int = 0) -> None:
    """Put READY requests behind those that are there."""
    place = client.zcard(KEYS.ready())
    for number, payload in enumerate(payloads, place):
        client.zadd(KEYS.ready(), {number.to_bytes(8, "big") + bytes([attempts]) + payload.encode(): 0})


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def leases_of(owner: Owner) -> dict[str, Lease]:
    """What the owner is given without settling anything."""
    held: dict[str, Lease] = {}
    for wait_s in (0, 0.5, 0.5):
        owner.advance(wait_s)
        while (lease := owner.frontier.take()) is not None:
            held[lease.data.decode()] = lease
    return held


def die(client: redis.Redis, owner: Owner) -> None:
    owner.frontier.stop()
    expire_owner(client, KEYS, owner.frontier.owner)


def test_a_process_tries_one_suspect_and_goes_on_with_ordinary_requests(redis_client: redis.Redis) -> None:
    ready(redis_client, "s1", "s2", attempts=SUSPECT)
    ready(redis_client, "a", "b")
    ready(redis_client, "s3", attempts=SUSPECT + 1)
    ready(redis_client, "c")
    one = Owner(redis_client, "one").open()
    assert set(leases_of(one)) == {"s1", "a", "b", "c"}
    one.add("d")
    assert set(leases_of(one)) == {"d"}
    assert snapshot(redis_client, "s").ready == 2


def test_what_is_withheld_keeps_its_place_and_its_attempts(redis_client: redis.Redis) -> None:
    ready(redis_client, *names("s", 4), attempts=SUSPECT)
    before = redis_client.zrange(KEYS.ready(), 0, 9, withscores=True)
    one = Owner(redis_client, "one").open()
    one.advance(5)
    assert redis_client.zrange(KEYS.ready(), 0, 9, withscores=True) == before[1:]


def test_each_process_tries_one_of_its_own(redis_client: redis.Redis) -> None:
    ready(redis_client, *names("s", 3), attempts=SUSPECT)
    owners = [Owner(redis_client, name).open() for name in ("one", "two")]
    assert [set(leases_of(owner)) for owner in owners] == [{"s0"}, {"s1"}]


@pytest.mark.parametrize(("max_attempts", "attempts"), [(5, 1), (3, 1), (2, 0)])
def test_one_death_less_is_no_suspect(redis_client: redis.Redis, max_attempts: int, attempts: int) -> None:
    ready(redis_client, "a", "b", attempts=attempts)
    assert set(leases_of(Owner(redis_client, "one", max_attempts=max_attempts).open())) == {"a", "b"}


def test_where_two_deaths_are_the_end_one_makes_a_suspect(redis_client: redis.Redis) -> None:
    ready(redis_client, "a", "b", attempts=1)
    assert set(leases_of(Owner(redis_client, "one", max_attempts=2).open())) == {"a"}


@pytest.mark.parametrize("end", ["ack", "release", "bury"])
def test_the_next_suspect_comes_when_the_one_before_is_settled(redis_client: redis.Redis, end: str) -> None:
    ready(redis_client, "s1", "s2", attempts=SUSPECT)
    one = Owner(redis_client, "one").open()
    (lease,) = leases_of(one).values()
    match end:
        case "ack":
            one.frontier.ack(lease.id)
        case "release":
            one.frontier.release(lease.id)
        case _:
            one.frontier.bury(lease.id, "bad")
    held = leases_of(one)
    assert len(held) == 1, "one at a time also then"
    assert set(held) == ({"s1"} if end == "release" else {"s2"}), "what is released is at the head of the queue again"


def test_a_process_that_was_fenced_tries_the_next_one_under_its_new_name(redis_client: redis.Redis) -> None:
    ready(redis_client, "s1", "s2", attempts=SUSPECT)
    one = Owner(redis_client, "one").open()
    assert set(leases_of(one)) == {"s1"}
    expire_owner(redis_client, KEYS, "one")
    two = Owner(redis_client, "two").open()
    two.advance(1)
    held = set(leases_of(two))
    one.advance(5)
    assert one.fenced
    assert held | set(leases_of(one)) == {"s1", "s2"}
    assert snapshot(redis_client, "s").leased == 2


def test_a_process_that_leaves_gives_an_unstarted_suspect_back(redis_client: redis.Redis) -> None:
    ready(redis_client, "s1", "s2", attempts=SUSPECT)
    one = Owner(redis_client, "one").open()
    one.advance(1)
    one.close()
    one.advance(5)
    assert set(leases_of(Owner(redis_client, "two").open())) == {"s1"}
    shot = snapshot(redis_client, "s")
    assert (shot.ready, shot.leased, shot.dead) == (1, 1, 0)


def test_a_repeated_answer_withholds_too(redis_client: redis.Redis) -> None:
    ready(redis_client, *names("s", 3), attempts=SUSPECT)
    one = Owner(redis_client, "one")
    one.exchanger.lose_replies = 1
    one.open().advance(5)
    assert set(leases_of(one)) == {"s0"}


def test_withheld_requests_are_no_idleness(redis_client: redis.Redis) -> None:
    ready(redis_client, "s1", "s2", "s3", attempts=SUSPECT)
    one = Owner(redis_client, "one").open()
    (lease,) = leases_of(one).values()
    two = Owner(redis_client, "two").open()
    (other,) = leases_of(two).values()
    two.advance(5)
    assert not two.frontier.idle, "one is withheld"
    one.frontier.ack(lease.id)
    (lease,) = leases_of(one).values()
    one.frontier.ack(lease.id)
    one.advance(5)
    assert not one.frontier.idle, "the other process tries one"
    two.frontier.ack(other.id)
    two.advance()
    one.advance(5)
    assert one.frontier.idle


@pytest.mark.parametrize("count", [4, 100, 1000])
def test_a_process_that_starves_beside_suspects_does_not_spin(redis_client: redis.Redis, count: int) -> None:
    ready(redis_client, *names("s", count), attempts=SUSPECT)
    one = Owner(redis_client, "one", concurrency=4).open()
    assert len(leases_of(one)) == 1
    before = one.frontier.exchanges
    assert one.frontier.take() is None
    one.advance(10)
    assert one.frontier.exchanges - before <= 10 / one.frontier.config.slowest_poll_s + 10


def test_an_ordinary_request_behind_many_suspects_is_found(redis_client: redis.Redis) -> None:
    ready(redis_client, *names("s", 150), attempts=SUSPECT)
    ready(redis_client, "a")
    assert set(leases_of(Owner(redis_client, "one", concurrency=2).open())) == {"s0", "a"}


def test_start_tasks_do_not_wait_for_suspects(redis_client: redis.Redis) -> None:
    ready(redis_client, *names("s", 300), attempts=SUSPECT)
    redis_client.rpush(KEYS.start_tasks(), "task")
    one = Owner(redis_client, "one", concurrency=4).open()
    assert len(leases_of(one)) == 1
    one.frontier.want_tasks(4)
    one.advance(1)
    assert one.frontier.take_task() is not None


def test_only_the_guilty_one_of_many_suspects_is_given_up(redis_client: redis.Redis) -> None:
    ready(redis_client, *names("s", 5), "guilty", *names("t", 5), attempts=SUSPECT)
    done: set[str] = set()
    for life in range(20):
        owner = Owner(redis_client, f"o{life}").open()
        owner.advance(1)
        while not owner.frontier.idle:
            held = leases_of(owner)
            if "guilty" in held:
                break
            for payload, lease in held.items():
                owner.frontier.ack(lease.id)
                done.add(payload)
            owner.advance()
        if owner.frontier.idle:
            break
        die(redis_client, owner)
    assert done == {*names("s", 5), *names("t", 5)}
    assert snapshot(redis_client, "s").dead == 1
    assert life == 3, "it had two deaths, and three more are the end"
