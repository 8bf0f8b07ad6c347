"""The history of crawler processes: from Redis into the database, and what became of those whose end nobody has told."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime

import msgspec
import redis

from forums.storage import Database, RunHistory, RunRow, Wanted
from forums.storage.fleet_events import LOST
from redis_components.fleet.registry import CrawlerRecord, Registry
from redis_components.fleet.runs import MOST_WAITING, Run, RunBy, Runs
from redis_components.server.replies import server_time
from workers.process.run_recorder import history_days

BATCH = 200
MOST_BATCHES = 2 * MOST_WAITING // BATCH  # in a round: somebody may add more than is kept
LOOK_AGAIN_S = 30.0  # between two looks at the runs without an end
DOUBT_S = 60.0  # a run that is not heard of is taken for lost when it began that long ago
UNKNOWN = "unknown"
ONCE_LONGEST_S = 4000.0  # `crawl_once` is ended by Celery before

_looked_at: dict[str, float] = {}  # by database, of this process

logger = logging.getLogger(__name__)


def store_runs(client: redis.Redis, database: Database) -> int:
    """Move what was told of runs into the (open) database; now and then look for lost ones and drop old ones.

    Returns how many states were stored. Raises StorageError and `redis.RedisError`; nothing is lost then.
    """
    history, runs = RunHistory(database), Runs(client)
    due = time.monotonic() - _looked_at.get(database.name, -LOOK_AGAIN_S) >= LOOK_AGAIN_S
    stored = 0
    for _ in range(MOST_BATCHES):
        if not (told := runs.peek(BATCH)):
            break
        rows = _rows(told)
        for refused in history.write(rows):
            logger.warning("the run %s is not in the history: %s", rows[refused.place].id, refused.reason)
        runs.settle(told)
        stored += len(rows)
    if due:
        look_for_lost(history, Registry(client).crawlers(), server_time(client))
        history.prune(datetime.now(UTC), history_days())
        _looked_at[database.name] = time.monotonic()
    return stored


def latest(database: Database | None, client: redis.Redis | None, wanted: Wanted, limit: int) -> list[RunRow]:
    """The latest runs, the youngest first: those in the (open) database, and those that are on their way to it.

    Those that go on have the figures of their last heartbeat; without a Redis to ask, what has no end is `unknown`. Raises
    StorageError, `redis.RedisError`.
    """
    known = {run.id: run for run in RunHistory(database).latest(wanted, limit)} if database else {}
    for run in _rows(Runs(client).peek(MOST_WAITING)) if client else ():
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


def look_for_lost(history: RunHistory, crawlers: Iterable[CrawlerRecord], now: float) -> None:
    """Compare the runs without an end with the crawlers that are heard; `now` is Redis's time."""
    open_runs, crawlers = history.without_end(), list(crawlers)
    gone = {run.id for run in open_runs if is_lost(run, crawlers, now)}
    history.mark({run.id for run in open_runs if run.id in gone and run.outcome is None}, LOST)
    history.mark({run.id for run in open_runs if run.id not in gone and run.outcome == LOST}, None)


def is_lost(run: RunRow, crawlers: Iterable[CrawlerRecord], now: float) -> bool:
    """Whether a run without an end goes on nowhere: its node died, and nobody was left to tell."""
    age_s = now - run.started_at.timestamp()
    if run.by == RunBy.ONCE:
        return age_s > ONCE_LONGEST_S
    heard = any(_process(one) == _process(run) and one.alive(now) for one in crawlers)
    return age_s > DOUBT_S and not heard


def to_row(run: Run) -> RunRow:
    """As it is stored."""
    values = asdict(run)
    told_at = max(run.started_at, run.ended_at or 0.0)  # a clock may be set back
    values["scraped"] = values.pop("items")
    values |= {"by": str(run.by), "started_at": _moment(run.started_at), "told_at": _moment(told_at)}
    values["ended_at"] = None if run.ended_at is None else _moment(run.ended_at)
    values["reason"] = run.reason.replace("\0", "") if run.reason else None  # PostgreSQL has no text with NUL
    return RunRow(**values)


def _rows(told: Iterable[bytes]) -> list[RunRow]:
    rows = []
    for text in told:
        try:
            rows.append(to_row(Run.from_json(text)))
        except (ValueError, OverflowError, OSError) as error:  # somebody else's, or a time that there is not
            logger.warning("not a run, and not kept in the history: %.200r (%s)", text, error)
    return rows


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
