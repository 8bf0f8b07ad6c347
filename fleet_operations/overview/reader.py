"""Reads the overview of a fleet from Redis: services, queues, crawlers, nodes, holds and errors, and the application's sites.

Slow parts are cached and refreshed in a thread (`Seldom`), so that a frequent reader does not wait for them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from threading import Thread
from typing import Generic, TypeVar

import redis

from fleet_operations.consumers.declared import without_consumer
from redis_components.admin import health
from redis_components.admin.health import RedisMemory, memory_of
from redis_components.admin.inspector import CrawlSnapshot, snapshots, sums
from redis_components.admin.lanes import look
from redis_components.errors import ConfigError
from redis_components.frontier.holds import HoldKind
from redis_components.keys import CrawlKeys, CrawlRecord, CrawlRecords, limits_key
from redis_components.server.printable import in_words
from workers.application import application
from workers.fleet.sizes import declared_fleet, service_records
from workers.process.stat_metrics import is_named
from workers.state.beats import Beats
from workers.state.group_runs import GroupRuns, newest_of_groups
from workers.state.holds import Breakers, FleetHolds, Held
from workers.state.keys import FleetKeys
from workers.state.nodes import NodeRecord, Nodes, shortages
from workers.state.quarantine import Foreign, find
from workers.state.registry import CrawlerRecord, Registry
from workers.state.reports import Troubles
from workers.state.rolls import RollNote
from workers.state.services import Autoscaling, ServiceRecord

from .model import Overview, ServiceView, SitesView

T = TypeVar("T")


class Seldom(Generic[T]):
    """Reads at its first call, and then in a thread every `every_s` seconds at most; 0: at every call."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._seen: T | None = None
        self._due = 0.0  # monotonic
        self._thread: Thread | None = None

    def __call__(self, look: Callable[[], T], guard: Callable[[Callable[[], T]], T | None]) -> T | None:
        """Return the last result. A reading in this thread goes through `guard`, which stores its error; a failed one in the
        other thread leaves the last result.
        """
        if self._seen is None or not self._every_s:
            self._seen = guard(look)
            self._due = time.monotonic() + self._every_s
        elif time.monotonic() >= self._due and not (self._thread and self._thread.is_alive()):
            self._thread = Thread(target=self._again, args=(look,), daemon=True)
            self._thread.start()
        return self._seen

    def _again(self, look: Callable[[], T]) -> None:
        with suppress(redis.RedisError, OSError, ValueError):  # the next reading reports it
            self._seen = look()
        self._due = time.monotonic() + self._every_s


ERRORS_READ = 10
MOST_LANES = 200  # a broad crawl may have as many as there are domains
MOST_SERVICES = 200  # services of TRAWL_FLEET first; foreign values in Redis must not make this endless
FLEET_PARTS = (
    "crawls",
    "sizes",
    "crawlers",
    "errors",
    "nodes",
    "pauses",
    "roll",
    "autoscaling",
    "runs",
    "beat",
    "messages",
    "troubles",
    "consumers",
    "slots",
    "server",
    "memory",
    "foreign",
)
"""Names of the parts of a reading besides the services and the sites."""


class OverviewReader:
    """Reader of overviews. `services`: the spiders of the fleet with their default sizes, if known; None: those of TRAWL_FLEET.
    Slow parts are read at the first reading, and then in a thread at intervals (foreign values every `find_every_s` seconds at
    most, its memory every twelfth of that); 0: foreign values at every reading, memory never.
    """

    def __init__(
        self, client: redis.Redis, services: Mapping[str, int | None] | None = None, *, find_every_s: float = 0.0
    ) -> None:
        self._client = client
        self._services = services
        self._foreign = Seldom[list[Foreign]](find_every_s)
        self._memory = Seldom[RedisMemory](find_every_s * 12) if find_every_s else None
        self._sites = application().sites_reader(client) or SitesReader(client)

    def read(self) -> Overview:
        """Read the overview. Raises `redis.RedisError` when Redis does not answer, ConfigError for a wrong TRAWL_FLEET."""
        declared = dict(declared_fleet(self._client) if self._services is None else self._services)
        reading = Reading(self._client, declared, self._sites)
        view, part = reading.overview(), reading.part
        # Slow parts, which read every field, or many keys.
        foreign = self._foreign(lambda: find(self._client, list(reading.names)), partial(part, "foreign"))
        memory = self._memory(lambda: memory_of(self._client), partial(part, "memory")) if self._memory else None
        return replace(view, foreign=tuple(foreign or ()), memory=memory, seconds=time.monotonic() - reading.started)

    def read_sites(self, site: str | None = None) -> Overview:
        """Read the sites alone, or one of them. Raises `redis.RedisError` when Redis does not answer."""
        reading = Reading(self._client, {}, self._sites)
        return Overview(now=reading.now, sites=self._sites.read(reading, site), unreadable=reading.unreadable)


