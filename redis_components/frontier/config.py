"""The configuration of a frontier, and the callbacks to its user."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from redis_components.errors import ConfigError, TrawlError
from redis_components.filters import Filter, PlainSet
from redis_components.keys import CrawlKeys

from .messages import QueueOrder, Reply, StatChange
from .outbox import Batch

MOST_ATTEMPTS = 255
"""They are kept in one byte of a request's member."""
MOST_ITEMS = 2**31
"""More than Redis could hold."""


@dataclass(frozen=True, kw_only=True)
class FrontierConfig:
    """The configuration of a frontier, read from Scrapy's settings by `config_of` in `redis_components/scrapy_glue/engine.py`.

    Raises ConfigError for values with which a crawl would stand still or set aside sound requests.
    """

    keys: CrawlKeys
    owner: str
    """Name of this process's leases; after each fencing `~` and a number are added."""
    ends_on_lasting_errors: bool = False
    """A first exchange with an answer that cannot pass (`transport.lasting`) is reported as refused; else it is tried again."""
    next_keys: CrawlKeys | None = None
    """Keys of the service that gets this spider's `NextTask`s; None: it feeds no other service."""
    turn_by: str = ""
    """Field of a start task (JSON) whose values take turns, as `site`; "": start tasks are taken as they come."""
    newest_fields: tuple[str, ...] = ()
    """Fields of a start task (JSON) that another service makes: where a wider one that waits is kept, those that it gets from the
    newer one.
    """
    most_fed: int = 10_000
    """Start tasks that another service makes and that may wait, for each value of `turn_by`; further ones stay in the overflow
    until there is capacity.
    """
    order: QueueOrder = QueueOrder.PRIORITY
    filter: Filter = field(default_factory=PlainSet)
    """Dupefilter that new requests pass."""
    quota: str = ""
    """Lane whose limits count each request of this crawl, in addition to those of its site; "": none."""
    concurrency: int = 16
    """Requests the engine works on at once; the smallest prefetch."""
    max_prefetch: int = 1000
    """Most requests leased and not yet started."""
    max_attempts: int = 5
    """Attempts, each ended by a death of its crawler or by `max_page_age_s`, with which a request or start task is given up."""
    max_page_age_s: float = 1800.0
    """A page that was at work for longer without a sign of life is given back with an attempt counted; 0: never."""
    ttl_s: float = 8.0
    """A process that was silent for this time counts as dead."""
    interval_s: float = 0.02
    """Between two exchanges of a process that has enough to do."""
    slowest_poll_s: float = 0.15
    """Between two exchanges of a process that has had nothing to do for a few seconds (`demand.REST`: after longer)."""
    batch: int = 2000
    """Most entries in one exchange; it bounds the script's time."""
    max_batch_bytes: int = 4 * 1024 * 1024
    """Most bytes of payload in one exchange, unless a single entry has more."""
    max_outbox: int = 20_000
    """Entries waiting for Redis from which on no new page is started."""
    journal_s: float = 5.0
    """Time for which answered writes are kept, to be replayed when Redis comes back with an older state."""
    fsync_window_s: float = 1.5
    """Time for which a process stays after its last write, where Redis has an append-only file or replicas: a Redis that crashes
    loses its last moments, and a process that has left cannot write them again. 0: do not stay.
    """

    max_items: int = 0
    """Items of this crawl, waiting and refused, from which on no new page is started; 0: any number."""
    max_item_mb: int = 0
    """The same by the MiB of memory that they take in Redis; 0: any."""

    def __post_init__(self) -> None:
        for setting, value, lowest, highest in (
            ("CONCURRENT_REQUESTS", self.concurrency, 1, math.inf),
            ("SCHEDULER_MAX_PREFETCH", self.max_prefetch, 1, math.inf),
            ("SCHEDULER_MAX_FED_TASKS", self.most_fed, 1, 1_000_000_000),
            ("SCHEDULER_MAX_ATTEMPTS", self.max_attempts, 1, MOST_ATTEMPTS),
            ("SCHEDULER_MAX_PAGE_AGE", self.max_page_age_s, 0, math.inf),
            ("SCHEDULER_OWNER_TTL", self.ttl_s, 0.1, 86_400),
            ("SCHEDULER_FSYNC_WINDOW", self.fsync_window_s, 0, 60),
            ("REDIS_ITEMS_MAX_WAITING", self.max_items, 0, MOST_ITEMS),
            ("REDIS_ITEMS_MAX_MB", self.max_item_mb, 0, MOST_ITEMS),
        ):
            if not lowest <= value <= highest:
                raise ConfigError(f"{setting} = {value} is out of range: from {lowest:g} to {highest:g}")

    @property
    def ttl_ms(self) -> int:
        """`ttl_s` for the scripts."""
        return int(self.ttl_s * 1000)

    @property
    def max_item_bytes(self) -> int:
        """`max_item_mb` for the scripts."""
        return self.max_item_mb << 20

    @property
    def suspect_from(self) -> int:
        """Attempts from which on a request is tried apart from its like, so that a deadly page takes no neighbour with it."""
        return max(1, min(2, self.max_attempts - 1))

    @property
    def beat_s(self) -> float:
        """Longest silence of a live process."""
        return self.ttl_s / 4


@dataclass(kw_only=True, slots=True)
class Listeners:
    """Callbacks of the frontier to its user; all called in the owning thread."""

    work: Callable[[], None] = lambda: None
    """Leases arrived, or the frontier became idle, or it takes work again after an outage."""
    tasks: Callable[[], None] = lambda: None
    """Start tasks arrived, or the frontier became idle."""
    duplicate: Callable[[bytes], None] = lambda payload: None
    """Redis knew this request already."""
    applied: list[Callable[[Batch, Reply], None]] = field(default_factory=list)
    """An exchange was applied: its message, and its answer. These must not raise."""
    names: Callable[[bytes], Iterator[str]] = lambda payload: iter(())
    """The names by which a leased request can be held (`holds.names_of`); none for what cannot be read."""
    room: Callable[[], dict[str, int]] = dict
    """Number of further requests wanted of sites that this process works on."""
    places: Callable[[], float] = lambda: math.inf
    """Number of requests that would be begun at once."""
    limits: Callable[[], None] = lambda: None
    """The limits of lanes have changed, or a site asks to be left alone."""
    fenced: Callable[[], None] = lambda: None
    """All leases are lost; what runs may finish, but it is not ours to settle."""
    refused: Callable[[TrawlError], None] = lambda error: None
    """This process must not go on (another layout version, another dupefilter)."""
    stats: Callable[[bool], list[StatChange]] = lambda final: []
    """Changes of the stats since the last call; all of them when this process leaves."""
    left: Callable[[], None] = lambda: None
    """This process has left."""
