"""Moves a service's items out of Redis: read in place, keep, and only then remove.

One consumer at a time has the stream; others wait and take over when it dies (its lock lives `LOCK_S`). A consumer that is killed
loses nothing: what it had read is still in the stream, and what it had written but not removed is written again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import starmap
from pkgutil import resolve_name
from typing import Any, NamedTuple

import msgspec
import redis

from redis_components.admin.health import Problem
from redis_components.errors import ConfigError, TrawlError
from redis_components.items.stream import ItemStream, Lock, Refusal, Settled, give_back, new_token
from redis_components.server.scripts import is_servers_state
from workers.state.reports import Troubles
from workers.targets import Target


class SinkUnavailable(TrawlError):
    """The place does not take items at the moment; they stay in Redis, and it is tried again."""


class Item(NamedTuple):
    """One item of a batch."""

    place: int
    """In the batch, from 0."""
    value: Any
    """As decoded from JSON."""


class Stored(NamedTuple):
    """Result of a batch that is stored."""

    refused: dict[int, str]
    """Reasons of the items that cannot be stored, by index."""
    done: Sequence[str] = ()
    """Start tasks whose pending mark ends."""


class Sink:
    """A place for items. Not for two threads. A subclass has `write`, or `store` where the items are not just any JSON."""

    batch = 500
    lock_s = 0.0
    """Least life of the consumer's lock: longer than storing one batch takes."""

    def peek(self, stream: ItemStream, token: str) -> list[bytes]:  # noqa: ARG002 - the lock is for `Parts`
        """Return the next batch, under the lock `token`; none while there is nothing to store."""
        return stream.peek(self.batch)

    def store(self, payloads: Sequence[bytes]) -> Stored:
        """Store a batch, so that a power failure does not lose it.

        Raises SinkUnavailable where it may work later, another TrawlError where the operator has to mend something.
        """
        items, refused = [], dict[int, str]()
        for place, payload in enumerate(payloads):
            try:
                items.append(Item(place, msgspec.json.decode(payload)))
            except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
                refused[place] = "it is not JSON: REDIS_ITEMS_SERIALIZER writes something else"
        return Stored(refused | self.write(items) if items else refused)

    def write(self, items: Sequence[Item]) -> dict[int, str]:
        """Store the items as `store` does; return the reasons of those that cannot be stored, by index."""
        raise NotImplementedError

    def tick(self) -> None:
        """Do periodic work: called about once a second, also without items."""

    def close(self) -> None:
        """Release the sink: no more items come."""


MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class SinkOptions:
    """Options of a sink; each kind takes its own."""

    table: str
    key: str = ""
    max_bytes: int = 100 * MIB
    max_age_s: float = 0.0
    once: bool = False


def open_sink(target: Target, options: SinkOptions) -> Sink:
    """Open the sink of a target. Raises ConfigError."""
    if options.key and not target.kind.has_rows:
        raise ConfigError(f"--key is for databases: {target.kind.name} only appends")
    sink: Sink = resolve_name(target.kind.sink)(target.place, options)
    return sink


def to_line(value: Any) -> bytes:
    """Encode a value as one line of JSON."""
    return msgspec.json.encode(value) + b"\n"


POLL_S = 0.2
AGAIN_S = 1.0
WAITS = "another consumer takes its items; this one waits for its turn"

logger = logging.getLogger(__name__)


class Outcome(StrEnum):
    """Reason for the end of a drain."""

    EMPTY = "empty"  # the stream was empty
    BUDGET = "budget"  # its time was spent; the rest waits for the next one
    BUSY = "busy"  # another consumer has the lock; nothing was done
    LOCK_LOST = "lock_lost"  # it took longer than the lock lives; the last batch is stored and will be stored again


@dataclass(kw_only=True)
class Consumed:
    """Results of a consumer up to now: of the items that left the stream."""

    items: int = 0
    refused: int = 0


