"""Holds: what is paused is not started, what is drained gets nothing new, and all of it comes back in its old order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from redis_components.admin.inspector import expire_owner, snapshot, wipe
from redis_components.frontier import holds
from redis_components.frontier.holds import Hold, HoldKind
from tests.support.owner import KEYS, Owner

PAUSE, DRAIN = Hold(word=HoldKind.PAUSE, by="tester", reason="why not"), Hold(word=HoldKind.DRAIN)


def names(payload: bytes) -> Iterator[str]:
    """`site/page`: the site's name."""
    yield payload.decode().partition("/")[0]


def crawler(client: redis.Redis, name: str, *, cut_after: int | None = None, **config: object) -> Owner:
    owner = Owner(client, name, **config)
    owner.exchanger.cut_after = cut_after
    owner.frontier.listeners.names = names
    return owner.open()


@pytest.fixture
def one(redis_client: redis.Redis) -> Owner:
    return crawler(redis_client, "one")


def hold(client: redis.Redis, **changes: Hold | None) -> int:
    return holds.change(client, KEYS, {field.replace("_", ":", 1): value for field, value in changes.items()})


def sizes(client: redis.Redis) -> dict[str, int]:
    """Where the requests and start tasks are."""
    shot = snapshot(client, "s")
    parts = ("start_tasks", "ready", "leased", "leased_tasks", "parked", "parked_tasks", "dead")
    return {name: count for name in parts if (count := getattr(shot, name))}


def feed_tasks(one: Owner) -> list[str]:
    """What a spider does with the start tasks it is leased: it crawls them, unless their site is held."""
    crawled = []
    for data, lease_id in one.take_tasks(4).items():
        if not one.frontier.park(lease_id, names(data.encode()), task=True):
            crawled.append(data)
            one.frontier.ack(lease_id)
    one.advance()
    return crawled


def test_a_paused_crawl_starts_nothing_keeps_its_queue_and_goes_on_when_it_is_resumed(
    one: Owner, redis_client: redis.Redis
) -> None:
    for page in range(5):
        one.add(f"a/{page}")
    at_work = one.take()
    assert hold(redis_client, spider=PAUSE) == 1
    one.advance(2)
    assert one.take() is None
    assert sizes(redis_client) == {"ready": 4, "leased": 1}, "what was leased and not started is given back"
    assert not one.frontier.idle
    assert at_work is not None
    one.add("a/child")
    one.frontier.ack(at_work[0])
    one.advance()
    assert sizes(redis_client) == {"ready": 5}, "what a page at work leads to is stored"
    assert hold(redis_client, spider=None) == 1
    one.advance(2)
    assert one.take_all() == ["a/1", "a/2", "a/3", "a/4", "a/child"]


def test_a_paused_crawl_that_has_nothing_left_is_not_idle(one: Owner, redis_client: redis.Redis) -> None:
    assert one.frontier.idle
    hold(redis_client, fleet=PAUSE)
    one.advance(2)
    assert not one.frontier.idle
    hold(redis_client, fleet=None)
    one.advance(2)
    assert one.frontier.idle


def test_a_crawler_that_joins_a_paused_crawl_starts_nothing(redis_client: redis.Redis) -> None:
    crawler(redis_client, "zero").add("a/1")
    seeder = crawler(redis_client, "seeder")
    seeder.add("a/2")
    seeder.close()
    hold(redis_client, spider=PAUSE)
    late = crawler(redis_client, "late")
    assert late.take() is None
    assert sizes(redis_client) == {"ready": 1}


def test_a_paused_process_does_not_spin(one: Owner, redis_client: redis.Redis) -> None:
    one.add("a/1")
    hold(redis_client, spider=PAUSE)
    one.advance(2)
    assert one.take() is None
    before = one.frontier.exchanges
    one.advance(10)
    assert one.frontier.exchanges - before <= 10 / one.frontier.config.slowest_poll_s + 5


