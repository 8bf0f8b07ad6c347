"""States of the watched forums between two scans, and their due times; and the ledger of the requests sent to each site in the
last hour, by purpose, compared with the site's budget.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from operator import attrgetter
from typing import Any, Self, cast

import msgspec
import redis

from forums import FORUM_LIST
from forums.state.keys import ForumCrawlKeys
from redis_components.admin.inspector import keys_in
from redis_components.server.names import literal
from redis_components.server.untrusted_values import (
    LATEST,
    Amount,
    Count,
    Epoch,
    answers_of,
    as_bytes,
    decoded,
    is_foreign,
    number,
    readable,
    server_time,
    whole,
)

from .keys import ForumFleetKeys, script

_AT_ONCE = 1000


class ForumState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):  # gc: 10,000 set off the collector
    """One forum between two scans. Times are epoch seconds. The sums of the estimates decay, so they need no history."""

    scanned_at: Epoch | None = None  # start of the last scan that did not fail
    tried_at: Epoch | None = None  # start of the last scan, finished or not
    deep_at: Epoch | None = None  # start of the last deep scan
    newest_at: Epoch | None = None  # high-water mark: newest activity that any scan saw
    gap_at: Epoch | None = None  # start of the first scan that did not reach the threads of the scan before
    gap_from: Epoch | None = None  # the gap's older end: the high-water mark before it
    gap_scans: Count = 0  # scans since then, including the first
    errors: Count = 0  # consecutive failed scans
    reason: str | None = None  # of the last failure, or of the gap
    wall: str | None = None  # why guests see the first pages only of its threads
    events: Amount = 0.0  # changes seen, decayed
    exposure: Amount = 0.0  # seconds in which they were seen, decayed in the same way
    burst_events: Amount = 0.0  # changes with a short memory
    burst_exposure: Amount = 0.0
    carried: Count = 0  # changes seen by failed scans, for the next one to count
    pages: Amount = 1.0  # list pages of a scan, smoothed
    name: str | None = None  # from the site's index page
    found_at: Epoch | None = None  # when the index page last listed it; None: it is in the site file
    first_at: Epoch | None = None  # start of the first scan that did not fail; None: not scanned, or before this was noted

    @property
    def is_learning(self) -> bool:
        """True after one scan: its changes are not counted between two scans yet."""
        return self.scanned_at is not None and self.scanned_at == self.first_at


class WatchedForum(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A forum with its due time by the policy (epoch s)."""

    site: str
    forum: str
    state: ForumState
    due_at: float

    @property
    def waits_from(self) -> float:
        """Due time of its scan, at least the time of its last scan, until the seeder updates the due time (epoch s)."""
        return max(self.due_at, self.state.tried_at or 0.0)

    def overdue_s(self, now: float) -> float:
        """Return for how long its scan has been due."""
        return max(0.0, now - self.waits_from)

    def is_stale(self, now: float) -> bool:
        """Return True if it is overdue for five minutes, and for longer than its interval."""
        return self.overdue_s(now) > max(STALE_S, self.due_at - (self.state.tried_at or self.due_at))


STALE_S = 300.0


