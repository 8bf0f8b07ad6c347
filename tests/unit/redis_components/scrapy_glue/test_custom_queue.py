"""A queue class of the user's says what is next, the frontier has the truth: on a real Redis, with processes moved by hand."""

from __future__ import annotations

import logging
import random
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
import redis
from scrapy import Request, Spider

from redis_components.admin.dead_letters import replay
from redis_components.admin.inspector import expire_owner, snapshot
from redis_components.codec.requests import RequestCodec
from redis_components.frontier.messages import NO_FILTER, NewRequest, QueueOrder
from redis_components.scrapy_glue.custom_classes import TOKEN, CustomQueue
from tests.support.owner import KEYS, Owner

ASIDE = replace(KEYS, custom_queue=True)


class Shelf:
    """A queue in the memory that all processes of a test share: the highest page first. It keeps what a real one would."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.refuses: set[str] = set()

    def __len__(self) -> int:
        return len(self.requests)

    def push(self, request: Request) -> None:
        if "push" in self.refuses:
            raise OSError("the shelf is full")
        self.requests.append(request)

    def pop(self, timeout: int = 0) -> Request | None:
        if "pop" in self.refuses:
            raise OSError("the shelf is locked")
        self.requests.sort(key=page_of)
        return self.requests.pop() if self.requests else None


def page_of(request: Request) -> int:
    return int(request.url.rpartition("/")[2])


class Process:
    """One crawler process with that queue."""

    def __init__(self, client: redis.Redis, name: str, shelf: Shelf, **config: Any) -> None:
        self.owner = Owner(client, name, keys=ASIDE, order=QueueOrder.ADVISED, **config)
        self.frontier = self.owner.frontier
        self.kept: list[Request] = []
        self.queue = CustomQueue(
            shelf, self.frontier, RequestCodec(Spider("s")), keep=lambda request, reason: self.kept.append(request)
        )
        self.frontier.listeners.applied.append(self.queue.applied)
        self.owner.frontier.listeners.fenced = self.queue.fenced
        self.owner.open()

    def add(self, *pages: int) -> None:
        for page in pages:
            request = Request(f"http://127.0.0.1/{page}")
            self.frontier.add_request(NewRequest(b"%d" % page, "0", self.queue.encode(request)))
        self.owner.advance(0.05)

    def take(self) -> tuple[int, str] | None:
        """(page, lease id) of the next request, after as many exchanges as it needs."""
        for _ in range(8):
            if (lease := self.queue.take()) is not None:
                return page_of(self.queue.decode(lease.data)), lease.id
            self.owner.advance(0.05)
        return None

    def take_all(self, *, acking: bool = True) -> list[int]:
        pages = []
        while (taken := self.take()) is not None:
            pages.append(taken[0])
            if acking:
                self.frontier.ack(taken[1])
        self.owner.advance()
        return pages

    @property
    def is_idle(self) -> bool:
        return self.frontier.idle and self.queue.is_dry


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def one(redis_client: redis.Redis, shelf: Shelf) -> Process:
    return Process(redis_client, "one", shelf, concurrency=4)


def test_requests_come_in_the_order_of_the_users_queue_and_each_once(one: Process, redis_client: redis.Redis) -> None:
    one.add(3, 1, 8, 5, 3, 2, 9, 7)
    assert one.take_all() == [9, 8, 7, 5, 3, 2, 1]
    assert one.is_idle
    assert redis_client.exists(ASIDE.ready()) == 0


def test_the_request_is_the_one_that_the_queue_gave_back_without_its_token(one: Process, shelf: Shelf) -> None:
    one.add(1)
    shelf.requests[0] = shelf.requests[0].replace(headers={"added": "by the queue"})
    lease = one.queue.take() or (one.owner.advance(), one.queue.take())[1]
    assert lease is not None
    request = one.queue.decode(lease.data)
    assert request.headers["added"] == b"by the queue"
    assert TOKEN not in request.meta


def test_two_processes_share_one_queue_and_nothing_comes_twice(one: Process, redis_client: redis.Redis, shelf: Shelf) -> None:
    two = Process(redis_client, "two", shelf, concurrency=4)
    one.add(*range(1, 21))
    taken: list[int] = []
    while (got := [process.take() for process in (one, two)]) != [None, None]:
        for process, pair in zip((one, two), got, strict=True):
            if pair:
                taken.append(pair[0])
                process.frontier.ack(pair[1])
    assert sorted(taken) == list(range(1, 21))
    one.owner.advance()
    two.owner.advance()
    assert one.is_idle
    assert two.is_idle


def test_what_a_process_had_chosen_when_it_was_killed_is_crawled_by_another(
    one: Process, redis_client: redis.Redis, shelf: Shelf
) -> None:
    one.add(*range(1, 11))
    taken = one.take()
    assert taken is not None
    assert taken[0] == 10  # and three more are claimed
    one.queue.take()
    one.owner.exchanger.cut_after = 0  # chosen from the queue, and killed before the claims arrived
    one.take()
    assert len(shelf) < 6
    assert expire_owner(redis_client, ASIDE, "one")
    two = Process(redis_client, "two", shelf, concurrency=4)
    two.owner.advance()
    assert sorted(two.take_all()) == list(range(1, 11))
    assert two.is_idle


def test_what_was_stored_and_never_reached_the_queue_is_crawled(one: Process, redis_client: redis.Redis, shelf: Shelf) -> None:
    one.owner.exchanger.lose_replies = 1  # stored; killed before the answer
    one.owner.exchanger.cut_after = 1
    one.add(1, 2, 3)
    assert len(shelf) == 0
    expire_owner(redis_client, ASIDE, "one")
    two = Process(redis_client, "two", shelf, concurrency=4)
    assert sorted(two.take_all()) == [1, 2, 3]


def test_a_claim_whose_answer_was_lost_leases_once(one: Process, shelf: Shelf, redis_client: redis.Redis) -> None:
    one.add(*range(1, 7))
    one.queue.take()
    one.owner.exchanger.lose_replies = 1
    assert one.take_all(acking=False) == [6, 5, 4, 3, 2, 1]
    assert redis_client.hlen(ASIDE.leases("one")) == 6


def test_a_queue_that_loses_repeats_and_invents_loses_nothing_of_the_crawl(
    one: Process, redis_client: redis.Redis, shelf: Shelf
) -> None:
    one.add(*range(1, 9))
    shelf.requests = [request.copy() for request in shelf.requests if page_of(request) % 2 for _ in range(2)]
    shelf.requests.append(Request("http://127.0.0.1/100", meta={TOKEN: "not hex"}))
    shelf.requests.append(Request("http://127.0.0.1/101", meta={TOKEN: "00"}))
    taken = one.take_all()
    assert taken[0] == 100
    assert sorted(taken) == [*range(1, 9), 100]
    assert one.is_idle


def test_a_queue_that_keeps_what_it_gives_and_gives_it_again_hands_out_each_request_once(
    one: Process, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf, "pop", lambda timeout=0: shelf.requests[0])
    one.add(*range(1, 9))
    assert sorted(one.take_all()) == [*range(1, 9)]


def test_what_is_no_request_is_a_failure_of_the_queue(
    one: Process, shelf: Shelf, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shelf, "pop", lambda timeout=0: b"http://127.0.0.1/1")
    one.add(1, 2)
    assert sorted(one.take_all()) == [1, 2]
    assert one.is_idle  # though nobody will ever empty the queue
    (record,) = caplog.records
    assert "pop() gave b'http://127.0.0.1/1', which is not a request" in record.getMessage()


def test_what_others_put_into_the_users_queue_is_crawled_and_keeps_the_crawl_alive(
    one: Process, redis_client: redis.Redis, shelf: Shelf
) -> None:
    one.owner.advance()
    assert one.is_idle
    shelf.push(Request("http://127.0.0.1/5"))
    shelf.push(Request("http://127.0.0.1/6", callback=lambda response: None))
    assert not one.is_idle
    assert one.take_all() == [5]
    assert [page_of(request) for request in one.kept] == [6]  # it cannot be stored
    assert one.is_idle


def test_a_queue_that_fails_is_said_once_and_its_requests_are_crawled_all_the_same(
    one: Process, shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    shelf.refuses = {"push"}
    with caplog.at_level(logging.ERROR):
        one.add(1, 2)
        one.add(3)
        assert sorted(one.take_all()) == [1, 2, 3]
        shelf.refuses = {"pop"}
        one.add(4, 5)
        assert sorted(one.take_all()) == [4, 5]
    assert [record.getMessage().partition(" ")[0] for record in caplog.records] == ["push", "pop"]


def test_a_process_that_closes_gives_back_what_it_has_not_started(one: Process, redis_client: redis.Redis, shelf: Shelf) -> None:
    one.add(*range(1, 9))
    taken = one.take()
    assert taken is not None
    one.frontier.ack(taken[1])
    one.queue.release_unstarted()
    one.owner.close()
    assert redis_client.zcard(ASIDE.ready()) == 7
    two = Process(redis_client, "two", shelf, concurrency=4)
    assert two.take_all() == [7, 6, 5, 4, 3, 2, 1]


def test_a_fenced_process_drops_what_it_had_chosen_and_others_crawl_it(
    one: Process, redis_client: redis.Redis, shelf: Shelf
) -> None:
    one.add(*range(1, 6))
    one.queue.take()
    expire_owner(redis_client, ASIDE, "one")
    two = Process(redis_client, "two", shelf, concurrency=4)
    taken = two.take_all()
    one.owner.advance(5)
    assert sorted(taken + one.take_all()) == [1, 2, 3, 4, 5]
    assert len(one.queue) == 0


def test_a_request_that_was_at_work_in_two_deaths_is_not_claimed_beside_another(
    one: Process, redis_client: redis.Redis, shelf: Shelf
) -> None:
    one.add(1, 2)
    for name in ("first", "second"):
        victim = Process(redis_client, name, shelf, concurrency=4)
        assert victim.take() is not None
        expire_owner(redis_client, ASIDE, name)
        one.owner.advance(5)
    members = redis_client.zrange(ASIDE.ready(), 0, 9)
    assert [member[8] for member in members] == [2, 2]
    for member in members:
        shelf.push(Request(f"http://127.0.0.1/{member[-1:].decode()}", meta={TOKEN: member[:8].hex()}))
    first = one.take()
    assert first is not None
    assert one.take() is None
    one.frontier.ack(first[1])
    second = one.take()
    assert second is not None
    assert {first[0], second[0]} == {1, 2}


def test_what_is_replayed_from_the_dead_is_crawled(one: Process, redis_client: redis.Redis) -> None:
    one.add(1)
    taken = one.take()
    assert taken is not None
    one.frontier.bury(taken[1], "not understood")
    one.owner.advance()
    redis_client.rpush(KEYS.requests, "the user's own")
    assert replay(redis_client, KEYS).done == 1  # as `trawl dead replay` does, which knows no settings
    assert snapshot(redis_client, "s").ready == 1
    one.owner.advance()
    assert one.take_all() == [1]


def test_an_unfiltered_request_is_stored_however_often_it_comes(one: Process) -> None:
    for _ in range(3):
        one.frontier.add_request(NewRequest(NO_FILTER, "0", one.queue.encode(Request("http://127.0.0.1/1"))))
    one.owner.advance(0.05)
    assert one.take_all() == [1, 1, 1]


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_in_whatever_order_every_request_is_finished_once(
    redis_client: redis.Redis, shelf: Shelf, seed: int
) -> None:
    chance = random.Random(seed)
    names = (f"process-{number}" for number in count())
    alive = [Process(redis_client, next(names), shelf, concurrency=chance.choice([1, 4]), max_attempts=255) for _ in range(3)]
    pages = iter(range(1, 1000))
    at_work: list[tuple[Process, str]] = []

    def kill(process: Process) -> None:
        process.owner.exchanger.cut_after = 0
        expire_owner(redis_client, ASIDE, process.frontier.owner)
        alive.remove(process)
        at_work[:] = [(who, lease) for who, lease in at_work if who is not process]
        alive.append(Process(redis_client, next(names), shelf, concurrency=4, max_attempts=255))

    stored = 0
    for _ in range(150):
        process = chance.choice(alive)
        match chance.choice(["add", "add", "take", "take", "take", "finish", "finish", "live", "kill", "lose", "mangle"]):
            case "add":
                process.add(*(new := [next(pages) for _ in range(chance.randrange(1, 4))]))
                process.owner.advance(0.5)
                stored += len(new)
            case "take":
                if (taken := process.queue.take()) is not None:
                    at_work.append((process, taken.id))
            case "finish" if at_work:
                who, lease = at_work.pop(chance.randrange(len(at_work)))
                who.frontier.ack(lease)
            case "live":
                process.owner.advance(0.3)
            case "kill" if chance.random() < 0.4:
                kill(process)
            case "lose":
                process.owner.exchanger.lose_replies = 1
            case "mangle" if shelf.requests:
                some = chance.choice(shelf.requests)
                shelf.requests.remove(some) if chance.random() < 0.5 else shelf.requests.append(some.copy())
    for who, lease in at_work:
        who.frontier.ack(lease)
    for _ in range(3):
        for process in alive:
            process.owner.advance(5)  # reclaims what the dead had
            process.take_all()
    assert int(redis_client.hget(ASIDE.counters(), "acked") or 0) == stored
    assert (redis_client.zcard(ASIDE.ready()), int(redis_client.hget(ASIDE.counters(), "leased") or 0)) == (0, 0)