def test_a_paused_site_is_set_aside_and_the_others_go_on(one: Owner, redis_client: redis.Redis) -> None:
    for page in range(100):
        one.add(f"held/{page}", priority=9)
    for page in range(3):
        one.add(f"free/{page}")
    one.advance(0.03)
    hold(redis_client, site_held=PAUSE)
    one.advance(2)
    assert one.take_all() == ["free/0", "free/1", "free/2"]
    assert sizes(redis_client) == {"leased": 3, "parked": 100}
    assert holds.parked_lots(redis_client, KEYS) == {"requests:held": 100}
    one.add("held/later")
    one.advance(2)
    assert sizes(redis_client) == {"leased": 3, "parked": 101}
    hold(redis_client, site_held=None)
    one.advance(2)
    assert one.take_all() == [*(f"held/{page}" for page in range(100)), "held/later"], "with their priority, in their old order"
    assert holds.parked_lots(redis_client, KEYS) == {}


def test_a_crawl_with_parked_requests_is_not_idle(one: Owner, redis_client: redis.Redis) -> None:
    hold(redis_client, site_held=PAUSE)
    one.add("held/1")
    one.advance(2)
    assert sizes(redis_client) == {"parked": 1}
    assert not one.frontier.idle


def test_a_large_backlog_of_a_paused_site_is_set_aside_in_few_exchanges(redis_client: redis.Redis) -> None:
    one = crawler(redis_client, "one", concurrency=8)
    for page in range(20_000):
        one.add(f"held/{page}", priority=1)
    one.add("free/1")
    one.advance(2)
    hold(redis_client, site_held=PAUSE)
    one.advance(1)
    before = one.frontier.exchanges
    taken = []
    while not taken:
        taken += filter(None, [one.frontier.take()])
        one.advance(0.002)
        assert one.frontier.exchanges - before < 60
    assert taken[0].data == b"free/1"


def test_what_is_put_back_is_put_back_in_bounded_steps_by_whoever_is_there(one: Owner, redis_client: redis.Redis) -> None:
    hold(redis_client, site_held=PAUSE)
    for page in range(3000):
        one.add(f"held/{page}")
    one.advance(5)
    assert sizes(redis_client) == {"parked": 3000}
    one.frontier.stop()
    expire_owner(redis_client, KEYS, "one")
    hold(redis_client, site_held=None)
    crawler(redis_client, "two", cut_after=4)  # it dies half-way
    expire_owner(redis_client, KEYS, "two")
    half = sizes(redis_client)
    assert 0 < half["parked"] < 3000
    three = crawler(redis_client, "three")
    three.advance(9)
    assert three.take_all() == [f"held/{page}" for page in range(3000)]


@pytest.mark.parametrize("lost", ["lose_replies", "lose_requests"])
def test_parking_and_putting_back_are_done_once_though_messages_are_lost(
    one: Owner, redis_client: redis.Redis, lost: str
) -> None:
    hold(redis_client, site_held=PAUSE)
    for page in range(50):
        one.add(f"held/{page}")
    setattr(one.exchanger, lost, 2)
    one.advance(5)
    assert sizes(redis_client) == {"parked": 50}
    setattr(one.exchanger, lost, 2)
    hold(redis_client, site_held=None)
    one.advance(5)
    assert one.take_all() == [f"held/{page}" for page in range(50)]


def test_no_attempt_is_counted_for_what_is_set_aside(one: Owner, redis_client: redis.Redis) -> None:
    one.add("held/1")
    one.advance()
    hold(redis_client, site_held=PAUSE)
    one.advance(2)
    hold(redis_client, site_held=None)
    one.advance(2)
    lease = one.frontier.take()
    assert lease is not None
    assert lease.attempts == 0


def test_a_drained_crawl_gets_no_start_task_and_crawls_what_it_has(one: Owner, redis_client: redis.Redis) -> None:
    redis_client.rpush(KEYS.start_tasks(), "a/task")
    one.add("a/1")
    hold(redis_client, spider=DRAIN)
    one.advance(2)
    assert feed_tasks(one) == []
    assert one.take_all() == ["a/1"]
    assert sizes(redis_client) == {"start_tasks": 1, "leased": 1}
    hold(redis_client, spider=None)
    one.advance(2)
    assert feed_tasks(one) == ["a/task"]


