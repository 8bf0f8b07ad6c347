"""Last span of a page's trace: its items are stored in the database (`workers/tracing/traces.py`)."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec
import redis

from forums.records.stored import scan_task
from forums.storage import Check, Comment, Database, Forum, InvalidItem, Item, Post, Scan, parse, task_of_scan
from forums.storage.write.row_changes import is_of_fleet
from forums.storage.write.upsert import Written
from redis_components.admin.lock_release import give_back
from redis_components.items.stream import ItemStream, Lock, Refusal, Settled, new_token
from workers.tracing import traces


class _Traced(msgspec.Struct):
    traceparent: str = ""


_decoder = msgspec.json.Decoder(_Traced)


@contextmanager
def storing(payloads: Sequence[bytes]) -> Iterator[None]:
    """Record a span for each page whose items are stored within. Payloads are not parsed if tracing is off."""
    if not traces.is_on():
        yield
        return
    began, error = time.time_ns(), ""
    try:
        yield
    except Exception as failure:
        error = type(failure).__name__
        raise
    finally:
        for parent, items in Counter(map(_parent, payloads)).items():
            about = {"trawl.items": items, "trawl.batch": len(payloads)}
            if parent and (span := traces.begin("store", about, parent, kind="consumer", at_ns=began)):
                span.end(error)


def _parent(payload: bytes) -> str:
    try:
        return _decoder.decode(payload).traceparent
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""  # refused later, with its reason


After = Callable[[Sequence[Item]], None]
"""A hook that is called with the items of each batch, in the stream's order, once they are committed and before they leave the
stream.

It may be called with the same items again, if the writer dies in between, so it has to be idempotent.
"""

_COUNTED: dict[type[Item], str] = {Post: "posts", Comment: "comments", Forum: "forums", Scan: "scans", Check: "checks"}

logger = logging.getLogger(__name__)


class Outcome(StrEnum):
    """Reason for the end of a drain."""

    EMPTY = "empty"  # the stream was empty
    BUDGET = "budget"  # its time was spent; the rest waits for the next one
    BUSY = "busy"  # another writer has the lock; nothing was done
    LOCK_LOST = "lock_lost"  # it took longer than the lock lives; the last batch is stored and will be stored again


@dataclass(frozen=True, kw_only=True)
class WriteReport:
    """Result of one drain. Counts are of items that left the stream; an item that came twice counts twice."""

    outcome: Outcome
    seconds: float
    batches: int = 0
    posts: int = 0
    comments: int = 0
    forums: int = 0
    scans: int = 0
    checks: int = 0
    bad: int = 0  # refused, kept with their reasons
    changes: Mapping[str, int] = field(default_factory=dict)  # `<site>|<post or comment>|<ChangeKind>` -> number

    @property
    def items(self) -> int:
        return self.posts + self.comments + self.forums + self.scans + self.checks + self.bad


@dataclass(kw_only=True)
class _Batch:
    """Result for one batch, or sums of several (counts and changes)."""

    counts: Counter[str] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)
    bad: list[Refusal] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    stored: list[Item] = field(default_factory=list)
    new: list[Item] = field(default_factory=list)  # stored posts and comments that were not in the database


def drain(
    stream: ItemStream,
    database: Database,
    *,
    batch: int = 1000,
    budget_s: float = 30.0,
    after: After | None = None,
    arrived: After | None = None,
) -> WriteReport:
    """Move the stream into the (open) database, `batch` items per transaction, until it is empty or `budget_s` seconds are spent.

    `after` is called with the stored items, then `arrived` with the posts and comments that were new.
    At least one batch is moved, even with an empty budget. Raises StorageError when the database fails and `redis.RedisError`
    when Redis does, also in `after`: unsettled items are still in the stream. Any other exception of `after` is logged, and
    the items leave the stream: they are stored, and a failing hook must not block later items.
    """
    started = time.monotonic()
    token = new_token()
    if stream.lock(token) is Lock.BUSY:
        return WriteReport(outcome=Outcome.BUSY, seconds=time.monotonic() - started)
    totals = _Batch()
    try:
        outcome = _drain(stream, database, token, batch, started + budget_s, totals, after, arrived)
    finally:
        give_back(lambda: stream.unlock(token), f"{stream.keys.items}: the writer's lock", held_s=stream.lock_s)
    return WriteReport(outcome=outcome, seconds=time.monotonic() - started, changes=dict(totals.changes), **totals.counts)


def _drain(
    stream: ItemStream,
    database: Database,
    token: str,
    size: int,
    deadline: float,
    totals: _Batch,
    after: After | None,
    arrived: After | None,
) -> Outcome:
    while True:
        payloads = stream.peek(size)
        if not payloads:
            return Outcome.EMPTY
        with storing(payloads):
            batch = _store(database, payloads)
        if after and batch.stored:
            _notify(after, batch.stored)
        if arrived and batch.new:
            _notify(arrived, batch.new)
        if stream.settle(token, len(payloads), batch.bad, batch.done) is Settled.LOCK_LOST:
            logger.warning(
                "%s: the writer's lock ran out while %d items were stored; they stay and are stored again",
                stream.keys.items,
                len(payloads),
            )
            return Outcome.LOCK_LOST
        if batch.bad:
            logger.warning(
                "%s: %d of %d items were refused and are kept in %s; trawl dead items shows why",
                stream.keys.items,
                len(batch.bad),
                len(payloads),
                stream.keys.bad_items(),
            )
        totals.counts.update(batch.counts, batches=1)
        totals.changes.update(batch.changes)
        if time.monotonic() >= deadline:
            return Outcome.BUDGET


def _store(database: Database, payloads: Sequence[bytes]) -> _Batch:
    """Validate and store one batch; when this returns, it is committed."""
    batch = _Batch()
    good: list[tuple[int, Item]] = []
    for place, payload in enumerate(payloads):
        try:
            item = parse(payload)
        except InvalidItem as error:
            batch.bad.append(Refusal(place, str(error)))
            if task := task_of_scan(payload):  # the scan has ended all the same: its forum must be seeded again
                batch.done.append(task)
        else:
            good.append((place, item))
    written = Written()
    refused = {one.place: one.reason for one in database.write([item for _, item in good], written)} if good else {}
    batch.changes.update(f"{one.site}|{one.row}|{one.kind}" for one in written.changes if not is_of_fleet(one))
    for number, (place, item) in enumerate(good):
        if number in refused:
            batch.bad.append(Refusal(place, refused[number]))
        else:
            batch.stored.append(item)
            if isinstance(item, Post | Comment) and (key := (type(item), item.site, item.id)) in written.new:
                batch.new.append(item)
                written.new.discard(key)  # of several states of one item the first
            batch.counts[_COUNTED[type(item)]] += 1
        if isinstance(item, Scan):
            batch.done.append(scan_task(item.site, item.forum_id, item.mode))
    batch.bad.sort()
    batch.counts["bad"] = len(batch.bad)
    return batch


def _notify(after: After, items: Sequence[Item]) -> None:
    try:
        after(items)
    except redis.RedisError:
        raise
    except Exception:
        logger.exception("a hook failed for %d stored items; the items themselves are stored", len(items))
