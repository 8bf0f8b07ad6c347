"""Queue, dupefilter and scheduler classes as users of scrapy-redis bring them: written against its interface, not Trawl's."""

from __future__ import annotations

import json
from typing import Any

import redis
from scrapy import Request, Spider
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object
from scrapy.utils.request import fingerprint, request_from_dict

from redis_components.connection import get_redis_from_settings
from redis_components.dupefilter import RFPDupeFilter
from redis_components.queue import Base, PriorityQueue
from redis_components.scheduler import Scheduler


class HighestPageFirst:
    """A class of its own: JSON in a hash, the highest page number first. `broken` makes it raise."""

    broken = False

    def __init__(self, server: redis.Redis, spider: Spider, key: str, serializer: Any = None) -> None:
        self.server = server
        self.spider = spider
        self.key = key

    def __len__(self) -> int:
        return int(self.server.hlen(self.key))

    def push(self, request: Request) -> None:
        fields = {"url": request.url, "meta": request.meta, "dont_filter": request.dont_filter}
        self.server.hset(self.key, request.url.rpartition("/")[2], json.dumps(fields))

    def pop(self, timeout: int = 0) -> Request | None:
        pages = self.server.hkeys(self.key)
        if not pages:
            return None
        page = max(pages, key=int)
        data = self.server.hget(self.key, page)
        if data is None or not self.server.hdel(self.key, page):
            return None
        return request_from_dict(json.loads(data), spider=self.spider)

    def clear(self) -> None:
        self.server.delete(self.key)


class ListQueue(Base):
    """A subclass of Base that stores in a list, as scrapy-redis's own do."""

    def __len__(self) -> int:
        return int(self.server.llen(self.key))

    def push(self, request: Request) -> None:
        self.server.lpush(self.key, self._encode_request(request))

    def pop(self, timeout: int = 0) -> Request | None:
        data = self.server.rpop(self.key)
        return self._decode_request(data) if data else None


class ForgetfulQueue(ListQueue):
    """Loses every second request that it is given, and gives the others back twice."""

    _pushed = 0

    def push(self, request: Request) -> None:
        self._pushed += 1
        if self._pushed % 2:
            super().push(request)
            super().push(request)


class LowestPageFirst(PriorityQueue):
    """Only the score is its own."""

    @staticmethod
    def score(request: Request) -> float:  # type: ignore[override]
        return float(request.url.rpartition("/")[2])


class MarkingQueue(PriorityQueue):
    """Only the payload is its own."""

    def _encode_request(self, request: Request) -> bytes:
        return b"mark" + super()._encode_request(request)

    def _decode_request(self, payload: bytes) -> Request:
        return super()._decode_request(payload.removeprefix(b"mark"))


class OwnFilter:
    """A class of its own, on a set in Redis."""

    def __init__(self, server: redis.Redis, key: str) -> None:
        self.server = server
        self.key = key

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> OwnFilter:
        return cls(get_redis_from_settings(settings), "own-filter")

    def request_seen(self, request: Request) -> bool:
        return self.server.sadd(self.key, fingerprint(request)) == 0

    def clear(self) -> None:
        self.server.delete(self.key)


class StumblingFilter(OwnFilter):
    """The answers to five of the first questions are lost on their way."""

    _asked = 0

    def request_seen(self, request: Request) -> bool:
        was_seen = super().request_seen(request)
        self._asked += 1
        if self._asked in (2, 3, 5, 9, 20):
            raise redis.ConnectionError("the connection is cut")
        return was_seen


class SeenByPath(RFPDupeFilter):
    """Decides by itself."""

    def request_seen(self, request: Request) -> bool:
        return self.server.sadd(self.key, request.url.rpartition("/")[2]) == 0


class PassingScheduler(Scheduler):
    """Overrides both methods of the hot path."""

    def enqueue_request(self, request: Request) -> bool:
        request.meta["enqueued"] = True
        return super().enqueue_request(request)

    def next_request(self) -> Request | None:
        request = super().next_request()
        if request is not None:
            request.meta["dequeued"] = request.meta.pop("enqueued")
        return request


class AddOnFilter(RFPDupeFilter):
    """A dupefilter as add-on packages for scrapy-redis have it: its `__init__` and `from_spider` are its own."""

    def __init__(self, server: redis.Redis, key: str, debug: bool) -> None:
        self.server = server
        self.key = key
        self.debug = debug
        self.logdupes = True

    @classmethod
    def from_spider(cls, spider: Spider) -> AddOnFilter:
        return cls(get_redis_from_settings(spider.settings), f"{spider.name}:bloomfilter", False)

    def request_seen(self, request: Request) -> bool:
        return not self.server.sadd(self.key, self.request_fingerprint(request))


class AddOnScheduler(Scheduler):
    """A scheduler of such a package: `__init__` and `open` are its own, and call nothing of ours."""

    def __init__(self, server: redis.Redis, **options: Any) -> None:
        self.server = server
        self.persist = options["persist"]
        self.flush_on_start = True
        self.queue_key = "%(spider)s:requests"
        self.queue_cls = options["queue_cls"]
        self.dupefilter_cls = options["dupefilter_cls"]
        self.idle_before_close = 0
        self.serializer = None
        self.stats = None

    def open(self, spider: Spider) -> None:
        self.spider = spider
        key = self.queue_key % {"spider": spider.name}
        self.queue = load_object(self.queue_cls)(server=self.server, spider=spider, key=key, serializer=self.serializer)
        self.df = load_object(self.dupefilter_cls).from_spider(spider)
        if self.flush_on_start:
            self.flush()
        if len(self.queue):
            spider.log(f"Resuming crawl ({len(self.queue)} requests scheduled)")


class FailingScheduler(Scheduler):
    """It cannot take the requests that are found."""

    def enqueue_request(self, request: Request) -> bool:
        raise AttributeError("of a part that this version does not have")
