"""Every kind of dupefilter, and the two ways to ask one: in the exchange that stores the requests, and alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Protocol

import redis

from redis_components import filters as filter_access
from redis_components.filters import Bloom, Exact, Filter, PlainSet, Renew, Rolling
from tests.support.owner import KEYS, Owner

KEY = KEYS.fingerprints()
WINDOW = 4000

KINDS: dict[str, Filter] = {
    "set": PlainSet(),
    "exact of 64 bits": Exact(bits=64),
    "exact": Exact(),
    "exact of 80 bits": Exact(bits=80),
    "rolling": Rolling(max_entries=WINDOW),
    "rolling by hits": Rolling(max_entries=WINDOW, renew=Renew.HITS),
    "rolling by time of writing": Rolling(max_entries=WINDOW, max_age_s=3600, renew=Renew.WRITTEN),
    "bloom": Bloom(capacity=1000),
}


def is_bloom(filter: Filter) -> bool:
    return isinstance(filter, Bloom)


class Asked(Protocol):
    """A filter of one kind at KEY."""

    filter: Filter

    def ask(self, fingerprints: Iterable[bytes]) -> list[bool]:
        """Whether each was seen before."""


class Alone:
    """Asked by `request_seen`, as it were."""

    def __init__(self, client: redis.Redis, filter: Filter) -> None:
        self.client, self.filter = client, filter

    def ask(self, fingerprints: Iterable[bytes]) -> list[bool]:
        entries = [self.filter.entry(one) for one in fingerprints]
        if isinstance(self.filter.options(), dict):
            return filter_access.seen(self.client, KEY, self.filter, entries)
        with self.client.pipeline(transaction=False) as pipe:
            for entry in entries:
                pipe.sadd(KEY, entry)
            return [added == 0 for added in pipe.execute()]


class InExchange:
    """Asked by a crawler process that stores requests."""

    def __init__(self, client: redis.Redis, filter: Filter) -> None:
        self.filter = filter
        self.owner = Owner(client, "asker", filter=filter)
        self._numbers = itertools.count()

    def ask(self, fingerprints: Iterable[bytes]) -> list[bool]:
        payloads = []
        for one in fingerprints:
            payloads.append(f"request {next(self._numbers)}")
            self.owner.add(payloads[-1], fingerprint=one.decode("latin-1"))
        self.owner.advance()
        known = {payload.decode() for payload in self.owner.duplicates}
        return [payload in known for payload in payloads]


WAYS: dict[str, Callable[[redis.Redis, Filter], Asked]] = {"alone": Alone, "in the exchange": InExchange}


def of(prefix: str, first: int, last: int) -> list[bytes]:
    """Fingerprints of requests `first` to `last` - 1."""
    return [f"{prefix}{number}".encode() for number in range(first, last)]


def made_older(client: redis.Redis, seconds: float) -> None:
    """Let all generations be that much older."""
    records = [record.split(":") for record in client.hget(KEY, "generations").decode().split(",")]
    older = [[*record[:3], str(int(record[3]) - round(seconds * 1000))] for record in records]
    client.hset(KEY, "generations", ",".join(":".join(record) for record in older))