class ForumStates:
    """States of forums by `<site>/<forum>`. Methods raise `redis.RedisError` when Redis does not answer.

    One process at a time writes states (it holds the writer's lock), and one at a time writes due times.
    """

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._keys = ForumCrawlKeys(keys_in(client, FORUM_LIST))

    def read(self, ids: Iterable[str]) -> dict[str, ForumState]:
        """Return the states of these forums; a new state for a missing or unreadable one."""
        names = list(ids)
        found = self._read(names) if names else []
        return {name: state_or_fresh(text) for name, text in zip(names, found, strict=True)}

    def _read(self, names: list[str]) -> list[bytes | None]:
        try:
            return cast("list[bytes | None]", self._client.hmget(self._keys.forum_states(), names))
        except redis.ResponseError as error:
            if is_foreign(error):
                return [None] * len(names)
            raise

    def write(self, states: Mapping[str, ForumState]) -> None:
        """Store these states."""
        if states:
            encoded = {name: msgspec.json.encode(state) for name, state in states.items()}
            self._client.hset(self._keys.forum_states(), mapping=cast("dict[Any, Any]", encoded))

    def all(self, site: str | None = None) -> dict[str, ForumState]:
        """Return all known forums, or those of a site, in the order of their ids. Read in steps."""
        return readable(self.raw_states(site), lambda _, text: state_or_fresh(text))

    def dues(self, site: str | None = None) -> dict[str, float]:
        """Return the due times of watched forums by the policy (epoch s), by id in their order; of all sites, or of one."""
        return readable(self.raw_dues(site), due_of)

    def raw_dues(self, site: str | None = None) -> dict[bytes, bytes]:
        """Return the due times as stored, read in steps."""
        return self._scan(self._keys.forum_dues(), site)

    def raw_states(self, site: str | None = None) -> dict[bytes, bytes]:
        """Return the states as stored, read in steps."""
        return self._scan(self._keys.forum_states(), site)

    def _scan(self, key: str, site: str | None) -> dict[bytes, bytes]:
        """Read a hash in steps; return {} if the key has another type."""
        match = None if site is None else f"{literal(f'{site}/')}*"
        try:
            found = dict(self._client.hscan_iter(key, match=match, count=_AT_ONCE))
            return found if isinstance(next(iter(found), b""), bytes) else {as_bytes(k): as_bytes(v) for k, v in found.items()}
        except redis.ResponseError as error:
            if is_foreign(error):
                return {}
            raise

    def store_dues(self, dues: Mapping[str, float], now: float, *, whole: bool) -> None:
        """Store due times; a never scanned forum (0) is due since it was first watched. `whole`: these are all forums."""
        key, known = self._keys.forum_dues(), self.dues()
        texts = {name: f"{at or min(known.get(name, now), now):.3f}" for name, at in dues.items()}
        gone = [name for name in known if name not in dues] if whole else []
        with self._client.pipeline(transaction=False) as pipe:
            if texts:
                pipe.hset(key, mapping=cast("dict[Any, Any]", texts))
            if gone:
                pipe.hdel(key, *gone)
            pipe.execute()


def due_of(name: str, raw: bytes) -> float:  # noqa: ARG001 - the form of what reads a field
    """Parse a due time (epoch s). Raises ValueError."""
    return number(raw)


def state_of(name: str, raw: bytes) -> ForumState:  # noqa: ARG001 - as above
    """Parse a forum's state. Raises ValueError."""
    return decoded(raw, ForumState)


def state_or_fresh(text: bytes | None) -> ForumState:
    """Parse a forum's state; a new state if it is unreadable, so that the forum is scanned at once."""
    try:
        return decoded(text, ForumState) if text else ForumState()
    except ValueError:
        return ForumState()


@dataclass(frozen=True)
class Watched:
    """All forums, or those of a site, in the order of their ids."""

    forums: Sequence[WatchedForum]
    by_site: Mapping[str, int]
    """Number of forums by site."""
    ill: Sequence[WatchedForum]
    """Forums whose last scan failed, or that have a gap."""

    @classmethod
    def of(cls, forums: Sequence[WatchedForum]) -> Self:
        """Count the forums of a list."""
        ill = [one for one in forums if one.state.errors > 0 or one.state.gap_at is not None]
        return cls(forums, Counter(map(attrgetter("site"), forums)), ill)


def watched(client: redis.Redis, site: str | None = None) -> Watched:
    """Return all watched forums, or those of a site. Raises `redis.RedisError` when Redis does not answer."""
    store = ForumStates(client)
    dues, states = store.raw_dues(site), store.raw_states(site)
    found = (_watched(name, dues[name], states.get(name)) for name in sorted(dues))
    return Watched.of([one for one in found if one is not None])


def _watched(name: bytes, due: bytes, state: bytes | None) -> WatchedForum | None:
    """Return a forum; None if the name or the due time is foreign."""
    try:
        site, _, forum = name.decode().partition("/")
        return WatchedForum(site=sys.intern(site), forum=forum, state=state_or_fresh(state), due_at=number(due))
    except ValueError:
        return None


TRIAL_PER_DAY = 1000
"""Requests: enough to see that a site file is right."""
TRIAL_RATE = 2.0
"""Requests per second where the file has none: without a rate those of a day would be spread over the day."""


SLOT_S = 300
WINDOW_S = 3600
KEEP_S = 2 * WINDOW_S


class Purpose(StrEnum):
    """Purpose of requests."""

    SCAN = "scan"  # list pages
    DETAIL = "detail"  # new and changed threads
    CHECK = "check"  # checks of threads for edits and deletions
    BACKFILL = "backfill"  # history


