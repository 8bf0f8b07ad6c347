"""The exchange: each test states the whole situation before and after. The letters are those of docs/architecture.md."""

from __future__ import annotations

import json

import pytest
import redis

from redis_components.admin.inspector import expire_owner, snapshot
from redis_components.frontier.messages import KeyedItem, NextTask, QueueOrder
from redis_components.keys import CrawlKeys
from tests.support.owner import KEYS, Owner


@pytest.fixture
def one(redis_client: redis.Redis) -> Owner:
    return Owner(redis_client, "one").open()


def sizes(client: redis.Redis) -> dict[str, int]:
    """The states of the crawl that are not empty."""
    shot = snapshot(client, "s")
    counts = {name: getattr(shot, name) for name in ("start_tasks", "ready", "leased", "leased_tasks", "dead", "items", "owners")}
    return {name: count for name, count in counts.items() if count}


def test_a_new_request_is_stored_once_and_leased_to_one_owner(one: Owner, redis_client: redis.Redis) -> None:
    two = Owner(redis_client, "two").open()
    one.add("a")
    two.add("a")
    one.advance()
    two.advance()
    assert two.duplicates == [b"a"]
    assert (one.take_all(), two.take_all()) == (["a"], [])
    assert sizes(redis_client) == {"leased": 1, "owners": 2}


def test_equal_requests_that_pass_the_filter_are_all_kept(one: Owner, redis_client: redis.Redis) -> None:
    for _ in range(3):
        one.add("a", dont_filter=True)
    assert one.take_all() == ["a", "a", "a"]
    assert sizes(redis_client) == {"leased": 3, "owners": 1}


def test_an_ack_ends_a_request(one: Owner, redis_client: redis.Redis) -> None:
    one.add("a")
    lease = one.take()
    assert lease is not None
    one.frontier.ack(lease[0])
    one.advance()
    assert sizes(redis_client) == {"owners": 1}
    assert one.frontier.idle
    assert snapshot(redis_client, "s").acked == 1


def test_equal_priorities_come_first_in_first_out_and_higher_ones_before(one: Owner) -> None:
    for payload, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 5), ("e", -1), ("f", 2**40)):
        one.add(payload, priority=priority)
    one.advance()
    assert one.take_all() == ["f", "b", "d", "a", "c", "e"]


@pytest.mark.parametrize(
    ("order", "expected"),
    [(QueueOrder.FIFO, list("abcde")), (QueueOrder.LIFO, list("edcba")), (QueueOrder.PRIORITY, list("edcba"))],
)
def test_each_order_leases_in_its_way(redis_client: redis.Redis, order: QueueOrder, expected: list[str]) -> None:
    owner = Owner(redis_client, "one", order=order)
    for payload, priority in zip("abcde", (1, 2, 3, 4, 5) if order is QueueOrder.PRIORITY else (1, 5, 2, 4, 3), strict=True):
        owner.add(payload, priority=priority)
    assert owner.open().take_all() == expected


def test_a_later_request_comes_first_also_before_those_that_are_buffered_in_the_lifo_order(redis_client: redis.Redis) -> None:
    owner = Owner(redis_client, "one", order=QueueOrder.LIFO, concurrency=2).open()
    for payload in "abc":
        owner.add(payload)
    owner.advance()
    assert owner.take_all() == ["c", "b", "a"]
    for payload in "de":
        owner.add(payload)
    owner.advance()
    first = owner.take()
    owner.add("f")
    owner.advance()
    assert first is not None
    assert [first[1], *owner.take_all()] == ["e", "f", "d"]


def test_the_random_order_is_another_one_and_loses_nothing(redis_client: redis.Redis) -> None:
    owner = Owner(redis_client, "one", order=QueueOrder.RANDOM, concurrency=100)
    payloads = [f"p{number}" for number in range(100)]
    for priority, payload in enumerate(payloads):
        owner.add(payload, priority=priority)
    taken = owner.open().take_all()
    assert taken not in (payloads, payloads[::-1])
    assert sorted(taken) == sorted(payloads)


