"""Crawler processes that have begun or ended, and members of runs that are over: on their way to the database, and as an
application has stored them.

    Runs(client).add(run)                       # a supervisor, a crawler without one, a task that crawls
    waiting = Runs(client).peek(200)            # the writer: read in place, store, then settle
    Runs(client).settle(waiting)

A run is added several times under one id, and may come twice: the database keeps its latest state. A run that the writer has
read stays here until it is stored, so a writer that dies loses nothing, and two at once do no harm.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import cast

import msgspec
import redis

from redis_components.server.untrusted_values import Count, Epoch, JsonRecord, decoded, server_time

from .group_runs import EndedMember, Member, Verdict
from .keys import MOST_WAITING, FleetKeys
from .registry import CrawlerRecord, Registry


class RunBy(StrEnum):
    """The kinds of processes that run a crawler."""

    FLEET = "fleet"  # a supervisor, in a slot
    HAND = "hand"  # a user: `python -m workers.crawler`, `trawl crawl-once`
    ONCE = "once"  # the task `crawl_once`, in a worker's own process


@dataclass(frozen=True, kw_only=True)
class Run(JsonRecord):
    """One crawler process, or one crawl of `crawl_once`, in its last reported state."""

    CUT = True

    id: str  # of a supervised one its frontier owner, `spider/number#token.n`
    spider: str
    by: RunBy
    number: int | None = None  # its slot
    token: int | None = None  # the slot's fencing token
    node: str = ""
    pid: Count
    started_at: Epoch  # epoch s, the node's clock
    ended_at: Epoch | None = None  # None: it goes on, or its end was not reported
    outcome: str | None = None  # kind of its end: `workers.process.exit_kinds`, of `crawl_once` also `timeout` and `cancelled`
    exit_code: int | None = None  # negative: a signal
    reason: str | None = None
    pages: Count = 0
    items: Count = 0
    peak_rss_bytes: Count = 0  # highest of its heartbeats; 0 for `crawl_once`, whose process is not its own


class Runs:
    """The runs that wait for the database, or what waits at another `key`. Methods raise `redis.RedisError` when Redis does not
    answer, and may be called again then.
    """

    def __init__(self, client: redis.Redis, key: str = "") -> None:
        self._client = client
        self._key = key or FleetKeys().runs()

    def add(self, run: Run) -> None:
        """Add the present state of a run."""
        with self._client.pipeline() as pipe:
            pipe.rpush(self._key, run.to_json())
            pipe.ltrim(self._key, -MOST_WAITING, -1)
            pipe.execute()

    def peek(self, n: int) -> list[bytes]:
        """Return the oldest `n` at most, as they were added, oldest first; they stay."""
        return cast("list[bytes]", self._client.lrange(self._key, 0, n - 1))

    def settle(self, stored: Sequence[bytes]) -> None:
        """Take out stored runs, as `peek` gave them."""
        with self._client.pipeline(transaction=False) as pipe:
            for one in stored:
                pipe.lrem(self._key, 1, cast("str", one))  # by value, and so safe to repeat; they are at the head
            pipe.execute()


DOUBT_S = 60.0  # a run without a heartbeat is marked as lost if it began this long ago
LOST = "lost"  # outcome of a run whose end was never reported
UNKNOWN = "unknown"
ONCE_LONGEST_S = 4000.0  # longer than Celery's time limit of `crawl_once`

logger = logging.getLogger(__name__)


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """State of a crawler process at `told_at`. Not an item: it comes from the fleet."""

    id: str
    spider: str
    by: str
    number: int | None
    token: int | None
    node: str
    pid: int
    started_at: datetime
    told_at: datetime
    ended_at: datetime | None
    outcome: str | None
    exit_code: int | None
    reason: str | None
    pages: int
    scraped: int
    peak_rss_bytes: int


class MemberRow(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a member of a run (`workers.state.group_runs`)."""

    run: str
    spider: str
    of_group: str
    verdict: str
    reason: str
    pages: int
    scraped: int
    errors: int
    seconds: float
    fields: str
    started_at: datetime
    ended_at: datetime


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Filter of runs by spider, slot, outcome and start; None: any."""

    spider: str | None = None
    number: int | None = None
    outcome: str | None = None
    since: datetime | None = None

    def fits(self, run: RunRow) -> bool:
        """Return True if a run matches."""
        equal = ((self.spider, run.spider), (self.number, run.number), (self.outcome, run.outcome))
        return all(value is None or value == own for value, own in equal) and (self.since is None or run.started_at >= self.since)


def latest(stored: Iterable[RunRow], client: redis.Redis | None, wanted: Wanted, limit: int) -> list[RunRow]:
    """Return the latest runs, the youngest first: those that are `stored`, and those that are on their way there.

    Running ones have the figures of their last heartbeat; without Redis, runs without an end are `unknown`. Raises
    `redis.RedisError`.
    """
    known = {run.id: run for run in stored}
    for run in rows_of(Runs(client).peek(MOST_WAITING)) if client else ():
        if run.id not in known or known[run.id].told_at <= run.told_at:
            known[run.id] = run
    fitting = sorted(filter(wanted.fits, known.values()), key=lambda run: (run.started_at, run.id), reverse=True)[:limit]
    if client is None:
        return [run if run.ended_at or run.outcome else msgspec.structs.replace(run, outcome=UNKNOWN) for run in fitting]
    crawlers, now = Registry(client).crawlers(), server_time(client)
    heard = {_process(one): one for one in crawlers}
    return [run if run.ended_at else _as_heard(run, heard.get(_process(run)), is_lost(run, crawlers, now)) for run in fitting]


def _process(one: CrawlerRecord | RunRow) -> tuple[object, ...]:
    return one.spider, one.number, one.token, one.pid


def _as_heard(run: RunRow, record: CrawlerRecord | None, lost: bool) -> RunRow:
    if lost or record is None or run.by == RunBy.ONCE:
        return msgspec.structs.replace(run, outcome=LOST if lost else None)
    peak = max(run.peak_rss_bytes, record.rss_bytes)
    return msgspec.structs.replace(run, pages=record.pages, scraped=record.items, peak_rss_bytes=peak)


def is_lost(run: RunRow, crawlers: Iterable[CrawlerRecord], now: float) -> bool:
    """Return True if a run without an end does not run any more: its node died without a report."""
    age_s = now - run.started_at.timestamp()
    if run.by == RunBy.ONCE:
        return age_s > ONCE_LONGEST_S
    heard = any(_process(one) == _process(run) and one.alive(now) for one in crawlers)
    return age_s > DOUBT_S and not heard


def to_row(run: Run) -> RunRow:
    """Convert a run to its row."""
    values = asdict(run)
    told_at = max(run.started_at, run.ended_at or 0.0)  # a clock may be set back
    values["scraped"] = values.pop("items")
    values |= {"by": str(run.by), "started_at": _moment(run.started_at), "told_at": _moment(told_at)}
    values["ended_at"] = None if run.ended_at is None else _moment(run.ended_at)
    values["reason"] = run.reason.replace("\0", "") if run.reason else None  # PostgreSQL has no text with NUL
    return RunRow(**values)


def rows_of(entries: Iterable[bytes]) -> list[RunRow]:
    """Convert reported runs, without what is none."""
    rows = []
    for text in entries:
        try:
            rows.append(to_row(Run.from_json(text)))
        except (ValueError, OverflowError, OSError) as error:  # not Trawl's, or an impossible time
            logger.warning("not a run, and not kept in the history: %.200r (%s)", text, error)
    return rows


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


LONGEST_NAME = 255


def member_rows(entries: Iterable[bytes]) -> list[MemberRow]:
    """Convert members that are over for the database, without what is none."""
    rows = []
    for text in entries:
        try:
            one = decoded(text, EndedMember)
            started_at, ended_at = (datetime.fromtimestamp(at, UTC) for at in (one.started_at, one.ended_at))
        except (ValueError, OverflowError, OSError):
            continue
        if max(map(len, (one.run, one.spider, one.group))) > LONGEST_NAME:  # as Trawl writes none, and MySQL stores none
            continue
        clean = {name: getattr(one, name).replace("\0", "") for name in ("run", "spider", "reason")}
        rows.append(
            MemberRow(
                **clean,
                of_group=one.group.replace("\0", ""),
                verdict=str(one.verdict),
                pages=one.pages,
                scraped=one.items,
                errors=one.errors,
                seconds=one.seconds,
                fields=msgspec.json.encode(one.fields).decode(),
                started_at=started_at,
                ended_at=ended_at,
            )
        )
    return rows


def of_row(row: MemberRow) -> Member:
    """Return a member as it was, but for its page and traceback."""
    return Member(
        spider=row.spider,
        verdict=Verdict(row.verdict),
        reason=row.reason,
        pages=row.pages,
        items=row.scraped,
        errors=row.errors,
        seconds=row.seconds,
        fields=decoded(row.fields, dict[str, float]),
        started_at=row.started_at.timestamp(),
        ended_at=row.ended_at.timestamp(),
    )
