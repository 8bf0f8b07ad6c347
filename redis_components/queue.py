"""The orders in which requests are leased, and the contract of a user's own queue class.

Used alone, each class is a synchronous queue on the Redis key of the frontier's READY requests. The Scheduler takes only order,
score and payload from our classes, and leaves the rest to the frontier; a class that stores in its own way is called through
`custom_queue`.
"""

from __future__ import annotations

import struct
from hashlib import sha1
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy.utils.python import to_bytes

from .codec.requests import Codec, RequestCodec, Serializer, SerializerCodec, exact_fields
from .errors import Undecodable, Unserializable
from .frontier import messages
from .keys import CrawlKeys
from .server.names import crawl_name
from .server.scripts import script

if TYPE_CHECKING:
    from collections.abc import Callable

    import redis
    from scrapy import Request, Spider


_PREFIX_BYTES = 9  # 8 of order, 1 of attempts


class Base:
    """A queue of requests in the sorted set `key`: score = -priority or 0, member = order, attempts, payload."""

    order: ClassVar[messages.QueueOrder]

    def __init__(self, server: redis.Redis, spider: Spider, key: str, serializer: Serializer | None = None) -> None:
        for name in ("loads", "dumps") if serializer is not None else ():
            if not hasattr(serializer, name):
                raise TypeError(f"serializer does not implement {name!r} function: {serializer!r}")
        self.server = server
        self.spider = spider
        self._keys = CrawlKeys.for_spider(crawl_name(spider), namespace="", requests=key)
        self.key = self._keys.requests
        self.serializer: Serializer = exact_fields if serializer is None else serializer  # for methods that users override
        self._codec: Codec = RequestCodec(spider) if serializer is None else SerializerCodec(spider, serializer)

    def use_codec(self, codec: Codec) -> None:
        """Store requests as the Scheduler does that made this queue: it knows the settings."""
        self._codec = codec

    def __len__(self) -> int:
        """Return the number of READY requests."""
        return int(self.server.zcard(self.key))

    def push(self, request: Request) -> None:
        """Store a request, without dedupe. Raises Unserializable for what cannot be stored exactly."""
        payload = to_bytes(self._encode_request(request))
        number = int(script("order_number")(self.server, self._keys, {}))
        self.server.zadd(self.key, {struct.pack(">QB", self.rank(number, payload), 0) + payload: self.score(request)})

    def pop(self, timeout: int = 0) -> Request | None:
        """Remove and return the next request, or None; `timeout` (s) waits for one. A popped request is not leased: a crash
        loses it.
        """
        # NEVER_DECODE: payloads are binary, also for users who set decode_responses=True.
        if timeout > 0:
            blocked: Any = self.server.execute_command("BZPOPMIN", self.key, timeout, NEVER_DECODE=True)  # type: ignore[no-untyped-call]  # redis-py has no types for it
            member: bytes | None = blocked[1] if blocked else None
        else:
            popped: Any = self.server.execute_command("ZPOPMIN", self.key, NEVER_DECODE=True)  # type: ignore[no-untyped-call]
            member = popped[0][0] if popped else None
        return self._decode_request(member[_PREFIX_BYTES:]) if member else None

    def _encode_request(self, request: Request) -> bytes:
        return self._codec.encode(request)

    def _decode_request(self, payload: bytes) -> Request:
        return self._codec.decode(payload)

    def clear(self) -> None:
        """Delete the queue; leases are not touched."""
        self.server.delete(self.key)

    @staticmethod
    def rank(number: int, payload: bytes) -> int:  # noqa: ARG004
        """Return the place among requests of equal score, from the order number of the push."""
        return number

    @staticmethod
    def score(request: Request) -> int:  # noqa: ARG004
        """Return the score of a request; lower ones are leased first."""
        return 0


class PriorityQueue(Base):
    """Highest priority first; equal priorities first in, first out."""

    order = messages.QueueOrder.PRIORITY

    @staticmethod
    def score(request: Request) -> int:
        """Return the negated priority."""
        return -request.priority


class FifoQueue(Base):
    """First in, first out."""

    order = messages.QueueOrder.FIFO


class LifoQueue(Base):
    """Last in, first out: depth first, which keeps the queue of a link crawl short."""

    order = messages.QueueOrder.LIFO

    @staticmethod
    def rank(number: int, payload: bytes) -> int:  # noqa: ARG004
        """Return the rank, by which later pushes come first; the same constant as in `exchange.lua`."""
        return 2**52 - number


class RandomQueue(Base):
    """In no order, so that the requests to one site do not come in a row. Equal requests that wait are one."""

    order = messages.QueueOrder.RANDOM

    @staticmethod
    def rank(number: int, payload: bytes) -> int:  # noqa: ARG004
        """Return the rank, as in `exchange.lua`: scattered, the same for equal requests."""
        return int(sha1(payload, usedforsecurity=False).hexdigest()[:12], 16)


_STORAGE = ("__len__", "push", "pop", "clear", "rank")


def _is_ours(cls: object, *names: str) -> bool:
    """Return True if a queue class has these methods from this module, none of them overridden."""
    return all(getattr(getattr(cls, name, None), "__module__", "") == __name__ for name in names)


def order_of(cls: object) -> messages.QueueOrder | None:
    """Return the order in which the frontier itself leases the requests of this queue class. None for a class that has to be
    called: it stores in its own way, or scores other than by the priority where the order knows no scores.
    """
    order: messages.QueueOrder | None = getattr(cls, "order", None)
    if order is None or not _is_ours(cls, *_STORAGE):
        return None
    if _is_ours(cls, "score"):
        return order
    return messages.QueueOrder.PRIORITY if order in (messages.QueueOrder.PRIORITY, messages.QueueOrder.FIFO) else None


def own_score_of(queue: object) -> Callable[[Request], float] | None:
    """Return the queue's `score` if it is a user's own."""
    return None if _is_ours(type(queue), "score") else getattr(queue, "score", None)


class QueueCodec:
    """Requests through `_encode_request` and `_decode_request` of a user's queue class."""

    def __init__(self, queue: Base) -> None:
        self._queue = queue

    def encode(self, request: Request) -> bytes:
        """Return the payload of `request`. Raises Unserializable with the queue's error."""
        try:
            return to_bytes(self._queue._encode_request(request))
        except Unserializable:
            raise
        except Exception as exc:  # a user's method may raise anything
            raise Unserializable(f"request: {type(exc).__name__}: {exc}") from exc

    def decode(self, payload: bytes) -> Request:
        """Return the request of `payload`. Raises Undecodable with the queue's error."""
        try:
            return self._queue._decode_request(payload)
        except Undecodable:
            raise
        except Exception as exc:  # a user's method may raise anything
            raise Undecodable(f"{type(self._queue).__qualname__} cannot read it: {type(exc).__name__}: {exc}") from exc


def own_codec_of(queue: object) -> Codec | None:
    """Return a codec of the queue's own `_encode_request` and `_decode_request`, where one of them is a user's."""
    if not isinstance(queue, Base) or _is_ours(type(queue), "_encode_request", "_decode_request"):
        return None
    return QueueCodec(queue)


# scrapy-redis's older names.
SpiderQueue = FifoQueue
SpiderStack = LifoQueue
SpiderPriorityQueue = PriorityQueue
