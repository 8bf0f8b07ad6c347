"""Records of the fleet: frozen, read from Redis by people, the exporter and the reconciler."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum

from redis_components.server.names import is_name, is_slot_number
from redis_components.server.untrusted_values import Amount, Count, Epoch, JsonRecord

# A heartbeat comes every 2 s; after this long without one a crawler counts as gone.
GONE_AFTER_S = 15.0


class CrawlerState(StrEnum):
    """The state of a crawler, or of the slot that it should fill."""

    STARTING = "starting"  # its process was launched and has not reported yet
    RUNNING = "running"  # it crawls, or waits for requests
    STOPPING = "stopping"  # it was asked to stop and finishes its pages in flight
    BACKING_OFF = "backing-off"  # it died; its supervisor waits before the next start
    CRASH_LOOPING = "crash-looping"  # it died too often too fast; left alone for a while
    REFUSED = "refused"  # it cannot run as configured (unknown spider, bad option); left alone for a while
    STOPPED = "stopped"  # it ended, or was ended, and is not supervised

    @property
    def has_process(self) -> bool:
        """There should be a crawler process behind it."""
        return self in (CrawlerState.STARTING, CrawlerState.RUNNING, CrawlerState.STOPPING)

    @property
    def given_up(self) -> bool:
        """The slot is left empty on purpose, although it is desired."""
        return self in (CrawlerState.CRASH_LOOPING, CrawlerState.REFUSED)


@dataclass(frozen=True, kw_only=True)
class SlotStory:
    """The history of a slot. Part of each crawler's record; supervisors hand it on."""

    restarts: Count = 0  # processes that filled this slot before it
    last_exit: str | None = None  # how the process before it ended; once it has ended itself: how that was
    last_exit_at: Epoch = 0.0  # when that was (epoch s)
    last_exit_kind: str | None = None  # the kind of that end, a label of `workers.process.exit_kinds`
    quick_ends: Count = (
        0  # ends within seconds of their start, in a row, before this process (`workers.supervision.slot_history`)
    )
    quick_failures: Count = 0  # those of them that were failures
    reload: str | None = None  # reason of the last order to reload that was obeyed


def slot_name(spider: str, number: int) -> str:
    """Return the name of a slot, `forum_list/0`: its field in the hashes of the fleet."""
    return f"{spider}/{number}"


def parse_slot(name: str) -> tuple[str, int]:
    """Parse the name of a slot: `("forum_list", 0)` for `forum_list/0`. Raises ValueError."""
    spider, slash, number = name.rpartition("/")
    if not (spider and slash and number.isascii() and number.isdigit()):
        raise ValueError(f"{name!r} is not a slot")
    return spider, int(number)


@dataclass(frozen=True, kw_only=True)
class CrawlerRecord(JsonRecord, SlotStory):
    """The last report of one crawler. Figures are of this process alone, since its start."""

    CUT = True

    STAMPED = frozenset({"beat_at"})

    spider: str
    number: Count | None = None  # its slot; None for one that was started by hand
    pid: Count = 0
    node: str = ""  # the worker that supervises it (`celery@host`), or the host
    state: CrawlerState
    token: Count | None = None  # its slot's fencing token
    started_at: Epoch = 0.0  # epoch s
    beat_at: Epoch = 0.0  # epoch s by Redis's clock, stamped there
    pages: Count = 0  # responses received
    items: Count = 0  # items scraped
    answered: Count = 0  # responses other than HTTP errors
    raised: Count = 0  # exceptions of callbacks
    pages_per_s: Amount = 0.0  # over the last few heartbeats
    in_flight: Count = 0  # pages leased and begun, and not yet acked
    oldest_s: Amount = 0.0  # since the one of them that waits longest gave a sign of life
    oldest: str = ""  # what is awaited for it, and its URL
    rss_bytes: Count = 0  # resident memory
    lag_s: Amount = 0.0  # how long the reactor took to answer
    note: str | None = None  # why it is in this state, for people
    error: str | None = None  # given up: the line of its log with the cause
    log: str | None = None  # given up: the last lines of its log

    @property
    def name(self) -> str:
        """`forum_list/0`, or `forum_list/hand-4711`: its field in the hash and its name for people."""
        return f"{self.spider}/hand-{self.pid}" if self.number is None else slot_name(self.spider, self.number)

    @property
    def is_sound(self) -> bool:
        """There can be such a crawler: another process may have written the record."""
        if self.number is None:  # started by hand: of any spider
            return bool(self.spider) and self.spider.isprintable()
        return is_name(self.spider) and is_slot_number(self.number)

    @property
    def story(self) -> SlotStory:
        """The history of its slot."""
        return SlotStory(**{field.name: getattr(self, field.name) for field in fields(SlotStory)})

    def alive(self, now: float) -> bool:
        """Return True if a process sent a heartbeat lately; `now` is Redis's time (`Registry.now`)."""
        return self.state.has_process and now - self.beat_at < GONE_AFTER_S


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A slot that this process holds, or held, identified by its token."""

    spider: str
    number: int
    token: int
    owner: str  # the process that took it, for display

    @property
    def name(self) -> str:
        """`forum_list/0`: its field in the hashes of the fleet."""
        return slot_name(self.spider, self.number)


@dataclass(frozen=True, kw_only=True)
class SlotView:
    """One slot as others see it: what the reconciler decides on."""

    spider: str
    number: int
    token: int | None = None  # of its holder; None: it is free
    owner: str | None = None
    launching_on: str | None = None  # the node that a launch is on its way to
    record: CrawlerRecord | None = None  # its last report

    @property
    def name(self) -> str:
        """`forum_list/0`."""
        return slot_name(self.spider, self.number)


class SlotCommandKind(StrEnum):
    """The commands to the holder of a slot."""

    RETIRE = "retire"  # stop gracefully and give the slot back: the fleet is smaller now, or the slot is stopped
    STOP = "stop"  # the same at once: pages in flight are not finished
    RELOAD = "reload"  # end the crawler gracefully and start a fresh process in the same slot; once for each reason


@dataclass(frozen=True, kw_only=True)
class SlotCommand:
    """An order for the holder of a slot; it reaches its supervisor with the next renewal."""

    word: SlotCommandKind
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Renewal:
    """The answer to a heartbeat."""

    held: bool  # False: the slot belongs to another process now, this one has to go
    order: SlotCommand | None = None


@dataclass(frozen=True, kw_only=True)
class ErrorRecord:
    """One line of the fleet's error list."""

    at: Epoch  # epoch s, Redis's clock: the last time it happened
    where: str
    what: str
    times: Count = 1  # in a row, or nearly

    def __str__(self) -> str:
        """Return the error in one line, with its count."""
        return f"{' '.join(self.what.split())}{f' ({self.times} times)' if self.times > 1 else ''}"