def drain(stream: ItemStream, sink: Sink, token: str, done: Consumed, stopped: Callable[[], bool]) -> Outcome:
    """Move batches, at least one, until there are none or `stopped`. The lock `token` is kept; `unlock` gives it back."""
    if stream.lock(token) is Lock.BUSY:
        return Outcome.BUSY
    while payloads := sink.peek(stream, token):
        stored = sink.store(payloads)
        bad = list(starmap(Refusal, sorted(stored.refused.items())))
        if stream.settle(token, len(payloads), bad, stored.done) is Settled.LOCK_LOST:
            logger.warning(
                "%s: the consumer's lock ran out while %d items were stored; they stay and are stored again",
                stream.keys.items,
                len(payloads),
            )
            return Outcome.LOCK_LOST
        if bad:
            logger.warning(
                "%s: %d of %d items were refused and are kept in %s; trawl dead items shows why",
                stream.keys.items,
                len(bad),
                len(payloads),
                stream.keys.bad_items(),
            )
        done.items += len(payloads) - len(bad)
        done.refused += len(bad)
        if stopped():
            return Outcome.BUDGET
    return Outcome.EMPTY


def unlock(stream: ItemStream, token: str) -> None:
    """Give the consumer's lock back, later where Redis is away."""
    give_back(lambda: stream.unlock(token), f"{stream.keys.items}: the consumer's lock", held_s=stream.lock_s)


def consume(
    stream: ItemStream,
    sink: Sink,
    *,
    stopped: Callable[[], bool],
    once: bool = False,
    token: str = "",
    log: Callable[[str], object] = logger.info,
) -> Consumed:
    """Drain again and again until `stopped`; with `once` until there are no items. `log` gets a line when something changes.

    With `token`, a lock that is held already, it ends when another consumer has the lock. Raises TrawlError for a fault that the
    operator has to mend. A Redis or a place that is away is waited for, also with `once`.
    """
    done, tick_at, logged = Consumed(), 0.0, ""
    waits, token = not token, token or new_token()
    stream.lock_s = max(stream.lock_s, sink.lock_s)
    try:
        while not stopped():
            outcome, away = _attempt(stream, sink, token, done, _within(AGAIN_S, stopped))
            if (outcome is Outcome.EMPTY and once) or (outcome is Outcome.BUSY and not waits):
                break
            now = away or (WAITS if outcome is Outcome.BUSY else "")
            if now != logged:
                log(now or "going on")
            if now or logged:
                report(stream, away)
            logged = now
            if time.monotonic() >= tick_at:
                sink.tick()
                tick_at = time.monotonic() + AGAIN_S
            _sleep(AGAIN_S if away else POLL_S if outcome in (Outcome.EMPTY, Outcome.BUSY) else 0.0, stopped)
    except TrawlError as error:
        report(stream, str(error))
        raise
    finally:
        try:
            sink.close()
        finally:
            unlock(stream, token)  # not before: the next one opens the same file
    return done


def _attempt(
    stream: ItemStream, sink: Sink, token: str, done: Consumed, stopped: Callable[[], bool]
) -> tuple[Outcome | None, str]:
    """Drain; return the outcome, or None with the reason why it may work later."""
    try:
        return drain(stream, sink, token, done, stopped), ""
    except (SinkUnavailable, redis.RedisError) as error:
        if isinstance(error, redis.RedisError) and not is_servers_state(error):
            raise
        return None, f"{error}; trying again, nothing is lost"


def report(stream: ItemStream, why: str) -> None:
    """Report to the fleet why nothing is taken; "": something is."""
    found = (
        [Problem(what=f"items wait: {' '.join(why.split())}", fix="mend the place, or declare another consumer")] if why else []
    )
    with suppress(redis.RedisError):  # Redis itself may be away
        Troubles(stream.client).report(f"consumer of {stream.keys.items}", found)


def _within(seconds: float, stopped: Callable[[], bool]) -> Callable[[], bool]:
    until = time.monotonic() + seconds
    return lambda: stopped() or time.monotonic() > until


def _sleep(seconds: float, stopped: Callable[[], bool]) -> None:
    over = _within(seconds, stopped)
    while not over():
        time.sleep(min(seconds, POLL_S))