@pytest.mark.parametrize("word", [PAUSE, DRAIN], ids=["pause", "drain"])
def test_start_tasks_of_a_held_site_are_set_aside_and_those_behind_them_go_on(
    one: Owner, redis_client: redis.Redis, word: Hold
) -> None:
    tasks = [f"held/{n}" for n in range(30)]
    redis_client.rpush(KEYS.start_tasks(), *tasks, "free/1")
    hold(redis_client, site_held=word)
    one.advance(2)
    crawled = [task for _ in range(6) for task in feed_tasks(one)]
    assert crawled == ["free/1"]
    assert sizes(redis_client) == {"parked_tasks": 30}
    assert not one.frontier.task_idle
    hold(redis_client, site_held=None)
    one.advance(2)
    assert [task for _ in range(12) for task in feed_tasks(one)] == tasks


def test_a_drained_site_keeps_its_requests_going_also_those_that_a_pause_had_set_aside(
    one: Owner, redis_client: redis.Redis
) -> None:
    hold(redis_client, site_held=PAUSE)
    one.add("held/1")
    one.advance(2)
    assert sizes(redis_client) == {"parked": 1}
    hold(redis_client, site_held=DRAIN)
    one.advance(2)
    assert one.take_all() == ["held/1"]


def test_the_site_that_is_resumed_while_a_crawler_parks_for_it_is_not_parked(one: Owner, redis_client: redis.Redis) -> None:
    hold(redis_client, site_held=PAUSE)
    one.advance(2)
    one.add("held/1")
    hold(redis_client, site_held=None)
    one.advance(0.05)
    lease = one.take()
    assert lease is not None
    assert lease[1] == "held/1"
    assert sizes(redis_client) == {"leased": 1}


def test_to_hold_what_is_held_changes_nothing(redis_client: redis.Redis) -> None:
    assert hold(redis_client, spider=PAUSE) == 1
    version = redis_client.hget(KEYS.holds(), "version")
    assert hold(redis_client, spider=PAUSE) == 0
    assert redis_client.hget(KEYS.holds(), "version") == version
    assert hold(redis_client, spider=None) == 1
    assert hold(redis_client, spider=None) == 0
    assert holds.read(redis_client, KEYS) == {}


def test_a_hold_that_nobody_understands_is_not_obeyed_and_stops_nobody(
    one: Owner, redis_client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    redis_client.hset(
        KEYS.holds(), mapping={"version": "1", "spider": "garbage", b"\xff": b"\xff", "site:x": '{"word": "explode"}'}
    )
    one.add("a/1")
    one.advance(2)
    assert one.take_all() == ["a/1"]
    assert "not understood" in caplog.text


def test_removing_a_crawls_keys_keeps_its_holds_and_its_start_tasks(one: Owner, redis_client: redis.Redis) -> None:
    redis_client.rpush(KEYS.start_tasks(), "held/task")
    hold(redis_client, site_held=PAUSE)
    one.advance(2)
    feed_tasks(one)
    one.add("held/1")
    one.advance(2)
    assert sizes(redis_client) == {"parked": 1, "parked_tasks": 1}
    one.close()
    assert wipe(redis_client, KEYS, but_not_for="one") is None
    assert sizes(redis_client) == {"parked_tasks": 1}
    assert set(holds.read(redis_client, KEYS)) == {"site:held"}
    two = crawler(redis_client, "two")
    hold(redis_client, site_held=None)
    two.advance(2)
    assert feed_tasks(two) == ["held/task"]
    assert sizes(redis_client) == {}


@pytest.mark.parametrize("key", [KEYS.holds(), KEYS.parked(), KEYS.parked_lot("requests:held")])
def test_a_foreign_key_in_the_place_of_ours_is_named_and_nothing_is_changed(
    redis_client: redis.Redis, caplog: pytest.LogCaptureFixture, key: str
) -> None:
    hold(redis_client, site_held=PAUSE)
    redis_client.delete(key)
    redis_client.set(key, "mine")
    one = crawler(redis_client, "one")
    one.add("held/1")
    one.advance(2)
    assert f"WRONGTYPE {key} is a string that Trawl did not write" in caplog.text
    redis_client.delete(key)
    hold(redis_client, site_held=None)
    one.advance(9)
    assert one.take_all() == ["held/1"]