def test_released_requests_go_back_to_their_old_place_and_no_attempt_is_counted(one: Owner, redis_client: redis.Redis) -> None:
    for payload in "abc":
        one.add(payload)
    one.advance()
    one.close()
    assert sizes(redis_client) == {"ready": 3}
    attempts = {member[8] for member in redis_client.zrange(KEYS.ready(), 0, 9)}
    assert attempts == {0}
    assert Owner(redis_client, "two").open().take_all() == ["a", "b", "c"]


def test_leases_of_a_dead_owner_are_reclaimed_by_another_one(one: Owner, redis_client: redis.Redis) -> None:
    one.add("a")
    one.add("b")
    one.take_all()
    two = Owner(redis_client, "two").open()
    assert two.take() is None
    assert expire_owner(redis_client, KEYS, "one")
    two.advance(5)
    assert two.take_all() == ["a", "b"]
    assert sizes(redis_client) == {"leased": 2, "owners": 1}
    assert snapshot(redis_client, "s").reclaimed == 2


def test_an_owner_taken_for_dead_learns_it_and_its_acks_do_not_count(one: Owner, redis_client: redis.Redis) -> None:
    one.add("a")
    lease = one.take()
    assert lease is not None
    expire_owner(redis_client, KEYS, "one")
    two = Owner(redis_client, "two").open()
    two.advance(5)
    one.frontier.ack(lease[0])
    one.add("child")
    one.advance()
    assert one.fenced == 1
    assert sorted(two.take_all() + one.take_all()) == ["a", "child"]
    assert sizes(redis_client) == {"leased": 2, "owners": 2}


def test_a_request_whose_crawlers_keep_dying_is_given_up_with_the_reason(redis_client: redis.Redis) -> None:
    Owner(redis_client, "seeder").open().add("poison")
    first = Owner(redis_client, "seeder").open()
    first.add("poison", fingerprint="p")
    first.advance()
    first.close()
    for death in range(3):
        owner = Owner(redis_client, f"o{death}", max_attempts=3).open()
        owner.advance(5)
        assert owner.take_all() == ["poison"]
        expire_owner(redis_client, KEYS, f"o{death}", "hung while reading http://x/1|2 of site evil" if death == 2 else "")
    last = Owner(redis_client, "last", max_attempts=3).open()
    last.advance(5)
    assert last.take_all() == []
    assert sizes(redis_client) == {"dead": 1, "owners": 1}
    head, _, payload = redis_client.lindex(KEYS.dead(), 0).partition(b"\n")
    assert payload == b"poison"
    assert json.loads(head)["reason"] == (
        "attempts spent: its crawler died 3 times, the last time it hung while reading http://x/1|2 of site evil"
    )


def test_what_is_buried_is_kept_with_its_reason(one: Owner, redis_client: redis.Redis) -> None:
    one.add("a")
    lease = one.take()
    assert lease is not None
    one.frontier.bury(lease[0], 'not "a" request\n')
    one.advance()
    assert sizes(redis_client) == {"dead": 1, "owners": 1}
    head, _, payload = redis_client.lindex(KEYS.dead(), 0).partition(b"\n")
    assert (json.loads(head)["reason"], payload) == ('not "a" request\n', b"a")


@pytest.mark.parametrize("lost", ["lose_replies", "lose_requests"])
def test_an_exchange_that_is_sent_again_is_applied_once(one: Owner, redis_client: redis.Redis, lost: str) -> None:
    one.add("known")
    one.advance()
    for payload in ("a", "known", "b"):
        one.add(payload)
    one.add("c", dont_filter=True)
    one.frontier.add_item(b"item")
    setattr(one.exchanger, lost, 3)
    one.advance(5)
    assert one.take_all() == ["known", "a", "b", "c"]
    assert one.duplicates == [b"known"]
    assert sizes(redis_client) == {"leased": 4, "items": 1, "owners": 1}


