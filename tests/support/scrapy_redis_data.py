"""What scrapy-redis 0.9.1 leaves in Redis, made without it: the forms of its keys are in docs/migrating-from-scrapy-redis.md."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any

import redis
from scrapy import Request, Spider

from redis_components.fingerprint import ScrapyRedisFingerprinter


class Parses(Spider):
    """A spider with the callbacks that stored requests name."""

    name = "forum"

    def parse_post(self, response: Any) -> None:
        """A callback."""

    def failed(self, failure: Any) -> None:
        """An errback."""


SPIDER = Parses()


def pickled(request: Request) -> bytes:
    """A request as scrapy-redis's queues hold it."""
    return pickle.dumps(request.to_dict(spider=SPIDER), protocol=-1)


def put_zset(client: redis.Redis, key: str, requests: Iterable[Request]) -> None:
    """The PriorityQueue."""
    client.zadd(key, {pickled(request): -request.priority for request in requests})


def put_fields(client: redis.Redis, key: str, requests: Iterable[tuple[Request, dict[str, Any]]]) -> None:
    """The PriorityQueue, with some fields of the stored requests set: callbacks of a spider that is not here."""
    members = {pickle.dumps({**request.to_dict(), **fields}, protocol=-1): -request.priority for request, fields in requests}
    client.zadd(key, members)


def put_list(client: redis.Redis, key: str, requests: Iterable[Request]) -> None:
    """FifoQueue and LifoQueue: both write at the head."""
    for request in requests:
        client.lpush(key, pickled(request))


def put_fingerprints(client: redis.Redis, key: str, requests: Iterable[Request]) -> None:
    """The dupefilter."""
    fingerprint = ScrapyRedisFingerprinter().fingerprint
    client.sadd(key, *(fingerprint(request).hex() for request in requests))
