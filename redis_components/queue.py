"""The orders in which requests are leased. The Scheduler reads `order`; used alone, each class is a synchronous queue on the
same Redis key.
"""

from __future__ import annotations

import struct
from hashlib import sha1
from typing import TYPE_CHECKING, Any, ClassVar

from . import exchange
from .keys import CrawlKeys
from .request_codec import RequestCodec, SerializerCodec

if TYPE_CHECKING:
    import redis
    from scrapy import Request, Spider

    from .request_codec import Codec, Serializer

_PREFIX_BYTES = 9  # 8 of order, 1 of attempts


class Base:
    """A queue of requests in the sorted set `key`: score = -priority or 0, member = order, attempts, payload."""

    order: ClassVar[exchange.Order]

    def __init__(self, server: redis.Redis, spider: Spider, key: str, serializer: Serializer | None = None) -> None:
        for name in ("loads", "dumps") if serializer is not None else ():
            if not hasattr(serializer, name):
                raise TypeError(f"serializer does not implement {name!r} function: {serializer!r}")
        self.server = server
        self.spider = spider
        self.key = key % {"spider": spider.name}
        self._keys = CrawlKeys.for_spider(spider.name, namespace="", requests=key)
        self.serializer = serializer
        self._codec: Codec = RequestCodec(spider) if serializer is None else SerializerCodec(spider, serializer)

    def __len__(self) -> int:
        """Number of READY requests."""
        return int(self.server.zcard(self.key))

    def push(self, request: Request) -> None:
        """Store a request, without dedupe. Raises Unserializable for what cannot be stored exactly."""
        payload = self._encode_request(request)
        number = int(self.server.hincrby(self._keys.counters(), "order", 1))
        self.server.zadd(self.key, {struct.pack(">QB", self.rank(number), 0) + payload: self.score(request)})

    def pop(self, timeout: int = 0) -> Request | None:
        """Remove and return the next request, or None; `timeout` (s) waits for one. What is popped is not leased: a crash
        loses it.
        """
        if timeout > 0:
            blocked: Any = self.server.bzpopmin(self.key, timeout)
            member: bytes | None = blocked[1] if blocked else None
        else:
            popped: Any = self.server.zpopmin(self.key)
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
    def rank(number: int) -> int:
        """Place among requests of equal score, from the running number of the push."""
        return number

    @staticmethod
    def score(request: Request) -> int:  # noqa: ARG004
        """Lower scores are leased first."""
        return 0


class PriorityQueue(Base):
    """Highest priority first; equal priorities first in, first out."""

    order = exchange.Order.PRIORITY

    @staticmethod
    def score(request: Request) -> int:
        """The negated priority."""
        return -request.priority


class FifoQueue(Base):
    """First in, first out."""

    order = exchange.Order.FIFO


class LifoQueue(Base):
    """Last in, first out: depth first, which keeps the queue of a link crawl short."""

    order = exchange.Order.LIFO

    @staticmethod
    def rank(number: int) -> int:
        """Later pushes come first; the same constant as in `exchange.lua`."""
        return 2**52 - number


class RandomQueue(Base):
    """In no order, so that the requests to one site do not come in a row."""

    order = exchange.Order.RANDOM

    @staticmethod
    def rank(number: int) -> int:
        """As in `exchange.lua`: scattered, the same for the same push."""
        return int(sha1(str(number).encode(), usedforsecurity=False).hexdigest()[:12], 16)


# scrapy-redis's older names.
SpiderQueue = FifoQueue
SpiderStack = LifoQueue
SpiderPriorityQueue = PriorityQueue