def dumped(client: redis.Redis) -> dict[bytes, bytes]:
    return {key: client.dump(key) for key in client.scan_iter("*")}


def restore(client: redis.Redis, state: dict[bytes, bytes]) -> None:
    client.flushall()
    for key, value in state.items():
        client.restore(key, 0, value)


def test_redis_with_an_older_state_gets_the_last_writes_again(one: Owner, redis_client: redis.Redis) -> None:
    one.add("a")
    lease = one.take()
    assert lease is not None
    older = dumped(redis_client)
    one.add("child")
    one.frontier.add_item(b"item")
    one.frontier.ack(lease[0])
    one.advance()
    restore(redis_client, older)
    one.advance(5)
    assert one.fenced == 1
    assert one.take_all() == ["a", "child"]
    assert sizes(redis_client) == {"leased": 2, "items": 1, "owners": 1}


@pytest.mark.parametrize("why", ["taken for dead", "older"])
@pytest.mark.parametrize("steps", [0, 2, 4])
def test_redis_that_is_older_than_when_it_fenced_a_process_gets_each_write_again_once(
    redis_client: redis.Redis, why: str, steps: int
) -> None:
    one, states = Owner(redis_client, "one", journal_s=60), [dumped(redis_client)]
    one.frontier.open()

    def write(number: int) -> None:
        one.frontier.add_item(b"item %d" % number)
        one.advance(0.1)
        states.append(dumped(redis_client))

    for number in range(3):
        write(number)
    if why == "older":
        restore(redis_client, states[2])  # with the first two
    else:
        expire_owner(redis_client, KEYS, "one")
        Owner(redis_client, "two").open().advance(5)
    one.advance(5)
    states.append(dumped(redis_client))
    write(3)
    write(4)
    assert one.fenced == 1
    restore(redis_client, states[steps])
    one.advance(5)
    assert sorted(redis_client.lrange(KEYS.item_stream(), 0, 99)) == [b"item %d" % number for number in range(5)]


def test_redis_that_comes_back_older_before_it_knows_the_new_name_of_a_process_gets_each_write_again_once(
    one: Owner, redis_client: redis.Redis
) -> None:
    one.frontier.add_item(b"item 0")
    one.advance()
    older = dumped(redis_client)
    one.frontier.add_item(b"item 1")
    one.advance()
    expire_owner(redis_client, KEYS, "one")
    Owner(redis_client, "two").open().advance(5)
    one.exchanger.cut_after = 1
    one.advance(1)
    assert (one.fenced, redis_client.hkeys(KEYS.numbers())) == (1, [b"two"]), "it has not said its new name yet"
    restore(redis_client, older)
    one.exchanger.cut_after = None
    one.advance(3)
    assert redis_client.lrange(KEYS.item_stream(), 0, 99) == [b"item 0", b"item 1"]


@pytest.mark.parametrize("kind", ["list", "set", "zset"])
def test_start_tasks_are_leased_from_every_type_of_key_and_go_back_to_it(redis_client: redis.Redis, kind: str) -> None:
    match kind:
        case "list":
            redis_client.rpush(KEYS.start_tasks(), "t1", "t2")
        case "set":
            redis_client.sadd(KEYS.start_tasks(), "t1", "t2")
        case _:
            redis_client.zadd(KEYS.start_tasks(), {"t1": 7, "t2": 3})
    one = Owner(redis_client, "one").open()
    one.frontier.want_tasks(5)
    one.advance()
    assert sizes(redis_client) == {"leased_tasks": 2, "owners": 1}
    expire_owner(redis_client, KEYS, "one")
    two = Owner(redis_client, "two").open()
    two.advance(5)
    assert sizes(redis_client) == {"start_tasks": 2, "owners": 1}
    if kind == "zset":
        assert redis_client.zrange(KEYS.start_tasks(), 0, 9, withscores=True) == [(b"t2", 3.0), (b"t1", 7.0)]
    assert redis_client.type(KEYS.start_tasks()).decode() == kind


