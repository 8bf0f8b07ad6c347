"""The fleet and its sites at one moment, as dataclasses: read by `reader`, shown by `trawl status`, the exporter, the page, the
demo. Times are epoch seconds by Redis's clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from forums.state.foreign_values import Foreign
from forums.state.publication_delays import DelayHistogram
from forums.state.request_ledger import Spent
from forums.state.site_breakers import Breaker
from forums.state.writer_figures import WriterFigures
from redis_components.crawl_admin.group_states import GroupState
from redis_components.crawl_admin.inspector import CrawlSnapshot, total_of
from redis_components.crawl_admin.lanes import LaneView
from redis_components.crawl_admin.memory import RedisMemory
from redis_components.fleet.autoscaling import Autoscaled
from redis_components.fleet.beats import BeatView
from redis_components.fleet.holds import Held, word_of
from redis_components.fleet.nodes import NodeRecord
from redis_components.fleet.registry import CrawlerRecord, ErrorRecord
from redis_components.fleet.rolls import Roll
from redis_components.frontier.holds import HoldKind
from redis_components.server.health import Finding

from .boards import Boards, BoardView, fails

GONE = "gone"  # state of a crawler that should be alive and was not heard for 15 s
Drifts = Mapping[tuple[str, str, str], tuple[float, float]]
"""(site, kind of page, figure) -> what it is now, and usually (`forums.state.site_breakers.drifted`)."""


@dataclass(frozen=True, kw_only=True)
class ServiceView:
    """One service: a spider, its crawlers and its queues."""

    name: str
    desired: int | None  # crawlers that it should have; None: nobody has said
    alive: int  # crawlers that were heard lately
    up: int = 0  # those of them that fill a slot: not those that were started by hand
    state: str = ""  # `paused`, `draining` or `stopped`, where all of it is held
    pages_per_s: float  # of its crawlers together
    crawl: CrawlSnapshot
    fault: str = ""  # why its queues cannot be read; their figures are 0 then, and mean nothing
    metrics: Mapping[str, str] = field(default_factory=dict)  # its stats that are metrics, by pattern: `counter`, `gauge`
    process_stats: Mapping[str, float] = field(default_factory=dict)  # of those: what single processes have set, summed
    groups: tuple[GroupState, ...] = ()  # of its item stream, a bounded number, by name
    items_of: str = ""  # the service with the same item stream that its items are counted for; "": itself

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
        """The service of this crawl, of the records and holds of the whole fleet at `now`."""
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

    @property
    def is_known(self) -> bool:
        """Whether the figures of its queues say something: not where they cannot be read, or lie in another Redis."""
        return not (self.fault or self.crawl.redis)

    @property
    def is_short(self) -> bool:
        """Whether it has fewer crawlers than it should have."""
        return self.alive < (self.desired or 0)

    @property
    def leftovers(self) -> bool:
        """Something of it is in Redis that waits for somebody."""
        return not self.idle or bool(self.items_refused or self.crawl.dead)

    @property
    def idle(self) -> bool:
        """Nothing waits, nothing is being worked on, nothing is on its way to the database."""
        crawl = self.crawl
        waiting = crawl.start_tasks + crawl.overflow + crawl.ready + crawl.parked + crawl.parked_tasks
        return not (waiting or crawl.leased or crawl.leased_tasks or self.items_waiting)


class BoardTally(NamedTuple):
    """Of one site."""

    boards: int
    with_gap: int
    failing: int


@dataclass(frozen=True, kw_only=True)
class SitesView:
    """The sites: their breakers, what has drifted, their files, their boards and their budgets."""

    breakers: Mapping[str, Breaker] = field(default_factory=dict)  # the open ones, by site
    drifts: Drifts = field(default_factory=dict)
    wrong_files: Mapping[str, str] = field(default_factory=dict)  # what is wrong with them, by site
    boards: Boards = field(default_factory=lambda: Boards((), 0.0))  # by id
    spent: Mapping[str, Spent] = field(default_factory=dict)  # site -> requests of the last hour
    budgets: Mapping[str, float] = field(default_factory=dict)  # site -> requests an hour that it may be sent
    delays: Mapping[str, DelayHistogram] = field(default_factory=dict)  # site -> from publication to the database
    writer: WriterFigures = field(default_factory=WriterFigures)
    writer_lag_s: float | None = None  # since the oldest item that waits for the forum writer was fetched; None: not known
    lanes: tuple[LaneView, ...] = ()  # sites with limits, or that refused requests; a bounded number, those of site files first

    @property
    def in_trouble(self) -> bool:
        """Whether a breaker is open, a page has drifted or a file is wrong."""
        return bool(self.breakers or self.drifts or self.wrong_files)

    @cached_property
    def stale(self) -> tuple[BoardView, ...]:
        """Boards that are overdue although nobody holds their site, the most overdue first."""
        return tuple(sorted(self.boards.stale(), key=lambda one: one.watched.due_at))

    @cached_property
    def tallies(self) -> Mapping[str, BoardTally]:
        """How many boards each site that is watched has, and how many are not well."""
        ill = self.boards.ill
        gaps = Counter(one.site for one in ill if one.state.gap_at is not None)
        failing = Counter(one.site for one in ill if fails(one))
        boards = self.boards.by_site
        return {site: BoardTally(boards[site], gaps[site], failing[site]) for site in sorted(boards)}

    @property
    def names(self) -> tuple[str, ...]:
        """The sites that are watched."""
        return tuple(self.tallies)


@dataclass(frozen=True, kw_only=True)
class Overview:
    """Everything at one moment. Where Redis did not answer, `failure` says why in one line and all else is empty."""

    failure: str | None = None
    seconds: float = 0.0  # how long reading took
    now: float = 0.0
    parts: tuple[str, ...] = ()  # what was read; each can fail while the others do not
    unreadable: Mapping[str, str] = field(default_factory=dict)  # part -> why it is left out
    services: tuple[ServiceView, ...] = ()  # in the order of their work
    crawlers: tuple[CrawlerRecord, ...] = ()
    nodes: tuple[NodeRecord, ...] = ()
    shortages: Mapping[str, str] = field(default_factory=dict)  # service -> why it lacks crawlers, when nodes have no room
    held: tuple[Held, ...] = ()  # what is paused, draining or stopped, the widest first
    roll: Roll | None = None  # the present or last one
    autoscaled: Mapping[str, Autoscaled] = field(default_factory=dict)  # services that size themselves
    beats: BeatView | None = None  # who sends what is scheduled; None: could not be read
    sites: SitesView = field(default_factory=SitesView)
    errors: tuple[ErrorRecord, ...] = ()  # the last ones, newest first
    dead_messages: int | None = None  # of the broker, that no worker could read or run; None: could not be read
    output_troubles: Mapping[str, str] = field(default_factory=dict)  # output of events -> what is wrong with it
    another_database: bool = False  # than the one whose threads are remembered
    refused_database: str | None = None  # of a writer that has another one than the fleet
    memory: RedisMemory | None = None  # None: not read, as it is slow to find
    server: tuple[Finding, ...] = ()  # what is wrong with how Redis keeps what it is given
    foreign: tuple[Foreign, ...] = ()  # records that cannot be read, and keys of another type, each left out

    @cached_property
    def known(self) -> tuple[ServiceView, ...]:
        """The services whose figures say something."""
        return tuple(one for one in self.services if one.is_known)

    def service(self, name: str) -> ServiceView:
        """The service of that name. Raises StopIteration for another one."""
        return next(one for one in self.services if one.name == name)

    def size_of(self, name: str) -> int | None:
        """Crawlers that a service should have; None for one that is not known."""
        return next((one.desired for one in self.services if one.name == name), None)

    @property
    def stopped(self) -> frozenset[str]:
        """Services that are stopped as a whole; `""` among them: the fleet is."""
        return frozenset(one.service for one in self.held if one.hold.word is HoldKind.STOP and one.slot is None and not one.site)

    def wanted(self, service: ServiceView) -> int:
        """How many crawlers of a service shall be there: those that nobody has stopped."""
        if self.stopped & {"", service.name}:
            return 0
        slots = {one.slot for one in self.held if one.service == service.name and one.slot is not None}
        return sum(number not in slots for number in range(service.desired or 0))


def shown_state(record: CrawlerRecord, now: float) -> str:
    """What the crawler last said, or `gone` when it should be there and is silent."""
    return GONE if record.state.has_process and not record.alive(now) else str(record.state)
