"""The whole fleet at one moment, read from Redis: what `trawl status` and the demo show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import redis

from redis_components.autoscaling import Autoscaled, Autoscaling
from redis_components.beats import Beats, BeatView
from redis_components.database_note import DatabaseNote
from redis_components.fleet_holds import FleetHolds, Held, word_of
from redis_components.inspector import CrawlSnapshot, snapshot
from redis_components.nodes import NodeRecord, Nodes, shortages
from redis_components.registry import CrawlerRecord, ErrorRecord, Registry
from redis_components.rolls import Roll, RollNote
from workers import holding
from workers.fleet import desired_fleet
from workers.holding import stopped_slots

from .autoscale import autoscaled_json
from .breaker_view import SitesView, look_at_sites, sites_json
from .held_view import held_json
from .nodes import node_json
from .output import iso
from .roll import roll_json

ERRORS_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class ServiceView:
    """One service: a spider, its crawlers and its queues."""

    name: str
    desired: int
    alive: int  # crawlers that were heard lately
    state: str = ""  # `paused`, `draining` or `stopped`, where all of it is held
    pages_per_s: float  # of those together
    crawl: CrawlSnapshot

    @property
    def pages(self) -> int:
        """Responses received since the stats began."""
        return self._stat("downloader/response_count")

    @property
    def scraped(self) -> int:
        """Items scraped since the stats began."""
        return self._stat("item_scraped_count")

    @property
    def retried(self) -> int:
        """Requests that were sent again after an error."""
        return self._stat("retry/count")

    def _stat(self, name: str) -> int:
        return int(float(self.crawl.stats.get(name, 0)))

    @property
    def idle(self) -> bool:
        """Nothing waits, nothing is being worked on, nothing is on its way to the database."""
        crawl = self.crawl
        waiting = crawl.start_tasks + crawl.ready + crawl.parked + crawl.parked_tasks
        return not (waiting or crawl.leased or crawl.leased_tasks or crawl.items)


@dataclass(frozen=True, kw_only=True)
class FleetView:
    """All services, crawlers and the last errors; `now` is Redis's time in epoch seconds."""

    now: float
    services: tuple[ServiceView, ...]
    crawlers: tuple[CrawlerRecord, ...]
    errors: tuple[ErrorRecord, ...]
    beats: BeatView  # who sends what is scheduled
    nodes: tuple[NodeRecord, ...] = ()
    held: tuple[Held, ...] = ()  # what is paused, draining or stopped, the widest first
    shortages: Mapping[str, str] = field(default_factory=dict)  # service -> why it lacks crawlers, when nodes have no room
    roll: Roll | None = None  # the present or last one
    autoscaled: Mapping[str, Autoscaled] = field(default_factory=dict)  # services that size themselves
    sites: SitesView = field(default_factory=SitesView)  # open breakers, and what has drifted

    another_database: bool = False  # than the one whose threads are remembered

    def service(self, name: str) -> ServiceView:
        return next(one for one in self.services if one.name == name)

    def size_of(self, name: str) -> int | None:
        """Crawlers that a service should have; None for one that is not known."""
        return next((one.desired for one in self.services if one.name == name), None)

    def to_json(self) -> dict[str, Any]:
        """For `trawl status --json`: names as in the tables, times in ISO 8601."""
        return {
            "at": iso(self.now),
            "held": [held_json(one) for one in self.held],
            "sites": sites_json(self.sites),
            "another_database": self.another_database,
            "services": [_service_json(one) for one in self.services],
            "beat": {**asdict(self.beats), "stalled": self.beats.stalled},
            "crawlers": [_crawler_json(one, self.now) for one in self.crawlers],
            "nodes": [node_json(one, self.now) for one in self.nodes],
            "no_room": dict(self.shortages),
            "roll": roll_json(self.roll) if self.roll else None,
            "autoscaled": [autoscaled_json(name, one, self.size_of(name)) for name, one in self.autoscaled.items()],
            "errors": [{"at": iso(one.at), "where": one.where, "what": one.what, "times": one.times} for one in self.errors],
        }


def look(client: redis.Redis) -> FleetView:
    """Read everything; a few round trips for each service. Raises ConfigError for a wrong TRAWL_FLEET, `redis.RedisError`."""
    registry = Registry(client)
    desired, crawlers, now = desired_fleet(registry), registry.crawlers(), registry.now()
    nodes, held = Nodes(client).all(), holding.overview(client)
    stopped = stopped_slots(FleetHolds(client).fields(), desired)
    wanted = {service: size for service, size in desired.items() if not any(place[0] == service for place in stopped)}
    names = sorted({*desired, *(one.spider for one in crawlers)}, key=_in_order_of_work)
    return FleetView(
        now=now,
        services=tuple(
            _service(name, desired.get(name, 0), [one for one in crawlers if one.spider == name and one.alive(now)], client, held)
            for name in names
        ),
        crawlers=tuple(crawlers),
        errors=tuple(registry.errors(ERRORS_SHOWN)),
        nodes=tuple(nodes),
        held=tuple(held),
        shortages=shortages(wanted, registry.slots(desired, crawlers), nodes, now),
        roll=RollNote(client).read(),
        autoscaled=Autoscaling(client).all(),
        sites=look_at_sites(client),
        another_database=DatabaseNote(client).is_another(),
        beats=Beats(client).look(now),
    )


def _service(name: str, desired: int, alive: list[CrawlerRecord], client: redis.Redis, held: list[Held]) -> ServiceView:
    word = word_of(name, held)
    return ServiceView(
        name=name,
        desired=desired,
        alive=len(alive),
        state=word.state if word else "",
        pages_per_s=round(sum(one.pages_per_s for one in alive), 1),
        crawl=snapshot(client, name),
    )


def _in_order_of_work(name: str) -> tuple[bool, str]:
    return name != "forum_list", name  # the list service feeds the others


def _service_json(view: ServiceView) -> dict[str, Any]:
    crawl = view.crawl
    return {
        "service": view.name,
        "desired": view.desired,
        "alive": view.alive,
        "state": view.state or None,
        "start_tasks": crawl.start_tasks,
        "ready": crawl.ready,
        "leased": crawl.leased,
        "leased_tasks": crawl.leased_tasks,
        "parked": crawl.parked,
        "parked_tasks": crawl.parked_tasks,
        "backlog": crawl.backlog,
        "thread_records": crawl.thread_records,
        "dead": crawl.dead,
        "items_waiting": crawl.items,
        "bad_items": crawl.bad_items,
        "pages": view.pages,
        "pages_per_s": view.pages_per_s,
        "items": view.scraped,
        "retried": view.retried,
        "reclaimed": crawl.reclaimed,
    }


def _crawler_json(record: CrawlerRecord, now: float) -> dict[str, Any]:
    fields = asdict(record)
    beat_at, started_at = fields.pop("beat_at"), fields.pop("started_at")
    return {
        "crawler": record.name,
        "alive": record.alive(now),
        **fields,
        "started_at": iso(started_at) if started_at else None,
        "heartbeat_age_s": round(now - beat_at, 1),
    }
