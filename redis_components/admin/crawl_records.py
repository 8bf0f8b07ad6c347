"""The place of each service's crawl: its keys, its Redis and the consumer of its items, as last reported by its crawlers.

A project may name other keys than the default ones, in its settings or on the spider. All that look at a crawl from outside
(status, exporter, autoscaler, dead letters, holds, the writer) use these records, also when no crawler is left.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self, cast

import redis

from redis_components.keys import CrawlKeys, NamespaceKeys
from redis_components.server.untrusted_values import JsonRecord, as_bytes, hash_at, is_foreign, readable


@dataclass(frozen=True, kw_only=True)
class CrawlRecord(JsonRecord):
    """The record that a crawler of a service writes when its crawl begins."""

    spider: str
    keys: CrawlKeys
    redis: str = ""
    """Its Redis, without a password, where that is another one than the fleet's; "": the fleet's."""
    consumer: str = ""
    """The part of the fleet that consumes its items from the item stream; "": none, they are the user's to consume."""
    max_items: int = 0
    """Items, waiting and refused, from which on its crawlers start no page; 0: any number."""
    max_item_bytes: int = 0
    """The same as memory of Redis in bytes; 0: any."""
    metrics: dict[str, str] = field(default_factory=dict)
    """Its stats that are metrics, with their kinds: as the project's settings name them (`workers.process.stat_metrics`)."""
    schemes: tuple[str, ...] = ()
    """Schemes of URLs that it fetches in addition to http and https."""
    at: float = 0.0
    """Time of the record, epoch s."""

    @classmethod
    def from_json(cls, text: bytes | str) -> Self:
        """Read what `to_json` wrote, here or in a newer version. Raises ValueError for anything else."""
        record = super().from_json(text)
        keys = record.keys
        if not all((keys.requests, keys.dupefilter, keys.start_urls, keys.items, keys.stats, *keys.more_start_urls)):
            raise ValueError("an empty key")
        return record


class CrawlRecords:
    """The records of one fleet, by spider. Methods raise `redis.RedisError` when Redis does not answer.

    A record that cannot be read counts as none: the default keys are looked at then.
    """

    def __init__(self, client: redis.Redis, keys: NamespaceKeys | None = None) -> None:
        self._client = client
        self._key = (keys or NamespaceKeys()).crawls()

    def write(self, record: CrawlRecord) -> None:
        """Store the record of a crawler with a slot in place of an older one. Holds stay, at the new keys."""
        before = self.keys_of(record.spider).holds()
        if before != record.keys.holds() and not record.redis:
            with suppress(redis.ResponseError):  # a cluster keeps them in different slots; the fleet's own holds are spread again
                self._client.copy(before, record.keys.holds())  # unless there are holds
        self._client.hset(self._key, record.spider, record.to_json())

    def suggest(self, record: CrawlRecord) -> None:
        """Store the record of a crawler without a slot, unless there is one."""
        self._client.hsetnx(self._key, record.spider, record.to_json())

    def all(self) -> dict[str, CrawlRecord]:
        """Return every record: one for each service that ever had a crawler."""
        return readable(hash_at(self._client, self._key), crawl_record_of)

    def of(self, spider: str) -> CrawlRecord | None:
        """Return the record of one service; None where no crawler has written one."""
        try:
            raw = self._client.hget(self._key, spider)
        except redis.ResponseError as error:
            if is_foreign(error):
                return None
            raise
        return _read(raw) if raw else None

    def keys_of(self, spider: str) -> CrawlKeys:
        """Return the keys of one service: as recorded, else the default ones."""
        record = self.of(spider)
        return record.keys if record else CrawlKeys.for_spider(spider)

    def keys_of_all(self, spiders: Iterable[str]) -> dict[str, CrawlKeys]:
        """Return the keys of several services, in one round trip."""
        names, found = list(spiders), list[Any]()
        try:
            found = cast("list[Any]", self._client.hmget(self._key, names)) if names else []
        except redis.ResponseError as error:
            if not is_foreign(error):
                raise
        fields = {name.encode(): as_bytes(raw) for name, raw in zip(names, found, strict=False) if raw is not None}
        records = readable(fields, crawl_record_of)
        return {name: records[name].keys if name in records else CrawlKeys.for_spider(name) for name in names}


def keys_in(client: redis.Redis, spider: str) -> CrawlKeys:
    """Return the keys of a service in the fleet of this Redis: as its crawlers recorded them, else the default ones."""
    return CrawlRecords(client).keys_of(spider)


def crawl_record_of(name: str, raw: bytes) -> CrawlRecord:  # noqa: ARG001 - the form of what reads a field
    """Return the record of a service. Raises ValueError."""
    return _parsed(raw)


@lru_cache(maxsize=1024)
def _parsed(raw: bytes) -> CrawlRecord:
    """Parse a record; cached, as frequent readers such as the exporter find the same line each time."""
    return CrawlRecord.from_json(raw)


def _read(raw: bytes | str) -> CrawlRecord | None:
    try:
        return CrawlRecord.from_json(raw)
    except ValueError:
        return None
