"""The queue classes used alone: synchronous, without a reactor, on the same key as the frontier."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import redis
from scrapy import Request, Spider

from redis_components import picklecompat, queue
from redis_components.errors import Undecodable, Unserializable
from redis_components.frontier.frontier import exact_score
from redis_components.frontier.messages import QueueOrder
from redis_components.queue import (
    Base,
    FifoQueue,
    LifoQueue,
    PriorityQueue,
    RandomQueue,
    order_of,
    own_codec_of,
    own_score_of,
)
from tests.support.custom_classes import ForgetfulQueue, HighestPageFirst, ListQueue, LowestPageFirst, MarkingQueue
from tests.support.owner import Owner


class Spot(NamedTuple):
    """A type that the exact codec does not know."""

    x: int
    y: int


class Books(Spider):
    name = "s"

    def parse(self, response: Any, **kwargs: Any) -> None: ...


def fill(server: redis.Redis, cls: type[Base]) -> Base:
    queue = cls(server, Books(), "%(spider)s:requests")
    for page, priority in ((1, 0), (2, 9), (3, 0), (4, -5)):
        queue.push(Request(f"http://127.0.0.1/{page}", priority=priority))
    return queue


def pages(queue: Base) -> list[int]:
    popped = []
    while (request := queue.pop()) is not None:
        popped.append(int(request.url.rpartition("/")[2]))
    return popped


@pytest.mark.parametrize(
    ("cls", "expected"), [(PriorityQueue, [2, 1, 3, 4]), (FifoQueue, [1, 2, 3, 4]), (LifoQueue, [4, 3, 2, 1])]
)
def test_each_class_pops_in_its_order(redis_client: redis.Redis, cls: type[Base], expected: list[int]) -> None:
    queue = fill(redis_client, cls)
    assert len(queue) == 4
    assert pages(queue) == expected
    assert queue.pop(timeout=0) is None


def test_the_random_queue_loses_nothing(redis_client: redis.Redis) -> None:
    assert sorted(pages(fill(redis_client, RandomQueue))) == [1, 2, 3, 4]


@pytest.mark.parametrize(("cls", "waiting"), [(RandomQueue, [1, 2, 3, 4]), (FifoQueue, [1, 1, 2, 2, 3, 3, 4, 4])])
def test_equal_requests_wait_once_in_the_random_queue_and_as_often_as_pushed_in_others(
    redis_client: redis.Redis, cls: type[Base], waiting: list[int]
) -> None:
    fill(redis_client, cls)
    assert sorted(pages(fill(redis_client, cls))) == waiting


def test_a_crawler_also_stores_equal_requests_once_where_the_order_is_random(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one", order=QueueOrder.RANDOM).open()
    for page in ("1", "2", "1"):
        one.add(page, dont_filter=True)
    leases = [one.take() for _ in range(3)]
    assert sorted(lease[1] for lease in leases if lease) == ["1", "2"]


def test_what_is_pushed_by_hand_is_leased_by_crawlers(redis_client: redis.Redis) -> None:
    fill(redis_client, PriorityQueue)
    one = Owner(redis_client, "one").open()
    one.advance()
    leases = [one.frontier.take() for _ in range(4)]
    assert [b"127.0.0.1/2" in lease.data for lease in leases if lease] == [True, False, False, False]


def test_a_serializer_is_called_once_for_each_push_and_pop(redis_client: redis.Redis) -> None:
    calls: list[str] = []

    class Words:
        def dumps(self, obj: dict[str, Any]) -> str:
            calls.append("dumps")
            return str(obj["url"])

        def loads(self, payload: bytes) -> dict[str, Any]:
            calls.append("loads")
            return {"url": payload.decode()}

    queue = FifoQueue(redis_client, Books(), "%(spider)s:requests", Words())
    queue.push(Request("http://127.0.0.1/1"))
    popped = queue.pop()
    assert popped is not None
    assert popped.url == "http://127.0.0.1/1"
    assert calls == ["dumps", "loads"]


def test_something_without_loads_and_dumps_is_no_serializer(redis_client: redis.Redis) -> None:
    with pytest.raises(TypeError, match="serializer does not implement 'loads' function"):
        FifoQueue(redis_client, Books(), "%(spider)s:requests", object())  # type: ignore[arg-type]


def test_a_pickling_queue_stores_what_the_exact_codec_refuses(redis_client: redis.Redis) -> None:
    request = Request("http://127.0.0.1/1", meta={"spot": Spot(1, 2)})
    queue = FifoQueue(redis_client, Books(), "%(spider)s:requests", picklecompat)
    queue.push(request)
    popped = queue.pop()
    assert popped is not None
    assert popped.meta == request.meta


def test_pop_waits_for_a_request_when_it_is_told_to(redis_client: redis.Redis) -> None:
    queue = fill(redis_client, FifoQueue)
    assert queue.pop(timeout=1) is not None
    queue.clear()
    assert len(queue) == 0


def test_replies_that_are_decoded_for_others_are_not_for_the_queue(redis_url: str, redis_client: redis.Redis) -> None:
    with redis.Redis.from_url(redis_url, decode_responses=True) as decoding:
        queue = fill(decoding, PriorityQueue)
        assert len(queue) == 4
        waited = queue.pop(timeout=1)
        assert waited is not None
        assert pages(queue) == [1, 3, 4]


def test_older_names_and_the_default_serializer_are_there(redis_client: redis.Redis) -> None:
    assert (queue.SpiderQueue, queue.SpiderStack, queue.SpiderPriorityQueue) == (FifoQueue, LifoQueue, PriorityQueue)
    serializer = FifoQueue(redis_client, Books(), "%(spider)s:requests").serializer
    fields = Request("http://127.0.0.1/1", meta={"spot": (1, 2)}, headers={"a": "b"}).to_dict()
    assert serializer.loads(serializer.dumps(fields)) == fields  # type: ignore[arg-type]  # it is bytes


class LowestPageLast(LifoQueue):
    """Scores, where the order is by time."""

    @staticmethod
    def score(request: Request) -> int:
        return -int(request.url.rpartition("/")[2])


class Unreadable(MarkingQueue):
    """Raises what it likes."""

    def _encode_request(self, request: Request) -> bytes:
        raise KeyError("no")

    def _decode_request(self, payload: bytes) -> Request:
        raise KeyError("no")


def test_the_frontier_orders_what_only_scores_or_encodes_and_asks_a_class_that_stores() -> None:
    ours = {
        PriorityQueue: QueueOrder.PRIORITY,
        FifoQueue: QueueOrder.FIFO,
        LifoQueue: QueueOrder.LIFO,
        RandomQueue: QueueOrder.RANDOM,
    }
    assert {cls: order_of(cls) for cls in ours} == ours
    assert (order_of(LowestPageFirst), order_of(MarkingQueue)) == (QueueOrder.PRIORITY, QueueOrder.PRIORITY)
    assert [order_of(cls) for cls in (Base, ListQueue, ForgetfulQueue, HighestPageFirst, LowestPageLast)] == [None] * 5


def test_a_score_and_a_payload_of_the_users_own_are_used(redis_client: redis.Redis) -> None:
    request = Request("http://127.0.0.1/7")
    key = "%(spider)s:requests"
    score = own_score_of(LowestPageFirst(redis_client, Books(), key))
    assert score is not None
    assert exact_score(score(request)) == "7.0"
    with pytest.raises(Unserializable, match="score: Redis cannot sort by nan"):
        exact_score(float("nan"))
    codec = own_codec_of(MarkingQueue(redis_client, Books(), key))
    assert codec is not None
    assert codec.encode(request).startswith(b"mark")
    assert codec.decode(codec.encode(request)).url == request.url
    broken = own_codec_of(Unreadable(redis_client, Books(), key))
    assert broken is not None
    with pytest.raises(Unserializable, match="KeyError: 'no'"):
        broken.encode(request)
    with pytest.raises(Undecodable, match="Unreadable cannot read it: KeyError: 'no'"):
        broken.decode(b"mark")
    plain = PriorityQueue(redis_client, Books(), key)
    assert (own_score_of(plain), own_codec_of(plain)) == (None, None)
