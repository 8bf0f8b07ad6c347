"""Moves a service's items out of Redis, for as long as it is wanted: read in place, keep, and only then remove.

One consumer at a time has the stream; others wait and take over when it dies (its lock lives `LOCK_S`). A consumer that is killed
loses nothing: what it had read is still in the stream, and what it had written but not removed is written again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import msgspec
import redis

from redis_components.errors import TrawlError
from redis_components.items.groups import ItemGroup
from redis_components.items.stream import ItemStream, Lock, Refusal, Settled, new_token
from redis_components.server.health import Problem
from workers.state.troubles import Troubles

from .parts import Parts
from .sink import Item, Sink, SinkUnavailable

BATCH = 500
POLL_S = 0.2
AGAIN_S = 1.0

logger = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Consumed:
    """Results of a consumer up to now."""

    items: int = 0
    refused: int = 0


def consume(
    stream: ItemStream | ItemGroup,
    sink: Sink,
    *,
    stopped: Callable[[], bool],
    once: bool = False,
    log: Callable[[str], object] = logger.info,
) -> Consumed:
    """Move items until `stopped`; with `once` until there are none. `log` gets a line when something changes.

    Raises TrawlError for a fault that the operator has to mend. A Redis or a place that is away is waited for, also with `once`.
    """
    done, token, tick_at, logged = Consumed(), new_token(), 0.0, ""
    try:
        while not stopped():
            try:
                lock = stream.lock(token)
                moved = 0 if lock is Lock.BUSY else _batch(stream, sink, token, done)
                now = "another consumer takes its items; this one waits for its turn" if lock is Lock.BUSY else ""
                if once and not moved and lock is not Lock.BUSY:
                    break
                pause = 0.0 if moved else POLL_S
            except (SinkUnavailable, redis.ConnectionError, redis.TimeoutError) as error:
                now, pause, moved = f"{error}; trying again, nothing is lost", AGAIN_S, 0
            if now != logged:
                log(now or "going on")
            if now or logged:
                _report(stream, now if pause == AGAIN_S else "")
            logged = now
            if not moved and time.monotonic() >= tick_at:
                sink.tick()
                tick_at = time.monotonic() + AGAIN_S
            _sleep(pause, stopped)
    except TrawlError as error:
        _report(stream, str(error))
        raise
    finally:
        try:
            stream.unlock(token)
        except redis.RedisError:
            logger.debug("the lock of %s runs out", stream.keys.items)
        sink.close()
    return done


def _report(stream: ItemStream | ItemGroup, why: str) -> None:
    """Report to the fleet why nothing is taken; "": something is."""
    found = (
        [Problem(what=f"items wait: {' '.join(why.split())}", fix="mend the place, or declare another consumer")] if why else []
    )
    of = f"{stream.keys.items}, {stream.group}" if isinstance(stream, ItemGroup) else stream.keys.items
    with suppress(redis.RedisError):  # Redis itself may be away
        Troubles(stream.client).report(f"consumer of {of}", found)


def _batch(stream: ItemStream | ItemGroup, sink: Sink, token: str, done: Consumed) -> int:
    """Move one batch; how many items it had."""
    payloads = sink.peek(token) if isinstance(sink, Parts) else stream.peek(BATCH)
    if not payloads:
        return 0
    items, refused = [], dict[int, str]()
    for place, payload in enumerate(payloads):
        try:
            items.append(Item(place, msgspec.json.decode(payload)))
        except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
            refused[place] = "it is not JSON: REDIS_ITEMS_SERIALIZER writes something else"
    if items:
        refused |= sink.write(items)
    bad = [Refusal(place, reason) for place, reason in sorted(refused.items())]
    if stream.settle(token, len(payloads), bad, []) is Settled.SETTLED:
        done.items += len(payloads) - len(bad)
        done.refused += len(bad)
    return len(payloads)


def _sleep(seconds: float, stopped: Callable[[], bool]) -> None:
    until = time.monotonic() + seconds
    while not stopped() and (left := until - time.monotonic()) > 0:
        time.sleep(min(left, POLL_S))