def test_a_start_task_is_done_only_when_its_requests_are_stored(redis_client: redis.Redis) -> None:
    redis_client.rpush(KEYS.start_tasks(), "t")
    one = Owner(redis_client, "one").open()
    one.frontier.want_tasks(5)
    one.advance()
    task = one.frontier.take_task()
    assert task is not None
    assert not one.frontier.task_idle
    one.add("from t")
    one.frontier.ack(task.id)
    one.advance()
    assert sizes(redis_client) == {"leased": 1, "owners": 1}


def test_the_next_service_gets_a_task_only_when_the_change_token_differs(redis_client: redis.Redis) -> None:
    details = CrawlKeys.for_spider("details")
    one = Owner(redis_client, "one", next_keys=details).open()
    reader, found = Owner(redis_client, "reader", keys=details).open(), []
    for token in ("1", "1", "2"):
        one.frontier.add_task(NextTask("demo/p1", token, f"task {token}".encode()))
        one.advance()
        found += list(reader.take_tasks())
    assert found == ["task 1", "task 2"]


def test_a_task_that_may_wait_goes_to_its_lane_once_whatever_is_lost_on_the_way(redis_client: redis.Redis) -> None:
    details = CrawlKeys.for_spider("details")
    one = Owner(redis_client, "one", next_keys=details).open()
    one.exchanger.lose_replies = 2
    one.frontier.add_keyed_item(KeyedItem("own", b"item"))
    one.frontier.add_task(NextTask("demo/p1", "1", b"soon"))
    one.frontier.add_task(NextTask("demo/p2", "1", b"later", "later"))
    one.frontier.add_task(NextTask("demo/p3", "1", b"history", "backlog"))
    one.frontier.add_task(NextTask("demo/p1", "1", b"twice", "later"))
    one.advance(5)
    lists = (details.start_tasks(), details.later_tasks(), details.backlog(), "own")
    assert [redis_client.lrange(key, 0, 9) for key in lists] == [[b"soon"], [b"later"], [b"history"], [b"item"]]