@dataclass(frozen=True, kw_only=True)
class Spending:
    """Cost of one finished scan or check. `name` identifies it within its site."""

    site: str
    name: str
    purpose: Purpose
    ended_at: float  # epoch s
    requests: int


@dataclass(frozen=True, kw_only=True)
class Spent:
    """Requests of the last hour, by purpose."""

    scan: float = 0.0
    detail: float = 0.0
    check: float = 0.0
    backfill: float = 0.0

    def on(self, purpose: Purpose) -> float:
        """Return the requests for one purpose."""
        return float(getattr(self, purpose))

    @property
    def live(self) -> float:
        """Return the requests for new posts."""
        return self.scan + self.detail

    @property
    def later(self) -> float:
        """Return the requests for work that may wait."""
        return self.check + self.backfill

    @property
    def total(self) -> float:
        return self.live + self.later

    def compared(self, budget: float) -> str:
        """Return `over budget: 36 of 60 requests in the last hour`, for people."""
        return f"over budget: {self.total:.0f} of {budget:.10g} requests in the last hour"


class Ledger:
    """Requests and budgets in Redis. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._keys = ForumFleetKeys()

    def add(self, spendings: Iterable[Spending]) -> int:
        """Add these costs; return how many were not counted before."""
        by_site: dict[str, list[str | float]] = {}
        for one in spendings:
            by_site.setdefault(one.site, []).extend((one.name, one.purpose, f"{one.ended_at:.3f}", one.requests))
        return sum(
            script("spend")(
                self._client,
                {"spent": self._keys.spent(site), "counted": self._keys.counted(site)},
                {"slot_s": SLOT_S, "keep_s": KEEP_S, "entries": entries},
            )
            for site, entries in by_site.items()
        )

    def store_budgets(self, budgets: Mapping[str, float]) -> None:
        """Store the request budget of each site."""
        if budgets:
            self._client.hset(self._keys.budgets(), mapping={site: f"{n:.10g}" for site, n in budgets.items()})

    def budgets(self, sites: Iterable[str]) -> dict[str, float]:
        """Return the stored budgets of these sites."""
        names = list(sites)
        with self._client.pipeline(transaction=False) as pipe:
            pipe.hmget(self._keys.budgets(), names or [""])
            found = answers_of(pipe)[0] or [None] * len(names)
        known = {site.encode(): text for site, text in zip(names, found, strict=False) if text is not None}
        return readable(known, budget_of)

    def spent(self, sites: Iterable[str], now: float | None = None) -> dict[str, Spent]:
        """Return the requests of each site in the hour before `now` (epoch s of Redis)."""
        names = list(sites)
        moment = server_time(self._client) if now is None else now
        with self._client.pipeline(transaction=False) as pipe:
            for site in names:
                pipe.hgetall(self._keys.spent(site))
            return {site: _spent(fields or {}, moment) for site, fields in zip(names, answers_of(pipe), strict=True)}


def budget_of(name: str, raw: bytes) -> float:  # noqa: ARG001 - the form of what reads a field
    """Parse a budget in requests an hour. Raises ValueError."""
    return number(raw, 0.0, 1e15)


def spent_of(name: str, raw: bytes) -> tuple[Purpose, int, float]:
    """Parse purpose, start of the slot (epoch s), and number of requests. Raises ValueError."""
    return *_slot_of(name), number(raw, 0.0, 1e12)


@lru_cache(maxsize=1024)
def _slot_of(name: str) -> tuple[Purpose, int]:
    """Parse a field's name, cached because all sites have the same few names."""
    purpose, _, slot = name.partition("|")
    return Purpose(purpose), whole(slot, 0, round(LATEST))


def _spent(fields: Mapping[bytes, bytes], now: float) -> Spent:
    """Sum the slots of the window, the oldest by its part within the window."""
    sums = dict.fromkeys(Purpose, 0.0)
    for field, count in fields.items():
        try:
            purpose, slot, requests = spent_of(field.decode(), count)
        except ValueError:
            continue
        within = (slot + SLOT_S - (now - WINDOW_S)) / SLOT_S
        sums[purpose] += requests * min(max(within, 0.0), 1.0)
    return Spent(**{str(purpose): amount for purpose, amount in sums.items()})
