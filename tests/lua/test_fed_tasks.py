"""Start tasks that one service makes for another: one waits for each id, the newest, and of each site as many as there is
capacity for.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
import redis

from redis_components.admin.inspector import expire_owner, snapshot
from redis_components.frontier.messages import Lane, NextTask
from redis_components.keys import CrawlKeys
from redis_components.start_tasks.seeding import NamedTask, push_named
from tests.support.owner import KEYS, Owner

DETAILS = CrawlKeys.for_spider("details")
FIELDS = ("token", "url")


def lister(client: redis.Redis, name: str = "lists", most: int = 10_000) -> Owner:
    return Owner(client, name, next_keys=DETAILS, newest_fields=FIELDS, most_fed=most, ttl_s=3600).open()


def reader(client: redis.Redis, name: str = "reader", *, turn_by: str = "", most: int = 10_000) -> Owner:
    return Owner(client, name, keys=DETAILS, newest_fields=FIELDS, turn_by=turn_by, most_fed=most, ttl_s=3600).open()


def feed(owner: Owner, thread: str, token: str, *, lane: Lane = "", wide: bool = False, site: str = "a", **fields: Any) -> None:
    data = json.dumps({"site": site, "post": thread, "token": token, **fields}).encode()
    owner.frontier.add_task(NextTask(f"{site}/{thread}", token, data, lane, wide, site))
    owner.advance()


def read(owner: Owner, number: int = 100) -> list[tuple[str, str]]:
    """Thread and token of each task that is leased, in their order; the leases stay open."""
    return [(task["post"], task["token"]) for task in map(json.loads, owner.take_tasks(number))]


def taken(owner: Owner, number: int) -> dict[str, str]:
    """The same with equal ones: task by lease id."""
    owner.frontier.want_tasks(number)
    owner.advance()
    leased = {}
    while (task := owner.frontier.take_task()) is not None:
        leased[task.id] = task.data.decode()
    return leased


def left_over(client: redis.Redis) -> dict[str, int]:
    """What is kept of fed tasks, where it is not empty."""
    counts = {
        "waiting": client.hlen(DETAILS.fed_waiting()),
        "ids": len(client.hkeys(DETAILS.fed_ids())) - client.hexists(DETAILS.fed_ids(), "made"),
        "overflow": client.hlen(DETAILS.overflow()),
        "order": client.zcard(DETAILS.overflow_order()),
        "tasks": snapshot(client, "details").start_tasks,
    }
    return {name: int(count) for name, count in counts.items() if count}


@pytest.mark.parametrize("turn_by", ["", "site"])
@pytest.mark.parametrize("kind", ["list", "set", "zset"])
def test_a_thread_that_changes_while_its_task_waits_keeps_its_place_and_is_read_in_its_newest_form(
    redis_client: redis.Redis, turn_by: str, kind: str
) -> None:
    if kind == "set":
        redis_client.sadd(DETAILS.start_tasks(), '{"site": "a", "post": "by hand", "token": "0"}')
    elif kind == "zset":
        redis_client.zadd(DETAILS.start_tasks(), {'{"site": "a", "post": "by hand", "token": "0"}': -1})
    lists = lister(redis_client)
    for token in range(12):
        for thread in ("p1", "p2", "p3"):
            feed(lists, thread, str(token))
    by_hand = [("by hand", "0")] if kind != "list" else []
    assert snapshot(redis_client, "details").start_tasks == 3 + len(by_hand), "one for each thread"
    found = read(reader(redis_client, turn_by=turn_by))
    assert sorted(found) == sorted([("p1", "11"), ("p2", "11"), ("p3", "11"), *by_hand])
    if kind == "list":
        assert [thread for thread, _ in found] == ["p1", "p2", "p3"]


@pytest.mark.parametrize("turn_by", ["", "site"])
def test_what_changes_while_it_is_read_gets_one_task_more(redis_client: redis.Redis, turn_by: str) -> None:
    lists, details = lister(redis_client), reader(redis_client, turn_by=turn_by)
    feed(lists, "p1", "1")
    (first,) = details.take_tasks().values()
    for token in "2345":
        feed(lists, "p1", token)
    assert snapshot(redis_client, "details").start_tasks == 1
    details.frontier.ack(first)
    details.advance()
    tasks = details.take_tasks()
    assert [json.loads(task)["token"] for task in tasks] == ["5"]
    details.frontier.ack(*tasks.values())
    details.advance()
    assert left_over(redis_client) == {}


@pytest.mark.parametrize("turn_by", ["", "site"])
@pytest.mark.parametrize("end", ["killed", "closed"])
def test_a_leased_task_that_comes_back_and_the_one_made_meanwhile_are_one(
    redis_client: redis.Redis, turn_by: str, end: str
) -> None:
    lists, dying = lister(redis_client), reader(redis_client, "dying", turn_by=turn_by)
    for thread in ("p1", "p2"):
        feed(lists, thread, "1")
    leases = dying.take_tasks()
    assert len(leases) == 2
    feed(lists, "p1", "2")
    if end == "killed":
        expire_owner(redis_client, DETAILS, "dying")
        other = reader(redis_client, turn_by=turn_by)
        other.advance(5)
    else:
        for lease in leases.values():
            dying.frontier.release(lease)
        dying.close()
        other = reader(redis_client, turn_by=turn_by)
    feed(lists, "p2", "2")
    found = read(other) + read(other)  # what was there at a death is taken apart from the others
    assert sorted(found) == [("p1", "2"), ("p2", "2")]


def test_the_whole_reading_that_waits_is_not_replaced_by_a_part_of_it(redis_client: redis.Redis) -> None:
    lists = lister(redis_client)
    feed(lists, "p1", "1", wide=True, url="u1", mode="check")
    feed(lists, "p1", "2", url="u/2", mode="changed", page=7)
    feed(lists, "p2", "1", url="u1", mode="changed", page=7)
    feed(lists, "p2", "2", wide=True, mode="check")
    tasks = [json.loads(task) for task in reader(redis_client).take_tasks()]
    assert tasks == [
        {"site": "a", "post": "p1", "token": "2", "url": "u/2", "mode": "check"},
        {"site": "a", "post": "p2", "token": "2", "url": "u1", "mode": "check"},
    ]


def test_tasks_that_are_no_json_and_equal_tasks_of_two_ids_are_all_read(redis_client: redis.Redis) -> None:
    lists = lister(redis_client)
    for name, token, data in (("a/1", "1", b"x"), ("a/2", "1", b"x"), ("a/1", "2", b"y"), ("a/2", "2", b"z")):
        lists.frontier.add_task(NextTask(name, token, data, wide=token == "1"))
        lists.advance()
    details = reader(redis_client)
    details.frontier.want_tasks(10)
    details.advance()
    found = []
    while (task := details.frontier.take_task()) is not None:
        found.append(task.data)
        details.frontier.ack(task.id)
    details.advance()
    assert sorted(found) == [b"x", b"x", b"z"]
    assert left_over(redis_client) == {}


def test_ids_asked_for_by_name_wait_once_however_often_they_are(redis_client: redis.Redis) -> None:
    tasks = [NamedTask(f"a/p{n}", b'{"site":"a","post":"p%d"}' % n) for n in range(2000)]
    assert [push_named(redis_client, DETAILS, tasks, FIELDS) for _ in range(2)] == [2000, 2000]
    lists = lister(redis_client)
    feed(lists, "p0", "5", url="u0", page=3)  # the list's row knows the address
    first, *_ = (json.loads(task) for task in reader(redis_client).take_tasks(1))
    assert first == {"site": "a", "post": "p0", "token": "5", "url": "u0"}


def test_what_is_asked_for_by_name_takes_the_address_of_the_task_that_waits(redis_client: redis.Redis) -> None:
    lists = lister(redis_client, most=1)
    for thread in ("p1", "p2"):
        feed(lists, thread, "1", url="there", page=4, mode="changed")
    assert left_over(redis_client)["overflow"] == 1
    tasks = [NamedTask(f"a/{thread}", b'{"site":"a","post":"%s"}' % thread.encode()) for thread in ("p1", "p2")]
    assert push_named(redis_client, DETAILS, tasks, FIELDS) == 2
    details = reader(redis_client, most=1)
    found = [json.loads(task) for task in details.take_tasks()]
    assert found == [{"site": "a", "post": thread, "token": "1", "url": "there"} for thread in ("p1", "p2")]
    assert left_over(redis_client) == {"ids": 2}


def test_a_lane_gets_only_what_does_not_wait_in_the_start_key(redis_client: redis.Redis) -> None:
    lists = lister(redis_client)
    feed(lists, "p1", "1", mode="changed")
    feed(lists, "p1", "2", lane="backlog", wide=True, mode="backfill")
    feed(lists, "p2", "1", lane="backlog", wide=True, mode="backfill")
    tasks = [NamedTask(f"a/{thread}", b'{"post":"%s"}' % thread.encode()) for thread in ("p1", "p3")]
    assert push_named(redis_client, DETAILS, tasks, FIELDS, lane="later") == 1
    assert (redis_client.llen(DETAILS.start_tasks()), redis_client.llen(DETAILS.backlog())) == (1, 1)


@pytest.mark.parametrize("turn_by", ["", "site"])
def test_above_the_threshold_tasks_are_kept_and_fed_when_there_is_capacity(redis_client: redis.Redis, turn_by: str) -> None:
    lists = lister(redis_client, most=5)
    for token in ("1", "2"):
        for number in range(20):
            feed(lists, f"p{number:02}", token)
    assert left_over(redis_client) == {"tasks": 5, "waiting": 5, "ids": 5, "overflow": 15, "order": 15}
    details = reader(redis_client, turn_by=turn_by, most=5)
    assert not details.frontier.task_idle
    found: list[tuple[str, str]] = []
    for _ in range(40):
        assert left_over(redis_client).get("tasks", 0) <= 5
        tasks = details.take_tasks(2)
        for task, lease in tasks.items():
            fields = json.loads(task)
            found.append((fields["post"], fields["token"]))
            details.frontier.ack(lease)
        details.advance()
    assert found == [(f"p{number:02}", "2") for number in range(20)], "each once, in its newest form, in their order"
    assert left_over(redis_client) == {}


def test_a_site_with_a_strange_name_has_an_overflow_too(redis_client: redis.Redis) -> None:
    lists, details = lister(redis_client, most=1), reader(redis_client, most=1)
    for number, site in enumerate(("a\0b", "a\0b", "\ud800", "\ud800", "", "")):
        feed(lists, f"p{number}", "1", site=site)
    found = [thread for _ in range(8) for thread, _ in read(details, 1)]
    assert sorted(found) == [f"p{number}" for number in range(6)]


def test_a_site_whose_tasks_are_more_than_may_wait_holds_back_no_other_one(redis_client: redis.Redis) -> None:
    lists, details = lister(redis_client, most=10), reader(redis_client, turn_by="site", most=10)
    for number in range(30):
        feed(lists, f"p{number}", "1", site="large")
    details.advance()  # sorts what waits by its site
    feed(lists, "q", "1", site="small")
    assert ("q", "1") in read(details, 2)
    for number in range(30, 60):
        feed(lists, f"p{number}", "1", site="large")
        feed(lists, f"q{number}", "1", site="small")
    tasks = read(details, 40)
    assert sum(thread.startswith("q") for thread, _ in tasks) >= 8


@pytest.mark.parametrize("lost", ["lose_replies", "lose_requests"])
def test_a_lost_reply_or_a_crash_of_either_crawler_loses_nothing_of_the_overflow(redis_client: redis.Redis, lost: str) -> None:
    lists = lister(redis_client, most=3)
    for number in range(9):
        setattr(lists.exchanger, lost, 1)
        feed(lists, f"p{number}", "1")
        lists.advance(3)
    expire_owner(redis_client, KEYS, "lists")
    dying = reader(redis_client, "dying", turn_by="site", most=3)
    read(dying, 2)
    feed(lister(redis_client, "again", most=3), "p0", "2")
    expire_owner(redis_client, DETAILS, "dying")
    details = reader(redis_client, turn_by="site", most=3)
    found: dict[str, str] = {}
    for _ in range(20):
        found |= dict(read(details, 3))
    assert found == {"p0": "2", **{f"p{number}": "1" for number in range(1, 9)}}


@pytest.mark.parametrize("emptied", [[DETAILS.start_tasks()], [DETAILS.start_tasks(), DETAILS.fed_waiting()]])
def test_a_start_key_that_somebody_deletes_does_not_keep_what_changes_from_being_read(
    redis_client: redis.Redis, emptied: Sequence[str]
) -> None:
    lists = lister(redis_client)
    feed(lists, "p1", "1")
    redis_client.delete(*emptied)
    feed(lists, "p1", "2")
    assert read(reader(redis_client)) == [("p1", "2")]


def test_a_task_that_is_said_to_wait_for_a_day_is_made_again(redis_client: redis.Redis) -> None:
    lists = lister(redis_client)
    for thread in ("p1", "p2"):
        feed(lists, thread, "1")
    seconds, _ = redis_client.time()
    aged = redis_client.hget(DETAILS.fed_waiting(), "a/p1")
    assert aged is not None
    wide, _, *rest = msgspec.msgpack.decode(aged)
    redis_client.hset(DETAILS.fed_waiting(), "a/p1", msgspec.msgpack.encode([wide, (seconds - 90_000) * 1000, *rest]))
    redis_client.lpop(DETAILS.start_tasks())  # by hand
    feed(lists, "p1", "2")
    assert read(reader(redis_client)) == [("p2", "1"), ("p1", "2")]


def test_foreign_values_stop_nobody(redis_client: redis.Redis) -> None:
    lists = lister(redis_client, most=1)
    feed(lists, "p1", "1")
    feed(lists, "p2", "1")
    redis_client.hset(DETAILS.fed_waiting(), "a/p1", "junk")
    redis_client.hset(DETAILS.overflow(), "a/p2", "junk")
    redis_client.hset(DETAILS.fed_ids(), "made", "junk")
    redis_client.zadd(DETAILS.overflow_order(), {"junk": 0, b"\xff\x00": 0})
    details = reader(redis_client, most=1)
    assert read(details) == [("p1", "1")]
    feed(lists, "p2", "2")
    details.advance()
    assert ("p2", "2") in read(details)


@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_the_newest_form_of_each_thread_is_read_after_it_was_made(redis_client: redis.Redis, seed: int) -> None:
    """Lists and readers that are killed, lose answers and give tasks back, in random order."""
    dice, names, most = random.Random(seed), iter(range(10_000)), 4
    turn_by = dice.choice(["", "site"])
    lists = [lister(redis_client, f"l{n}", most) for n in range(2)]
    readers: dict[Owner, dict[str, str]] = {
        reader(redis_client, f"r{next(names)}", turn_by=turn_by, most=most): {} for _ in range(2)
    }
    made: dict[str, int] = {}
    done: dict[str, int] = {}

    def end(owner: Owner, lease: str) -> None:
        fields = json.loads(readers[owner].pop(lease))
        done[fields["post"]] = max(done.get(fields["post"], 0), int(fields["token"]))
        owner.frontier.ack(lease)
        owner.advance()

    for _ in range(120):
        owner = dice.choice(list(readers))
        held = readers[owner]
        what = dice.choice(["feed", "feed", "feed", "take", "end", "release", "kill", "lose", "named"])
        if what == "feed":
            thread, token = f"p{dice.randrange(8)}", sum(made.values()) + 1
            made[thread] = token
            one = dice.choice(lists)
            setattr(one.exchanger, dice.choice(["lose_replies", "lose_requests", "none"]), 1)
            feed(one, thread, str(token), wide=dice.random() < 0.3, site=f"s{int(thread[1:]) % 2}")
            one.advance(3)
        elif what == "take":
            held.update(taken(owner, dice.randrange(1, 5)))
        elif what == "end" and held:
            end(owner, dice.choice(list(held)))
        elif what == "release" and held:
            lease = dice.choice(list(held))
            del held[lease]
            owner.frontier.release(lease)
            owner.advance()
        elif what == "lose":
            owner.exchanger.lose_replies = 1
        elif what == "named" and made:
            thread = dice.choice(list(made))
            site = f"s{int(thread[1:]) % 2}"
            data = json.dumps({"site": site, "post": thread, "token": str(made[thread])}).encode()
            push_named(redis_client, DETAILS, [NamedTask(f"{site}/{thread}", data)], FIELDS)
        elif what == "kill":
            expire_owner(redis_client, DETAILS, owner.frontier.owner)
            owner.frontier.stop()
            del readers[owner]
            readers[reader(redis_client, f"r{next(names)}", turn_by=turn_by, most=most)] = {}
        waiting = [json.loads(task)["post"] for task in redis_client.lrange(DETAILS.start_tasks(), 0, 99)]
        turns = redis_client.zrange(DETAILS.turns(), 0, 99)
        waiting += [json.loads(member.partition(b"\0")[2][8:])["post"] for member in turns]
        assert len(waiting) == len(set(waiting)), "each thread waits once"
    for _ in range(60):
        for owner, held in readers.items():
            owner.advance(3)
            held.update(taken(owner, 5))
            for lease in list(held):
                end(owner, lease)
    assert done == made
    assert left_over(redis_client) == {}
