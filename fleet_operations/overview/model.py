"""Dataclasses of the fleet and its sites at one moment: built by `reader`, shown by `trawl status`, the exporter, the page, the
demo. Times are epoch seconds by Redis's clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from redis_components.admin.health import Finding, Problem, RedisMemory
from redis_components.admin.inspector import CrawlSnapshot, total_of
from redis_components.admin.lanes import LaneView
from redis_components.frontier.holds import HoldKind
from redis_components.server.untrusted_values import Amount, Count
from workers.state.beats import BeatView
from workers.state.group_runs import GroupRun
from workers.state.holds import Breaker, Held, word_of
from workers.state.nodes import NodeRecord
from workers.state.quarantine import Foreign
from workers.state.registry import CrawlerRecord, ErrorRecord
from workers.state.rolls import Roll
from workers.state.services import Autoscaled

GONE = "gone"  # state of a crawler that should be alive and sent no heartbeat for 15 s


@dataclass(frozen=True, kw_only=True)
class ServiceView:
    """One service: a spider, its crawlers and its queues."""

    name: str
    desired: int | None  # crawlers that it should have; None: not set
    alive: int  # crawlers with a recent heartbeat
    up: int = 0  # alive crawlers that fill a slot, without crawlers started by hand
    state: str = ""  # `paused`, `draining` or `stopped`, if all of it is held
    pages_per_s: float  # of its crawlers together
    crawl: CrawlSnapshot
    fault: str = ""  # why its queues cannot be read; their figures are 0 then, and not valid
    metrics: Mapping[str, str] = field(default_factory=dict)  # patterns of its stats that are metrics
    process_stats: Mapping[str, float] = field(default_factory=dict)  # metrics set by single processes, summed
    spider: str = ""  # the one that it runs; "": that of its name
    max_waiting: int = 0  # start tasks from which on seeders are refused; 0: any number
    min_items_per_minute: float = 0.0  # items a minute below which there is an alert; 0: none
    items_of: str = ""  # another service with the same item stream that counts its items; "": itself

    @classmethod
    def of(
        cls,
        crawl: CrawlSnapshot,
        desired: int | None,
        crawlers: Iterable[CrawlerRecord],
        held: Iterable[Held],
        now: float,
        *,
        fault: str = "",
    ) -> ServiceView:
        """Build the view of this crawl's service from the records and holds of the whole fleet at `now`."""
        alive = [one for one in crawlers if one.spider == crawl.spider and one.alive(now)]
        word = word_of(crawl.spider, held)
        return cls(
            name=crawl.spider,
            desired=desired,
            alive=len(alive),
            up=sum(one.number is not None for one in alive),
            state=word.state if word else "",
            pages_per_s=round(sum(one.pages_per_s for one in alive), 1),
            crawl=crawl,
            fault=fault,
        )

    @property
    def pages(self) -> int:
        """Responses received since the stats began."""
        return total_of(self.crawl.stats, "downloader/response_count")

    @property
    def scraped(self) -> int:
        """Items scraped since the stats began."""
        return total_of(self.crawl.stats, "item_scraped_count")

    @property
    def items_waiting(self) -> int:
        """Items that wait for a consumer, each in the figure of one service."""
        return 0 if self.items_of else self.crawl.items

    @property
    def items_refused(self) -> int:
        """Items that their consumer refused, each in the figure of one service."""
        return 0 if self.items_of else self.crawl.bad_items

    @property
    def retried(self) -> int:
        """Requests that were sent again after an error."""
        return total_of(self.crawl.stats, "retry/count")

    def figures(self) -> dict[str, Any]:
        """Return its figures, as `trawl status --json` and the API have them."""
        crawl = self.crawl
        sizes = (
            *("start_tasks", "ready", "leased", "leased_tasks", "parked", "parked_tasks", "overflow", "backlog"),
            *("thread_records", "dead", "item_bytes", "reclaimed"),
        )
        return {
            "service": self.name,
            "desired": self.desired,
            "alive": self.alive,
            "state": self.state or None,
            "fault": self.fault or None,
            **{name: getattr(crawl, name) for name in sizes},
            "items_waiting": self.items_waiting,
            "bad_items": self.items_refused,
            "items_counted_for": self.items_of or None,
            "item_consumer": crawl.consumer or None,
            "items_limit": crawl.max_items or None,
            "items_limit_bytes": crawl.max_item_bytes or None,
            "items_backed_up": crawl.backed_up,
            "pages": self.pages,
            "pages_per_s": self.pages_per_s,
            "items": self.scraped,
            "retried": self.retried,
        }

    @property
    def labels(self) -> tuple[str, str]:
        """Its name and its spider, as metrics have them."""
        return self.name, self.spider or self.name

    @property
    def is_full(self) -> bool:
        """True if as many start tasks wait as may, so that seeders are refused."""
        return 0 < self.max_waiting <= self.crawl.start_tasks

    @property
    def is_known(self) -> bool:
        """True if the figures of its queues are valid."""
        return not self.fault

    @property
    def leftovers(self) -> bool:
        """True if Redis holds requests, items or dead letters of it."""
        return not self.idle or bool(self.items_refused or self.crawl.dead)

    @property
    def idle(self) -> bool:
        """True if no request or item is waiting or in flight."""
        crawl = self.crawl
        waiting = crawl.start_tasks + crawl.overflow + crawl.ready + crawl.parked + crawl.parked_tasks
        return not (waiting or crawl.leased or crawl.leased_tasks or self.items_waiting)


