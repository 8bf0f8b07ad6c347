"""A dupefilter class of the user's decides, and its "seen" swallows nothing: on a real Redis, with processes moved by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import redis
from scrapy import Request

from redis_components.admin.inspector import expire_owner
from redis_components.filters import Notes
from redis_components.frontier.messages import NewRequest
from redis_components.scrapy_glue.custom_classes import CustomDupeFilter
from tests.support.owner import KEYS, Owner

OWN = replace(KEYS, custom_dupefilter=True)


class Memory:
    """A filter that all processes of a test share; `knows` says whether it filters at all."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.filters = True

    def request_seen(self, request: Request) -> bool:
        was_there = request.url in self.seen
        self.seen.add(request.url)
        return was_there and self.filters


class Process:
    """One crawler process with that filter."""

    def __init__(self, client: redis.Redis, name: str, memory: Memory) -> None:
        self.owner = Owner(client, name, keys=OWN, filter=Notes())
        self.dupefilter = CustomDupeFilter(memory, client, self.owner.frontier, lambda request: request.url.encode())
        self.owner.open()
        self.owner.frontier.listeners.fenced = self.dupefilter.fenced

    def find(self, page: int, *, sending: bool = True) -> bool:
        """What `enqueue_request` does with a link; False where it is filtered."""
        fingerprint = self.dupefilter.check(Request(f"http://127.0.0.1/{page}"))
        if fingerprint is not None:
            self.owner.frontier.add_request(NewRequest(fingerprint, "0", b"page %d" % page))
        if sending:
            self.owner.advance()
        return fingerprint is not None


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def one(redis_client: redis.Redis, memory: Memory) -> Process:
    return Process(redis_client, "one", memory)


@pytest.fixture
def two(redis_client: redis.Redis, memory: Memory) -> Process:
    return Process(redis_client, "two", memory)


def test_the_filter_decides_and_a_stored_request_leaves_no_note(one: Process, two: Process, redis_client: redis.Redis) -> None:
    assert one.find(1)
    assert redis_client.hlen(OWN.notes()) == 0
    assert not one.find(1)
    assert not two.find(1)
    assert one.owner.take_all() == ["page 1"]
    for process in (one, two):
        process.dupefilter.leave()
    assert redis_client.exists(OWN.notes()) == 0


def test_what_a_process_asked_about_and_did_not_store_before_it_was_killed_is_stored_by_who_finds_it_again(
    one: Process, two: Process, redis_client: redis.Redis
) -> None:
    one.find(1)
    one.owner.exchanger.cut_after = 0
    one.find(2)
    one.find(3)
    expire_owner(redis_client, OWN, "one")
    assert [page for page in (1, 2, 3) if two.find(page)] == [2, 3]
    assert [page for page in (1, 2, 3) if two.find(page)] == []
    assert sorted(two.owner.take_all()) == ["page 1", "page 2", "page 3"]


def test_what_is_killed_twice_is_stored_by_the_third(
    one: Process, two: Process, redis_client: redis.Redis, memory: Memory
) -> None:
    for name, process in (("one", one), ("two", two)):
        process.owner.exchanger.cut_after = 0
        assert process.find(1)
        expire_owner(redis_client, OWN, name)
    three = Process(redis_client, "three", memory)
    assert three.find(1)
    assert not three.find(1)


def test_what_was_stored_before_the_kill_is_not_stored_again_though_its_answer_was_lost(
    one: Process, two: Process, redis_client: redis.Redis
) -> None:
    one.owner.exchanger.lose_replies = 100
    one.find(1)
    expire_owner(redis_client, OWN, "one")
    assert not two.find(1)
    assert two.owner.take_all() == ["page 1"]


def test_what_somebody_alive_is_about_to_store_is_stored_once(one: Process, two: Process) -> None:
    assert one.find(1, sending=False)
    assert not one.find(1, sending=False)
    assert not two.find(1)
    one.owner.advance()
    assert one.owner.take_all() + two.owner.take_all() == ["page 1"]


def test_a_filter_that_filters_nothing_gets_everything_stored(one: Process, two: Process, memory: Memory) -> None:
    memory.filters = False
    assert [one.find(1, sending=False), one.find(1, sending=False), two.find(1), one.find(1)] == [True] * 4
    assert one.owner.take_all() + two.owner.take_all() == ["page 1"] * 4


def test_a_fenced_process_writes_again_what_redis_has_lost_with_its_notes(one: Process, redis_client: redis.Redis) -> None:
    redis_client.set("before", 1)
    state = {key: redis_client.dump(key) for key in redis_client.keys("*")}
    one.find(1)
    one.find(2, sending=False)
    redis_client.flushall()
    for key, value in state.items():
        redis_client.restore(key, 0, value)  # Redis comes back with an older state
    one.owner.advance(5)
    assert sorted(one.owner.take_all()) == ["page 1", "page 2"]


def test_a_note_that_a_failover_lost_does_not_lose_its_request(one: Process, redis_client: redis.Redis) -> None:
    one.find(1, sending=False)
    redis_client.delete(OWN.notes())  # the replica that took over had the last exchange, but not the note
    one.owner.advance(5)
    assert one.owner.take_all() == ["page 1"]


def test_what_a_filter_that_fails_does_not_decide_is_stored_once_by_each_process(
    one: Process, two: Process, memory: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def request_seen(request: Request) -> bool:
        memory.seen.add(request.url)
        raise OSError("the filter is broken")

    monkeypatch.setattr(memory, "request_seen", request_seen)
    assert [one.find(1), one.find(2), one.find(1), two.find(1), two.find(1)] == [True, True, False, True, False]
    assert sorted(one.owner.take_all() + two.owner.take_all()) == ["page 1", "page 1", "page 2"]
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]


@pytest.mark.parametrize("is_late", [False, True], ids=["never asked", "its answer was lost"])
def test_who_could_not_be_asked_is_asked_again_and_swallows_nothing(
    one: Process, two: Process, memory: Memory, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    calls = []

    def request_seen(request: Request) -> bool:
        calls.append(request)
        if is_late:
            memory.seen.add(request.url)
        raise redis.ConnectionError("the filter's Redis is away")

    with monkeypatch.context() as patched:
        patched.setattr(memory, "request_seen", request_seen)
        for page in (1, 2):
            with pytest.raises(redis.ConnectionError):
                one.find(page)
    assert len(calls) == 1  # each try may take long
    one.dupefilter.resume()
    assert [one.find(1), one.find(1), one.find(2), two.find(1), two.find(2)] == [True, False, True, False, False]
    assert sorted(one.owner.take_all()) == ["page 1", "page 2"]