class SitesReader:
    """Reader of breakers and limits; that of an application reads what it knows of its sites, too."""

    parts: tuple[str, ...] = ("breakers", "lanes")
    first = ""
    """Service that is shown first."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def read(self, reading: Reading, site: str | None = None) -> SitesView:  # noqa: ARG002
        """Read the sites, or one of them."""
        return self.base(reading)

    def base(self, reading: Reading, first: Sequence[str] = ()) -> SitesView:
        """Read breakers and limits; the limits of the sites `first` are among those that are shown."""
        client, now, crawls = self._client, reading.now, [one.keys for one in reading.records.values()]
        lanes = reading.part("lanes", lambda: look(client, limits_key(), crawls, now, first=first, most=MOST_LANES))
        return SitesView(breakers=reading.part("breakers", Breakers(client).open_ones) or {}, lanes=tuple(lanes or ()))


class Reading:
    """One reading, with the errors of its parts."""

    def __init__(self, client: redis.Redis, declared: Mapping[str, int | None], sites: SitesReader) -> None:
        self._client = client
        self._declared = declared
        self._sites = sites
        self.started = time.monotonic()
        self._registry = Registry(client)
        self.now = self._registry.now()
        self.unreadable: dict[str, str] = {}
        self.records: Mapping[str, CrawlRecord] = {}
        self.names: Sequence[str] = ()  # of the services
        self._records: Mapping[str, ServiceRecord] = {}

    def part(self, name: str, read: Callable[[], T]) -> T | None:
        """Return the result of `read`; None for a key of another type or a foreign value, with the error stored."""
        try:
            return read()
        except (redis.ResponseError, ValueError, TypeError, KeyError) as error:
            self.unreadable[name] = in_words(error)
            return None

    def overview(self) -> Overview:
        """Read all parts but the slow ones."""
        client, now = self._client, self.now
        self.records = records = self.part("crawls", CrawlRecords(client).all) or {}
        crawlers = self.part("crawlers", self._registry.crawlers) or []
        self.names = names = self._names(records, crawlers)
        with suppress(ConfigError):  # a start with this file names the fault
            self._records = self.part("services", lambda: service_records(client)) or {}
        held = self.part("pauses", lambda: FleetHolds(client).all(names)) or []
        held = [one for one in held if not one.hold.removed or one.site in application().site_names()]
        nodes = self.part("nodes", Nodes(client).all) or []
        services = self._kept(self._views(names, records, crawlers, held), crawlers)
        return Overview(
            now=now,
            services=services,
            crawlers=tuple(crawlers),
            nodes=tuple(nodes),
            shortages=self._shortages(services, held, crawlers, nodes),
            held=tuple(held),
            roll=self.part("roll", RollNote(client).read),
            autoscaled=self.part("autoscaling", Autoscaling(client).all) or {},
            beats=self.part("beat", lambda: Beats(client).look(now)),
            runs=tuple(self.part("runs", lambda: newest_of_groups(GroupRuns(client).newest())) or ()),
            sites=self._sites.read(self),
            errors=tuple(self.part("errors", lambda: self._registry.errors(ERRORS_READ)) or []),
            dead_messages=self.part("messages", lambda: client.llen(FleetKeys().dead_messages())),
            troubles=tuple(self.part("troubles", lambda: Troubles(client).all(now)) or []),
            without_consumer=tuple(self.part("consumers", lambda: without_consumer(client)) or []),
            server=tuple(self.part("server", lambda: health.look(client)) or []),
            parts=(*(one.name for one in services), *FLEET_PARTS, *self._sites.parts),
            unreadable=self.unreadable,
        )

    def _names(self, records: Mapping[str, CrawlRecord], crawlers: list[CrawlerRecord]) -> list[str]:
        """Return the declared services first, with the one that the application names at the front."""
        others = sorted({*records, *(one.spider for one in crawlers)} - self._declared.keys())
        names = [*sorted(self._declared, key=lambda name: (name != self._sites.first, name)), *others]
        if len(names) > MOST_SERVICES:
            self.unreadable["crawls"] = f"{len(names) - MOST_SERVICES:,} more services are in Redis than are shown"
        return names[:MOST_SERVICES]

    def _views(
        self, names: list[str], records: Mapping[str, CrawlRecord], crawlers: list[CrawlerRecord], held: list[Held]
    ) -> list[ServiceView]:
        sizes = {**self._declared, **(self.part("sizes", self._registry.desired) or {})}
        crawls = self._snapshots(names, records)
        views: list[ServiceView] = []
        streams: dict[str, str] = {}  # item stream -> the first service with it
        for name in names:
            crawl = self.part(name, partial(_or_raise, crawls[name]))
            size = sizes.get(name) if name in self._declared else 0
            fault = "" if crawl else self.unreadable[name]
            view = ServiceView.of(crawl or CrawlSnapshot(spider=name), size, crawlers, held, self.now, fault=fault)
            if view.is_known:
                stream = (records[name].keys if name in records else CrawlKeys.for_spider(name)).items
                owner = streams.setdefault(stream, name)
                view = replace(view, items_of="" if owner == name else owner)
            if one := self._records.get(name):
                least = one.min_items_per_minute
                view = replace(view, spider=one.spider, max_waiting=one.max_waiting, min_items_per_minute=least)
            views.append(self._with_metrics(view, records.get(name)))
        return views

    def _with_metrics(self, view: ServiceView, record: CrawlRecord | None) -> ServiceView:
        """Add the stats that its project names as metrics; services without such names cost nothing."""
        if record is None or not record.metrics or not view.is_known:
            return view
        wanted = partial(is_named, patterns=record.metrics)
        own = self.part(view.name, lambda: sums(self._client, record.keys, self.now, wanted)) or {}
        return replace(view, metrics=record.metrics, process_stats=own)

    def _snapshots(self, names: list[str], records: Mapping[str, CrawlRecord]) -> dict[str, CrawlSnapshot | redis.ResponseError]:
        crawls = [(name, records[name].keys if name in records else CrawlKeys.for_spider(name)) for name in names]
        return snapshots(self._client, [(name, keys, records.get(name)) for name, keys in crawls])

    def _kept(self, views: list[ServiceView], crawlers: list[CrawlerRecord]) -> tuple[ServiceView, ...]:
        """Return the services of the fleet, and removed ones that have left something behind."""
        present = {*self._declared, *(one.spider for one in crawlers)}
        return tuple(one for one in views if one.name in present or one.leftovers or one.fault)

    def _shortages(
        self, services: tuple[ServiceView, ...], held: list[Held], crawlers: list[CrawlerRecord], nodes: list[NodeRecord]
    ) -> dict[str, str]:
        """Explain missing crawlers. Slots are read only if a service lacks crawlers: they cost three commands each."""
        stopped = {one.service for one in held if one.hold.word is HoldKind.STOP and not one.site}
        wanted = {} if "" in stopped else {one.name: one.desired or 0 for one in services if one.name not in stopped}
        if not any(one.up < wanted.get(one.name, 0) for one in services):
            return {}
        slots = self.part("slots", lambda: self._registry.slots(wanted, crawlers)) or []
        return shortages(wanted, slots, nodes, self.now)


def _or_raise(found: T | redis.ResponseError) -> T:
    if isinstance(found, redis.ResponseError):
        raise found
    return found
