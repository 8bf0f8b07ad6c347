"""Moves the item stream into the database: read in place, check, upsert, commit, report, and only then remove from the stream.

A writer may die at any instant. Before the commit nothing has changed; after it, and before settling, the next writer stores the
batch once more, without effect, because rows are upserted by their natural keys. So each item has its effect exactly once.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import redis

from forums.records.tasks_and_items import scan_task
from forums.storage import Check, Comment, Database, Forum, InvalidItem, Item, Post, Scan, parse, task_of_scan
from forums.storage.write.upsert import Written
from redis_components.items.stream import ItemStream, new_token
from workers.consumers import consume as loop
from workers.consumers.consume import Outcome, Sink, Stored

After = Callable[[Sequence[Item]], None]
"""A hook that is called with the items of each batch, in the stream's order, once they are committed and before they leave the
stream.

It may be called with the same items again, if the writer dies in between, so it has to be idempotent.
"""

_COUNTED: dict[type[Item], str] = {Post: "posts", Comment: "comments", Forum: "forums", Scan: "scans", Check: "checks"}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class WriteReport:
    """Result of one drain. Counts are of items that left the stream; an item that came twice counts twice."""

    outcome: Outcome
    batches: int = 0
    posts: int = 0
    comments: int = 0
    forums: int = 0
    scans: int = 0
    checks: int = 0
    bad: int = 0  # refused, kept with their reasons


@dataclass(kw_only=True)
class _Batch:
    """Result for one batch, or sums of several (counts)."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: dict[int, str] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    stored: list[Item] = field(default_factory=list)
    new: list[Item] = field(default_factory=list)  # stored posts and comments that were not in the database


class ForumSink(Sink):
    """Stores forum records in the (open) database, `batch` items per transaction.

    `after` is called with the stored items, then `arrived` with the posts and comments that were new. Redis's errors in `after`
    are raised: the batch comes again. Any other exception of `after` is logged, and the items leave the stream: they are stored,
    and a failing hook must not block later items.
    """

    def __init__(
        self, database: Database, *, batch: int = 1000, after: After | None = None, arrived: After | None = None
    ) -> None:
        self.batch = batch
        self.totals = _Batch()
        self._database, self._after, self._arrived = database, after, arrived
        self._last = _Batch()

    def store(self, payloads: Sequence[bytes]) -> Stored:
        """Validate and store one batch; when this returns, it is committed. Raises StorageError, `redis.RedisError`."""
        self._last = last = _store(self._database, payloads)
        for hook, items in ((self._after, last.stored), (self._arrived, last.new)):
            if hook and items:
                _notify(hook, items)
        return Stored(last.refused, last.done)

    def settled(self) -> None:
        """Add the last batch to the totals."""
        self.totals.counts.update(self._last.counts, batches=1)


def drain(
    stream: ItemStream,
    database: Database,
    *,
    batch: int = 1000,
    budget_s: float = 30.0,
    after: After | None = None,
    arrived: After | None = None,
) -> WriteReport:
    """Move the stream into the (open) database until it is empty or `budget_s` seconds are spent; at least one batch is moved.

    Raises StorageError when the database fails and `redis.RedisError` when Redis does: unsettled items are still in the stream.
    """
    started, token = time.monotonic(), new_token()
    sink = ForumSink(database, batch=batch, after=after, arrived=arrived)
    try:
        outcome = loop.drain(stream, sink, token, loop.Consumed(), lambda: time.monotonic() >= started + budget_s)
    finally:
        loop.unlock(stream, token)
    return WriteReport(outcome=outcome, **sink.totals.counts)


def _store(database: Database, payloads: Sequence[bytes]) -> _Batch:
    batch = _Batch()
    good: list[tuple[int, Item]] = []
    for place, payload in enumerate(payloads):
        try:
            item = parse(payload)
        except InvalidItem as error:
            batch.refused[place] = str(error)
            if task := task_of_scan(payload):  # the scan has ended all the same: its forum must be seeded again
                batch.done.append(task)
        else:
            good.append((place, item))
    written = Written()
    refused = {one.place: one.reason for one in database.write([item for _, item in good], written)} if good else {}
    for number, (place, item) in enumerate(good):
        if number in refused:
            batch.refused[place] = refused[number]
        elif number not in written.dropped:
            batch.stored.append(item)
            if isinstance(item, Post | Comment) and (key := (type(item), item.site, item.id)) in written.new:
                batch.new.append(item)
                written.new.discard(key)  # of several states of one item the first
            batch.counts[_COUNTED[type(item)]] += 1
        if isinstance(item, Scan):
            batch.done.append(scan_task(item.site, item.forum_id, item.mode))
    batch.counts["bad"] = len(batch.refused)
    return batch


def _notify(after: After, items: Sequence[Item]) -> None:
    try:
        after(items)
    except redis.RedisError:
        raise
    except Exception:
        logger.exception("a hook failed for %d stored items; the items themselves are stored", len(items))
