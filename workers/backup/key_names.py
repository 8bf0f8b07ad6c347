"""The keys of a Redis that belong to one fleet, and the keys of its living processes among them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import redis

from redis_components.admin.crawl_records import CrawlRecords, crawl_record_of
from redis_components.keys import CrawlKeys, limits_key
from redis_components.server.names import fleet_namespace, literal
from redis_components.server.untrusted_values import as_bytes, as_text, readable
from workers.state.keys import FleetKeys

SCANNED = 1_000  # keys for each round trip


@dataclass(frozen=True, kw_only=True)
class KeyNames:
    """The keys of one fleet: each of `bases`, and every key that begins with one of them and a colon."""

    bases: tuple[str, ...]
    crawls: tuple[CrawlKeys, ...]
    """Of services whose frontier is in this Redis."""
    elsewhere: tuple[str, ...]
    """Services whose frontier is in another Redis, which is not looked at."""

    def owns(self, key: bytes) -> bool:
        """Return True if a key is the fleet's."""
        return any(key == base or key.startswith(base + b":") for base in self._encoded())

    def is_of_living_processes(self, key: bytes) -> bool:
        """Return True if a key describes processes that live now: a restored one would describe others."""
        fleet = FleetKeys()
        exact = {one.encode() for one in (fleet.nodes(), fleet.crawlers(), fleet.orders(), fleet.beats())}
        return key in exact or key.startswith(fleet.backup_copy("", "").rstrip(":").encode() + b":")

    def found(self, client: redis.Redis) -> Iterator[bytes]:
        """Yield every key of the fleet that outlives its processes, by SCAN. Raises `redis.RedisError`."""
        namespace = fleet_namespace()
        # Without a namespace the names have no common beginning: the server sends all, which takes no memory here.
        match = f"{literal(namespace)}:*" if namespace and all(b.startswith(namespace) for b in self.bases) else None
        seen = set(self.fixed())
        yield from seen
        for name in client.scan_iter(match=match, count=SCANNED):
            key = as_bytes(name)
            if key not in seen and self.owns(key) and not self.is_of_living_processes(key):
                seen.add(key)
                yield key

    def crawl_records(self) -> str:
        """Return the key of the records of all crawls."""
        return FleetKeys().crawls()

    def with_records(self, stored: Mapping[bytes, bytes]) -> KeyNames:
        """Return these names and the names of the crawls in other records, by service."""
        records = {as_text(name): one for name, one in readable(stored, crawl_record_of).items()}
        crawls = [record.keys for record in records.values() if not record.redis]
        bases = [base for keys in crawls for base in _bases(keys)]
        return replace(
            self, bases=tuple(dict.fromkeys((*self.bases, *bases))), crawls=tuple(dict.fromkeys((*self.crawls, *crawls)))
        )

    def fixed(self) -> list[bytes]:
        """Return the keys that have the same name in each fleet of these services, also where they do not exist now."""
        keys_of: list[FleetKeys | CrawlKeys] = [FleetKeys(), *self.crawls]
        named = [key for keys in keys_of for key in _without_parameters(keys)]
        named += [key for crawl in self.crawls for key in (*crawl.more_start_urls, *crawl.turn_keys)]
        return [key for key in dict.fromkeys(name.encode() for name in named) if not self.is_of_living_processes(key)]

    def _encoded(self) -> tuple[bytes, ...]:
        return tuple(base.encode() for base in self.bases)


def key_names(client: redis.Redis, services: Iterable[str]) -> KeyNames:
    """Return the keys of the fleet of this namespace, whose services are `services` and all that ever had a crawler."""
    records = CrawlRecords(client).all()
    names = list(dict.fromkeys((*services, *records)))
    elsewhere = tuple(name for name in names if name in records and records[name].redis)
    crawls = tuple(keys for name, keys in CrawlRecords(client).keys_of_all(names).items() if name not in elsewhere)
    namespace = fleet_namespace()
    bases = [namespace] if namespace else [FleetKeys().prefix, limits_key()]
    for keys in crawls:
        bases += _bases(keys)
    return KeyNames(bases=tuple(dict.fromkeys(bases)), crawls=crawls, elsewhere=elsewhere)


def _bases(keys: CrawlKeys) -> list[str]:
    return [keys.requests, keys.dupefilter, keys.start_urls, *keys.more_start_urls, keys.items, keys.stats, keys.limits]


def _without_parameters(keys: FleetKeys | CrawlKeys) -> Iterator[str]:
    """Yield the results of all methods without parameters."""
    for cls in type(keys).__mro__[:-1]:
        for name, method in vars(cls).items():
            if inspect.isfunction(method) and not name.startswith("_") and method.__code__.co_argcount == 1:
                made = method(keys)
                if isinstance(made, str):
                    yield made
