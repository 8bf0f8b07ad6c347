"""One look at Redis: everything that the exporter and the status page show, of one moment, in a bounded number of round trips."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import redis

from redis_components.beats import Beats, BeatView
from redis_components.breakers import Breaker, Breakers, drifted
from redis_components.connection import connect, explain
from redis_components.fleet_holds import FleetHolds, Held
from redis_components.forum_states import ForumStates, WatchedForum
from redis_components.inspector import CrawlSnapshot, snapshot
from redis_components.nodes import NodeRecord, Nodes
from redis_components.redis_url import impatient, masked
from redis_components.registry import CrawlerRecord, ErrorRecord, Registry
from redis_components.rolls import Roll, RollNote
from redis_components.spending import Ledger, Spent

ERRORS_SHOWN = 10
ANSWER_S = 3  # longest wait for Redis; Prometheus waits 10 s for the whole scrape

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What Redis said. Where it did not answer, `failure` says why in one line and all else is empty: nothing stale is kept."""

    services: tuple[str, ...] = ()  # those that were looked at
    failure: str | None = None
    seconds: float = 0.0  # how long the look took
    now: float = 0.0  # Redis's clock, epoch s
    crawls: tuple[CrawlSnapshot, ...] = ()
    crawlers: tuple[CrawlerRecord, ...] = ()
    desired: Mapping[str, int] = field(default_factory=dict)  # service -> crawlers
    nodes: tuple[NodeRecord, ...] = ()
    roll: Roll | None = None  # the present or last one
    held: tuple[Held, ...] = ()  # what is paused, draining or stopped, the widest first
    breakers: Mapping[str, Breaker] = field(default_factory=dict)  # the open ones, by site
    drifts: Mapping[tuple[str, str, str], tuple[float, float]] = field(default_factory=dict)  # as `drifted` has them
    errors: tuple[ErrorRecord, ...] = ()  # newest first
    forums: tuple[WatchedForum, ...] = ()  # by id
    spent: Mapping[str, Spent] = field(default_factory=dict)  # site -> requests of the last hour
    budgets: Mapping[str, float] = field(default_factory=dict)  # site -> requests an hour that it may be sent
    beats: BeatView | None = None  # who sends what is scheduled; None: could not be read
    unreadable: Mapping[str, str] = field(default_factory=dict)  # part (a service or "fleet") -> why it is left out

    @property
    def stale(self) -> list[WatchedForum]:
        """Forums that are overdue although nobody holds their site, the most overdue first."""
        held = {one.site for one in self.held}
        if "" in {one.site for one in self.held if not one.service}:  # all of the fleet
            return []
        found = [one for one in self.forums if one.site not in held and one.is_stale(self.now)]
        return sorted(found, key=lambda one: one.due_at)

    @property
    def parts(self) -> tuple[str, ...]:
        """What can be unreadable by itself."""
        return (*self.services, "fleet")


class Source:
    """Looks at the Redis at `url`. `services` are the spiders to look at, each with its size until somebody scales it, if known.

    Raises ConfigError for a URL of another form; nothing is sent before the first look.
    """

    def __init__(self, url: str, services: Mapping[str, int | None]) -> None:
        self._url = url
        self._services = dict(services)
        self._client = connect(impatient(url, ANSWER_S))
        self._registry = Registry(self._client)

    @property
    def name(self) -> str:
        """The URL without its password."""
        return masked(self._url)

    def check(self) -> str | None:
        """Why Redis cannot be used, in one line; None when it answers."""
        try:
            self._registry.now()
        except (redis.RedisError, OSError) as error:
            return self._explain(error)
        return None

    def look(self) -> Reading:
        """Read everything. Never raises because of Redis: see `Reading.failure` and `Reading.unreadable`."""
        started = time.monotonic()
        services = tuple(self._services)
        try:
            reading = self._read(services, started)
        except (redis.RedisError, OSError) as error:
            return Reading(services=services, failure=self._explain(error), seconds=time.monotonic() - started)
        return reading

    def _read(self, services: tuple[str, ...], started: float) -> Reading:
        unreadable: dict[str, str] = {}

        def part(name: str, read: Callable[[], T]) -> T | None:
            try:
                return read()
            except (redis.ResponseError, ValueError, TypeError, KeyError) as error:
                # A key of another type, or a value that somebody else wrote: the rest is shown all the same.
                unreadable[name] = " ".join(f"{type(error).__name__}: {error}".split())
                return None

        now = self._registry.now()
        crawls = [part(service, partial(snapshot, self._client, service)) for service in services]
        crawlers, scaled, errors = part("fleet", self._fleet) or ([], {}, [])
        nodes = part("fleet", Nodes(self._client).all) or []
        roll = part("fleet", RollNote(self._client).read)
        held = part("fleet", lambda: FleetHolds(self._client).all(services)) or []
        breakers = part("fleet", Breakers(self._client).open_ones) or {}
        drifts = part("fleet", partial(drifted, self._client)) or {}
        beats = part("fleet", lambda: Beats(self._client).look(now))
        forums = part("fleet", ForumStates(self._client).watched) or []
        sites = sorted({one.site for one in forums})
        spent = part("fleet", lambda: Ledger(self._client).spent(sites, now)) or {}
        budgets = part("fleet", lambda: Ledger(self._client).budgets(sites)) or {}
        known = {service: size for service, size in self._services.items() if size is not None}
        return Reading(
            services=services,
            seconds=time.monotonic() - started,
            now=now,
            crawls=tuple(crawl for crawl in crawls if crawl is not None),
            crawlers=tuple(crawlers),
            desired={} if "fleet" in unreadable else {**known, **scaled},
            errors=tuple(errors),
            nodes=tuple(nodes),
            roll=roll,
            held=tuple(held),
            breakers=breakers,
            drifts=drifts,
            beats=beats,
            forums=tuple(forums),
            spent=spent,
            budgets=budgets,
            unreadable=unreadable,
        )

    def _fleet(self) -> tuple[list[CrawlerRecord], dict[str, int], list[ErrorRecord]]:
        return self._registry.crawlers(), self._registry.desired(), self._registry.errors(ERRORS_SHOWN)

    def _explain(self, error: Exception) -> str:
        return str(explain(error, self._url))
