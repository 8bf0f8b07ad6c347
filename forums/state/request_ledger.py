"""Ledger of the requests sent to each site in the last hour, by purpose, compared with the site's budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import redis

from forums.state.keys import ForumFleetKeys
from redis_components.server.untrusted_values import LATEST, answers_of, number, readable, server_time, whole

from .keys import script

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

    def __init__(self, client: redis.Redis, keys: ForumFleetKeys | None = None) -> None:
        self._client = client
        self._keys = keys or ForumFleetKeys()

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
