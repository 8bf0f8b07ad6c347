"""The keys of one spider's crawl, and its record in Redis, by which it is found from outside.

A project may name other keys than the default ones, in its settings or on the spider. All that look at a crawl from outside
(status, exporter, autoscaler, dead letters, holds, the writer) use the records, also when no crawler is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self, cast

import redis

from redis_components import defaults
from redis_components.errors import ConfigError
from redis_components.server.names import fleet_namespace, prefixed
from redis_components.server.untrusted_values import JsonRecord, as_bytes, hash_at, is_foreign, readable

from .frontier import FedTaskKeys, FrontierKeys


def limits_key(namespace: str | None = None) -> str:
    """Return the key of the limits of lanes that all crawls of a namespace share; None: that of the fleet and the tools."""
    return prefixed("trawl:limits", fleet_namespace() if namespace is None else namespace)


def filled(pattern: str, spider: str) -> str:
    """Return the key of `spider` by `pattern`. Raises ConfigError."""
    try:
        return pattern % {"spider": spider, "name": spider}
    except (TypeError, KeyError, ValueError) as exc:
        raise ConfigError(
            f"the key pattern {pattern!r} is wrong ({type(exc).__name__}: {exc}):"
            " write %(name)s for the spider's name, %% for a percent sign, and no other %"
        ) from exc


@dataclass(frozen=True, kw_only=True)
class NamespaceKeys:
    """Keys of one namespace; a fleet has more (`workers/state/keys.py`)."""

    prefix: str = field(default_factory=lambda: prefixed("trawl:fleet", fleet_namespace()))

    def crawls(self) -> str:
        """HASH: where the crawl of each service is (spider -> JSON with its keys, its Redis where that is not the fleet's, the
        consumer and the bounds of its items), also after its crawlers have ended.

        Written by crawlers when they begin; read by the writer and by everything that looks at a crawl from outside.
        """
        return f"{self.prefix}:crawls"


@dataclass(frozen=True, kw_only=True)
class StartTaskKeys(FedTaskKeys):
    """The start keys, and those that begin with one of them. Part of `CrawlKeys`."""

    more_start_urls: tuple[str, ...] = ()
    """Further start keys of a spider that reads several, in falling urgency; `start_urls` is the most urgent one."""

    def start_tasks(self) -> str:
        """LIST, SET or ZSET: start tasks (JSON) that wait for a crawler; which type is the user's choice. Where a spider reads
        several keys, this is the most urgent one, and the others are used alike.

        Written by `seed.lua`, by `exchange.lua` of the service before, by `dead_replay.lua`, or by users; read by `exchange.lua`.
        """
        return self.start_urls

    def start_deaths(self) -> str:
        """HASH with TTL: how many crawlers died while they held a start task (SHA-1 of the task in hex -> deaths); at most
        10,000, forgotten a day after the last death.

        Written and read by `exchange.lua`.
        """
        return f"{self.start_urls}:deaths"

    def start_tokens(self) -> str:
        """HASH: last change token of each start task that another service made (task id -> token), so that an unchanged thread
        makes no second task. At most 2,000,000; above that, random ones go.

        Written and read by `exchange.lua` of the service before; removed by `remember.lua` when the thread's record takes its
        place.
        """
        return f"{self.start_urls}:tokens"

    def later_tasks(self) -> str:
        """LIST: start tasks that may wait (re-checks, backfill): taken when `start_tasks` has none.

        Written by `recheck_threads`; read by `exchange.lua` of a spider with `lane_later`.
        """
        return f"{self.start_urls}:later"

    def turns(self) -> str:
        """ZSET: start tasks that wait for the turn of their site, of a spider with `turn_by` (score 0, member = site, NUL, 8
        bytes of order, task). Each start key has one.

        Written and read by `exchange.lua`, which sorts the start key into it.
        """
        return f"{self.start_urls}:turns"

    def later_turns(self) -> str:
        """ZSET: the same for `later_tasks`.

        Written and read by `exchange.lua`.
        """
        return f"{self.later_tasks()}:turns"

    @property
    def turn_keys(self) -> tuple[str, ...]:
        """`turns` of each start key, in their order."""
        return tuple(f"{key}:turns" for key in (self.start_urls, *self.more_start_urls))

    @property
    def more_task_keys(self) -> list[str]:
        """Every key with start tasks that wait, without `start_tasks`."""
        return list(dict.fromkeys((*self.more_start_urls, self.later_tasks(), *self.turn_keys, self.later_turns())))

    def backlog(self) -> str:
        """LIST: start tasks of a backfill that wait until the site's budget has room for them.

        Written by `exchange.lua` of the service before; moved into `later_tasks` by `recheck_threads` (`move_later.lua`).
        """
        return f"{self.start_urls}:backlog"

    def threads(self) -> str:
        """HASH: records of stored threads (`<site>/<thread>` -> msgpack: change token, comments, last page or 0 if it was gone,
        id of the last comment, cursor, hour of the last reading, comments as the list counts them, readings that saw fewer than
        it claims), by which a scan finds new, changed and unchanged threads. Bounded by TRAWL_THREAD_RECORDS: then of a few
        random ones the oldest goes.

        Written by the writer's hook (`remember.lua`), removed by `trawl forums forget`; read by the spider `forum_list`.
        """
        return f"{self.start_urls}:threads"

    def pending(self) -> str:
        """HASH: seeded start tasks whose scan has not ended (task id -> time of seeding, Redis, ms).

        Written by `seed.lua`; cleared by `settle.lua` when the scan's report is stored.
        """
        return f"{self.start_urls}:pending"

    def seeded(self) -> str:
        """HASH: time of the last seeding of each start task (task id -> Redis, ms), from which the due ones are found.

        Written by `seed.lua`; read by the seeder.
        """
        return f"{self.start_urls}:seeded"


@dataclass(frozen=True, kw_only=True)
class ItemKeys:
    """The item stream, and the keys that begin with it. Part of `CrawlKeys`."""

    items: str

    def item_stream(self) -> str:
        """LIST: scraped items as JSON, oldest first. Where a pipeline overrides `item_key`, its lists are written alike.

        Written by `exchange.lua` and `items_replay.lua`. A user's consumer pops them; where the service declares the forum
        writer as its consumer, that alone reads them in place and trims them after the commit (`settle.lua`).
        """
        return self.items

    def writer(self) -> str:
        """STRING with TTL: `<token>|<number of its last settled batch>` of the one writer that may trim the item stream.

        Written by `writer_lock.lua`, `writer_unlock.lua`, and `settle.lua`, which checks it first.
        """
        return f"{self.items}:writer"

    def item_part(self) -> str:
        """STRING: what the consumer is about to write as one part (JSON: name, count, digest).

        Written by `part_note.lua`, read by the next consumer; removed by `settle.lua`.
        """
        return f"{self.items}:part"

    def bad_items(self) -> str:
        """LIST: items that their consumer refused, newest last, as one line of JSON (`at`, epoch seconds of Redis, and `reason`)
        and the item; kept until replayed or purged. They count with those that wait towards REDIS_ITEMS_MAX_WAITING.

        Written by `settle.lua`; read by the inspector, `exchange.lua` and `trawl dead items`, which takes
        them out by `items_replay.lua` and `dead_purge.lua`.
        """
        return f"{self.items}:dead"


@dataclass(frozen=True, kw_only=True)
class CrawlKeys(FrontierKeys, StartTaskKeys, ItemKeys):
    """The keys of one spider's crawl. The five patterns are scrapy-redis's; each auxiliary key starts with the key it serves.

    The namespace comes before every pattern. For Redis Cluster it is a hash tag, as in `{job42}:forum:requests`.
    """

    stats: str

    @classmethod
    def for_spider(
        cls,
        spider: str,
        *,
        namespace: str | None = None,
        requests: str = defaults.SCHEDULER_QUEUE_KEY,
        dupefilter: str = defaults.SCHEDULER_DUPEFILTER_KEY,
        start_urls: str | Sequence[str] = defaults.START_URLS_KEY,
        items: str = defaults.PIPELINE_KEY,
        stats: str = defaults.STATS_KEY,
    ) -> CrawlKeys:
        """Return the keys for the spider named `spider`; patterns may hold `%(spider)s` or `%(name)s`. Of several start keys the
        most urgent one stands first.

        `namespace` defaults to that of the fleet and the tools (TRAWL_NAMESPACE); "" is none. Raises ConfigError.
        """
        within = fleet_namespace() if namespace is None else namespace
        first, *more = [start_urls] if isinstance(start_urls, str) else start_urls
        return cls(
            requests=prefixed(filled(requests, spider), within),
            dupefilter=prefixed(filled(dupefilter, spider), within),
            start_urls=prefixed(filled(first, spider), within),
            items=prefixed(filled(items, spider), within),
            stats=prefixed(filled(stats, spider), within),
            limits=limits_key(within) if within or "{" not in requests else f"{filled(requests, spider)}:limits",
            more_start_urls=tuple(prefixed(filled(key, spider), within) for key in more),
        )

    def validators(self) -> str:
        """HASH with TTL: validators of pages (digest of the URL -> msgpack of `ETag`, `Last-Modified`, digest of the body), at
        most CONDITIONAL_MAX_URLS with the next one.

        Written by crawlers when pages are settled (`validators_store.lua`); read by them.
        """
        return f"{self.requests}:validators"

    def older_validators(self) -> str:
        """HASH with TTL: the same of pages that were not asked for since.

        Written and read as the key before.
        """
        return f"{self.requests}:validators:older"

    def holds(self) -> str:
        """HASH: an operator's holds (`spider`, `site:<name>`, and for the whole fleet `fleet`, `fleet:site:<name>`), and the
        breaker of a site (`fleet:breaker:<site>`) -> JSON with word, at, by, reason; and `version`, which each change replaces.
        Kept when the crawl's keys are removed.

        Written by `hold.lua`; read by `exchange.lua`, which sends them to a crawler with another version, and by `trawl status`.
        """
        return f"{self.requests}:holds"

    def stats_hash(self) -> str:
        """HASH: Scrapy's stats over all processes: sums, maxima, minima; `start_time` of the first one; of a crawl whose last
        process has left, what that one had set, such as `finish_reason`.

        Written by `exchange.lua` and, of queued and refused start tasks, by the seeders; read by the exporter and the inspector.
        """
        return self.stats

    def own_stats(self, owner: str) -> str:
        """HASH with TTL: the stats that one process has set (start time, ...), as long as it crawls; expires a day after its
        last change if its end is not noticed.

        Written by `exchange.lua`, removed by it and by `expire_owner.lua`; read by people.
        """
        return f"{self.stats}:{owner}"


@dataclass(frozen=True, kw_only=True)
class CrawlRecord(JsonRecord):
    """The record that a crawler of a service writes when its crawl begins."""

    spider: str
    keys: CrawlKeys
    consumer: str = ""
    """The part of the fleet that consumes its items from the item stream; "": none, they are the user's to consume."""
    max_items: int = 0
    """Items, waiting and refused, from which on its crawlers start no page; 0: any number."""
    max_item_bytes: int = 0
    """The same as memory of Redis in bytes; 0: any."""
    metrics: dict[str, str] = field(default_factory=dict)
    """Its stats that are metrics, as the project's settings name them (`workers.process.stat_metrics`); the version before reads
    the kind of each.
    """
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
        if before != record.keys.holds():
            with suppress(redis.ResponseError):  # a cluster keeps them in different slots; the fleet's own holds are spread again
                self._client.copy(before, record.keys.holds())  # unless there are holds
        self._client.hset(self._key, record.spider, record.to_json())

    def suggest(self, record: CrawlRecord) -> None:
        """Store the record of a crawler without a slot, unless there is one."""
        self._client.hsetnx(self._key, record.spider, record.to_json())

    def all(self) -> dict[str, CrawlRecord]:
        """Return every record: one for each service that ever had a crawler."""
        return readable(hash_at(self._client, self._key), crawl_record_of)

    def some(self, spiders: Iterable[str]) -> dict[str, CrawlRecord]:
        """Return the records of these services, in one round trip; without those that no crawler has written."""
        names, found = list(spiders), list[Any]()
        try:
            found = cast("list[Any]", self._client.hmget(self._key, names)) if names else []
        except redis.ResponseError as error:
            if not is_foreign(error):
                raise
        fields = {name.encode(): as_bytes(raw) for name, raw in zip(names, found, strict=False) if raw is not None}
        return readable(fields, crawl_record_of)

    def of(self, spider: str) -> CrawlRecord | None:
        """Return the record of one service; None where no crawler has written one."""
        return self.some([spider]).get(spider)

    def keys_of(self, spider: str) -> CrawlKeys:
        """Return the keys of one service: as recorded, else the default ones."""
        return self.keys_of_all([spider])[spider]

    def keys_of_all(self, spiders: Iterable[str]) -> dict[str, CrawlKeys]:
        """Return the keys of several services, in one round trip."""
        names = list(spiders)
        records = self.some(names)
        return {name: records[name].keys if name in records else CrawlKeys.for_spider(name) for name in names}


def keys_in(client: redis.Redis, spider: str) -> CrawlKeys:
    """Return the keys of a service in the fleet of this Redis: as its crawlers recorded them, else the default ones."""
    return CrawlRecords(client).keys_of(spider)


@lru_cache(maxsize=1024)
def crawl_record_of(name: str, raw: bytes) -> CrawlRecord:  # noqa: ARG001 - the form of what reads a field
    """Return the record of a service; cached, as frequent readers such as the exporter find the same line each time. Raises
    ValueError.
    """
    return CrawlRecord.from_json(raw)