def test_a_key_of_a_foreign_type_stops_nothing_half_way_and_the_crawl_goes_on_without_it(
    one: Owner, redis_client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    redis_client.set(KEYS.item_stream(), "foreign")
    one.add("a")
    one.advance(60)
    assert redis_client.exists(KEYS.ready(), KEYS.dupefilter) == 0
    assert [record.message for record in caplog.records if "WRONGTYPE" in record.message][1:] == []  # said once
    assert "WRONGTYPE" in caplog.text
    redis_client.delete(KEYS.item_stream())
    one.advance(5)
    assert one.take_all() == ["a"]


def test_a_queue_that_scrapy_redis_left_is_not_touched_until_it_is_imported(
    redis_client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    redis_client.zadd(KEYS.ready(), {b"\x80\x04K\x01.": 0})
    one = Owner(redis_client, "one").open()
    one.add("a")
    one.advance(5)
    assert "trawl migrate scrapy-redis" in caplog.text
    assert redis_client.zrange(KEYS.ready(), 0, -1) == [b"\x80\x04K\x01."]
    redis_client.delete(KEYS.ready())
    one.advance(5)
    assert one.take_all() == ["a"]


def test_what_a_queue_and_a_dupefilter_stored_that_were_used_alone_is_ours(redis_client: redis.Redis) -> None:
    redis_client.hset(KEYS.counters(), "order", 1)
    redis_client.sadd(KEYS.fingerprints(), "a" * 40)  # as text, from a class that says so
    one = Owner(redis_client, "one").open()
    one.add("b")
    assert one.take_all() == ["b"]


def test_a_layout_from_the_future_is_refused(redis_client: redis.Redis) -> None:
    redis_client.hset(KEYS.counters(), "layout", 99)
    refused: list[str] = []
    one = Owner(redis_client, "one")
    one.frontier.listeners.refused = lambda error: refused.append(str(error))
    one.add("a")
    one.open()
    assert refused == ["s:requests:counters: layout version 99, this process knows 1: upgrade it, or use another key pattern"]
    assert redis_client.exists(KEYS.ready()) == 0


def test_acks_never_travel_before_the_children(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one", batch=2).open()
    one.add("parent")
    lease = one.take()
    assert lease is not None
    for child in "abcde":
        one.add(child)
    one.frontier.ack(lease[0])
    batch = one.frontier.outbox.take(2, 1000)
    assert (len(batch.requests), len(batch.acks)) == (2, 0)


def test_what_a_supervisor_saw_end_ends_under_every_name_it_had(one: Owner, redis_client: redis.Redis) -> None:
    others = [Owner(redis_client, name).open() for name in ("one~x", "onerous", "one~")]
    for times in (1, 2):
        assert expire_owner(redis_client, KEYS, "one")
        others[0].advance(1)
        one.add(f"page {times}")
        one.advance(1)
    assert (one.fenced, one.frontier.owner) == (2, "one~2")
    assert "page 2" in one.take_all()
    assert expire_owner(redis_client, KEYS, "one")
    others[0].advance(1)
    assert sorted(others[0].take_all()) == ["page 1", "page 2"]
    assert [other.fenced for other in others] == [0, 0, 0]
    assert not expire_owner(redis_client, KEYS, "nobody")


def test_a_name_may_hold_a_tilde(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "host~a-1~b").open()
    two = Owner(redis_client, "two").open()
    for times in (1, 2):
        assert expire_owner(redis_client, KEYS, one.frontier.owner)
        two.advance(1)
        one.advance(1)
        assert one.frontier.owner == f"host~a-1~b~{times}"
    assert one.fenced == 2


def test_the_answer_to_the_good_bye_may_be_lost(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one", concurrency=1).open()
    for payload in "abc":
        one.add(payload, dont_filter=True)
    one.frontier.add_item(b"item")
    one.advance()
    left: list[tuple[str, bool]] = []
    one.frontier.close(lambda: None)
    one.advance()
    one.exchanger.lose_replies = 2
    one.frontier.leave(lambda: left.append((one.frontier.owner, one.frontier.idle)))
    one.advance(5)
    assert left == [("one", False)], "it left once, by its own name, and not for want of work"
    assert sizes(redis_client) == {"ready": 3, "items": 1}
    assert 600 < redis_client.ttl(KEYS.gone("one")) <= 3600, "a spider that ends each second leaves few such keys"


def test_deaths_count_for_what_was_started_not_for_what_it_overtook(redis_client: redis.Redis) -> None:
    victim = Owner(redis_client, "victim", concurrency=2).open()
    for payload in ("low 1", "low 2"):
        victim.add(payload, priority=-1)
    victim.advance(1)
    for payload in ("urgent 1", "urgent 2"):
        victim.add(payload, priority=1)
    victim.advance(1)
    started = [victim.frontier.take(), victim.frontier.take()]
    assert [lease.data for lease in started if lease] == [b"urgent 1", b"urgent 2"]
    victim.frontier.add_item(b"any word is enough")
    victim.advance(0.05)
    assert redis_client.hlen(KEYS.leases("victim")) == 4, "two run, two wait in its buffer since before"
    victim.frontier.stop()
    expire_owner(redis_client, KEYS, "victim")
    other = Owner(redis_client, "other", concurrency=2).open()
    other.advance(1)
    other.close()
    attempts = {member[9:].decode(): member[8] for member in redis_client.zrange(KEYS.ready(), 0, 9)}
    assert attempts == {"urgent 1": 1, "urgent 2": 1, "low 1": 0, "low 2": 0}
