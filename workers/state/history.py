"""Crawler processes that have begun or ended, as Redis keeps the last ones, and members of runs that are over, on their way to
the database and as an application has stored them.

    Runs(client).add(run)                       # a supervisor, a crawler without one, a task that crawls
    latest(client, 20, spider="books")

A process is added under its id when it begins and when it ends, and may come twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import redis

from redis_components.server.untrusted_values import Count, Epoch, JsonRecord, decoded, server_time

from .group_runs import EndedMember
from .keys import MOST_WAITING, FleetKeys
from .registry import CrawlerRecord, Registry


class RunBy(StrEnum):
    """The kinds of processes that run a crawler."""

    FLEET = "fleet"  # a supervisor, in a slot
    HAND = "hand"  # a user: `python -m workers.crawler`, `scrapy crawl`
    ONCE = "once"  # a task of the version before, in a worker's own process


@dataclass(frozen=True, kw_only=True)
class Run(JsonRecord):
    """One crawler process in its last reported state."""

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
    outcome: str | None = None  # kind of its end: `workers.process.exit_kinds`
    exit_code: int | None = None  # negative: a signal
    reason: str | None = None
    pages: Count = 0
    items: Count = 0
    peak_rss_bytes: Count = 0  # highest of its heartbeats


class Runs:
    """The last crawler processes. Methods raise `redis.RedisError` when Redis does not answer, and may be called again then."""

    def __init__(self, client: redis.Redis) -> None:
        self._client, self._key = client, FleetKeys().runs()

    def add(self, run: Run) -> None:
        """Add the present state of a run."""
        with self._client.pipeline() as pipe:
            pipe.rpush(self._key, run.to_json())
            pipe.ltrim(self._key, -MOST_WAITING, -1)
            pipe.execute()

    def all(self) -> dict[str, Run]:
        """Return the runs by id, each as it was reported last; what is none is left out."""
        found: dict[str, Run] = {}
        for text in self._client.lrange(self._key, 0, -1):
            with suppress(ValueError):  # not Trawl's
                run = Run.from_json(text)
                if run.id not in found or found[run.id].ended_at is None:
                    found[run.id] = run
        return found


DOUBT_S = 60.0  # a run without a heartbeat counts as lost if it began this long ago
LOST = "lost"  # outcome of a run whose end was never reported


def latest(
    client: redis.Redis,
    limit: int,
    *,
    spider: str | None = None,
    number: int | None = None,
    since: float = 0.0,
) -> list[Run]:
    """Return the latest runs, the youngest first; those that go on have the figures of their last heartbeat. None: any.

    Raises `redis.RedisError`.
    """
    crawlers, now = Registry(client).crawlers(), server_time(client)
    heard = {_process(one): one for one in crawlers if one.alive(now)}
    found = []
    for run in sorted(Runs(client).all().values(), key=lambda run: (run.started_at, run.id), reverse=True):
        equal = ((spider, run.spider), (number, run.number))
        if run.started_at >= since and all(value is None or value == own for value, own in equal):
            found.append(run)
    return [run if run.ended_at else _as_heard(run, heard.get(_process(run)), now) for run in found[:limit]]


def _process(one: CrawlerRecord | Run) -> tuple[object, ...]:
    return one.spider, one.number, one.token, one.pid


def _as_heard(run: Run, record: CrawlerRecord | None, now: float) -> Run:
    """Return a run without an end with its present figures; one that is not heard any more is lost: its node died."""
    age_s = now - run.started_at
    if record is None and age_s > DOUBT_S:
        return replace(run, outcome=LOST)
    if record is None:
        return run
    peak = max(run.peak_rss_bytes, record.rss_bytes)
    return replace(run, pages=record.pages, items=record.items, peak_rss_bytes=peak)


LONGEST_NAME = 255


def ended_members(client: redis.Redis, most: int) -> list[bytes]:
    """Return the oldest members that wait for the database; they stay until `settle_members`."""
    found: Any = client.lrange(FleetKeys().ended_members(), 0, most - 1)
    return list(found)


def settle_members(client: redis.Redis, stored: Iterable[bytes]) -> None:
    """Take out members that are stored, as `ended_members` gave them."""
    with client.pipeline(transaction=False) as pipe:
        for one in stored:
            pipe.lrem(FleetKeys().ended_members(), 1, one)  # type: ignore[arg-type]  # by value: safe to repeat
        pipe.execute()


def readable_members(entries: Iterable[bytes]) -> list[EndedMember]:
    """Return the members of these entries, without what is none, or what no database stores."""
    found = []
    for text in entries:
        with suppress(ValueError, OverflowError, OSError):  # also of an impossible time
            one = decoded(text, EndedMember)
            datetime.fromtimestamp(one.started_at, UTC), datetime.fromtimestamp(one.ended_at, UTC)
            if max(map(len, (one.run, one.spider, one.group))) <= LONGEST_NAME:
                found.append(one)
    return found
