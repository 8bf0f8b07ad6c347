"""Crawler processes that have begun or ended, on their way to the database: a `Run` each, added when it begins and when it ends.

    Runs(client).add(run)                       # a supervisor, a crawler without one, a task that crawls
    waiting = Runs(client).peek(200)            # the writer: read in place, store, then settle
    Runs(client).settle(waiting)

A run is added several times under one id, and may come twice: the database keeps its latest state. A run that the writer has
read stays here until it is stored, so a writer that dies loses nothing, and two at once do no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

import redis

from redis_components.server.record_store import JsonRecord
from redis_components.server.untrusted_values import Count, Epoch
from workers.state.keys import FleetKeys

MOST_WAITING = 10_000  # without a writer the oldest are dropped


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
    """The runs that wait for the database. Methods raise `redis.RedisError` when Redis does not answer, and may be called again
    then.
    """

    def __init__(self, client: redis.Redis, keys: FleetKeys | None = None) -> None:
        self._client = client
        self._key = (keys or FleetKeys()).runs()

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