class SiteFault(NamedTuple):
    """Fault of a site besides an open breaker."""

    site: str
    word: str  # `wrong file` and the like
    sentence: str


class SiteSample(msgspec.Struct, frozen=True, array_like=True):
    """One site: what was stored of it since counting began, and the age of the last look at its stalest part (s)."""

    stored: Count = 0
    stale_s: Amount = 0.0


@dataclass(frozen=True, kw_only=True)
class SitesView:
    """Sites and hosts. An application extends it by what it knows of its sites (`Application.sites_reader`)."""

    breakers: Mapping[str, Breaker] = field(default_factory=dict)  # the open ones, by site
    lanes: tuple[LaneView, ...] = ()  # sites with limits, or that refused requests; a bounded number

    @property
    def faults(self) -> Sequence[SiteFault]:
        """Faults of its sites."""
        return ()

    @property
    def in_trouble(self) -> bool:
        """True if a breaker is open, or a site has a fault."""
        return bool(self.breakers or self.faults)

    @property
    def stored(self) -> int:
        """Number of stored items whose time of publication is known, since counting began."""
        return 0

    def samples(self, now: float) -> Mapping[str, SiteSample]:  # noqa: ARG002
        """Return the figures of its sites for the history, by site."""
        return {}

    def problems(self, view: Overview) -> Iterable[Problem]:  # noqa: ARG002
        """Return what needs attention at its sites, besides breakers and limits."""
        return ()

    def idle(self, view: Overview) -> str:  # noqa: ARG002
        """Return why a fleet without problems has nothing to do; "" if it has, or none is known."""
        return ""

    def details(self) -> Mapping[str, object]:
        """Return what `trawl status --json` shows of its sites, besides breakers and limits."""
        return {}


@dataclass(frozen=True, kw_only=True)
class Overview:
    """Everything at one moment. If Redis did not answer, `failure` has the error in one line and the rest is empty."""

    failure: str | None = None
    seconds: float = 0.0  # duration of the reading
    now: float = 0.0
    parts: tuple[str, ...] = ()  # parts that were read; each may fail alone
    unreadable: Mapping[str, str] = field(default_factory=dict)  # part -> why it is left out
    services: tuple[ServiceView, ...] = ()  # in the order of their work
    crawlers: tuple[CrawlerRecord, ...] = ()
    nodes: tuple[NodeRecord, ...] = ()
    shortages: Mapping[str, str] = field(default_factory=dict)  # service -> why it lacks crawlers, when nodes have no room
    held: tuple[Held, ...] = ()  # holds: paused, draining or stopped, the widest first
    roll: Roll | None = None  # the present or last one
    autoscaled: Mapping[str, Autoscaled] = field(default_factory=dict)  # services that size themselves
    beats: BeatView | None = None  # the process that sends scheduled tasks; None: could not be read
    runs: tuple[GroupRun, ...] = ()  # the newest run of each group
    sites: SitesView = field(default_factory=SitesView)
    errors: tuple[ErrorRecord, ...] = ()  # the last ones, newest first
    dead_messages: int | None = None  # of the broker, that no worker could read or run; None: could not be read
    memory: RedisMemory | None = None  # None: not read, as it is slow to find
    troubles: tuple[Problem, ...] = ()  # what single processes have reported: disks, clocks, databases, places of items
    without_consumer: tuple[str, ...] = ()  # services, or `books/files`, that declare a consumer of which none runs
    server: tuple[Finding, ...] = ()  # problems of the Redis server's configuration
    foreign: tuple[Foreign, ...] = ()  # records that cannot be read, and keys of another type, each left out

    @cached_property
    def known(self) -> tuple[ServiceView, ...]:
        """Services with valid figures."""
        return tuple(one for one in self.services if one.is_known)

    @cached_property
    def _spiders(self) -> dict[str, str]:
        return dict(one.labels for one in self.services)

    def spider_of(self, service: str) -> str:
        """Return the spider that a service runs."""
        return self._spiders.get(service, service)

    def service(self, name: str) -> ServiceView:
        """Return the service of that name. Raises StopIteration for an unknown one."""
        return next(one for one in self.services if one.name == name)

    def size_of(self, name: str) -> int | None:
        """Return the desired number of crawlers of a service; None for an unknown one."""
        return next((one.desired for one in self.services if one.name == name), None)

    @property
    def stopped(self) -> frozenset[str]:
        """Services that are stopped; `""` among them: the whole fleet."""
        return frozenset(one.service for one in self.held if one.hold.word is HoldKind.STOP and not one.site)

    def wanted(self, service: ServiceView) -> int:
        """Return the number of crawlers that a service should run."""
        return 0 if self.stopped & {"", service.name} else service.desired or 0


def shown_state(record: CrawlerRecord, now: float) -> str:
    """Return the last reported state of the crawler, or `gone` when it should be alive and is silent."""
    return GONE if record.state.has_process and not record.alive(now) else str(record.state)
