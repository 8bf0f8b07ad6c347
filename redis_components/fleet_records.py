"""What the fleet says about itself: frozen records, read from Redis by people, the exporter and the reconciler."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from enum import StrEnum

import msgspec

# A heartbeat comes every 2 s; after this long without one a crawler counts as gone.
GONE_AFTER_S = 15.0


class CrawlerState(StrEnum):
    """What a crawler, or the slot that it should fill, is doing."""

    STARTING = "starting"  # its process was launched and has not said anything yet
    RUNNING = "running"  # it crawls, or waits for requests
    STOPPING = "stopping"  # it was asked to stop and finishes its pages in flight
    BACKING_OFF = "backing-off"  # it died; its supervisor waits before the next start
    CRASH_LOOPING = "crash-looping"  # it died too often too fast; left alone for a while
    REFUSED = "refused"  # it cannot run as configured (unknown spider, bad option); left alone for a while
    STOPPED = "stopped"  # it ended, or was ended, and nobody supervises it

    @property
    def has_process(self) -> bool:
        """Whether there should be a crawler process behind it."""
        return self in (CrawlerState.STARTING, CrawlerState.RUNNING, CrawlerState.STOPPING)

    @property
    def given_up(self) -> bool:
        """Whether the slot is left empty on purpose, although it is desired."""
        return self in (CrawlerState.CRASH_LOOPING, CrawlerState.REFUSED)


@dataclass(frozen=True, kw_only=True)
class SlotStory:
    """What a slot has behind it. Part of each crawler's record; supervisors hand it on."""

    restarts: int = 0  # processes that filled this slot before it
    last_exit: str | None = None  # how the process before it ended; once it has ended itself: how that was
    quick_ends: int = 0  # ends within seconds of their start, in a row, before this process (`workers.restarts`)
    quick_failures: int = 0  # those of them that were failures
    config: str | None = None  # digest of what it was configured with (`workers.config_digest`)
    failed_configs: tuple[str, ...] = ()  # those with which this slot was given up since it last went well
    reload: str | None = None  # reason of the last order to reload that was obeyed


def slot_name(spider: str, number: int) -> str:
    """`forum_list/0`: the name of a slot, and its field in the hashes of the fleet."""
    return f"{spider}/{number}"


def parse_slot(name: str) -> tuple[str, int]:
    """`("forum_list", 0)` for `forum_list/0`. Raises ValueError for what names no slot."""
    spider, slash, number = name.rpartition("/")
    if not (spider and slash and number.isascii() and number.isdigit()):
        raise ValueError(f"{name!r} is no slot")
    return spider, int(number)


@dataclass(frozen=True, kw_only=True)
class CrawlerRecord(SlotStory):
    """The last that was heard of one crawler. Figures are of this process alone, since its start."""

    spider: str
    number: int | None = None  # its slot; None for one that was started by hand
    pid: int = 0
    node: str = ""  # the worker that supervises it (`celery@host`), or the host
    state: CrawlerState
    token: int | None = None  # its slot's fencing token
    started_at: float = 0.0  # epoch s
    beat_at: float = 0.0  # epoch s by Redis's clock, stamped there
    pages: int = 0  # responses received
    items: int = 0  # items scraped
    pages_per_s: float = 0.0  # over the last few heartbeats
    in_flight: int = 0  # requests being downloaded
    rss_bytes: int = 0  # resident memory
    lag_s: float = 0.0  # how long the reactor took to answer
    note: str | None = None  # why it is in this state, for people
    error: str | None = None  # given up: the line of its log that tells why
    log: str | None = None  # given up: the last lines of its log

    @property
    def name(self) -> str:
        """`forum_list/0`, or `forum_list/hand-4711`: its field in the hash and its name for people."""
        return f"{self.spider}/hand-{self.pid}" if self.number is None else slot_name(self.spider, self.number)

    @property
    def story(self) -> SlotStory:
        """What it says about its slot."""
        return SlotStory(**{field.name: getattr(self, field.name) for field in fields(SlotStory)})

    def may_work_with(self, config: str) -> bool:
        """Whether a slot that was given up has yet to be tried with this configuration."""
        return config != self.config and config not in self.failed_configs

    def alive(self, now: float) -> bool:
        """Whether a process was heard lately; `now` is Redis's time (`Registry.now`)."""
        return self.state.has_process and now - self.beat_at < GONE_AFTER_S

    def to_json(self) -> str:
        """One line; Redis stamps `beat_at` itself."""
        return msgspec.json.encode({k: v for k, v in asdict(self).items() if k != "beat_at"}).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> CrawlerRecord:
        """Read what `to_json` wrote, here or in a newer version: fields that are not known are left out.

        Raises ValueError for anything else.
        """
        return msgspec.json.decode(text, type=cls)


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A slot that this process holds, or held: the token tells."""

    spider: str
    number: int
    token: int
    owner: str  # who took it, for people

    @property
    def name(self) -> str:
        """`forum_list/0`: its field in the hashes of the fleet."""
        return slot_name(self.spider, self.number)


@dataclass(frozen=True, kw_only=True)
class SlotView:
    """One slot as others see it: what the reconciler decides on."""

    spider: str
    number: int
    token: int | None = None  # of its holder; None: nobody holds it
    owner: str | None = None
    launching_on: str | None = None  # the node that a launch is on its way to
    record: CrawlerRecord | None = None  # the last that was heard from it

    @property
    def name(self) -> str:
        """`forum_list/0`."""
        return slot_name(self.spider, self.number)


class OrderWord(StrEnum):
    """What the holder of a slot can be told."""

    RETIRE = "retire"  # stop gracefully and give the slot back: the fleet is smaller now, or the slot is stopped
    STOP = "stop"  # the same at once: pages in flight are not finished
    RELOAD = "reload"  # end the crawler gracefully and start a fresh process in the same slot; once for each reason


@dataclass(frozen=True, kw_only=True)
class Order:
    """An order for the holder of a slot; it reaches its supervisor with the next renewal."""

    word: OrderWord
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Renewal:
    """The answer to a heartbeat."""

    held: bool  # False: the slot belongs to somebody else now, this process has to go
    order: Order | None = None


@dataclass(frozen=True, kw_only=True)
class ErrorRecord:
    """One line of the fleet's error list."""

    at: float  # epoch s, Redis's clock: the last time it happened
    where: str
    what: str
    times: int = 1  # in a row, or nearly

    def __str__(self) -> str:
        """What happened, in one line, with how often."""
        return f"{' '.join(self.what.split())}{f' ({self.times} times)' if self.times > 1 else ''}"
