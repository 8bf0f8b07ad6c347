"""Requests that each site was sent in the last hour, by what for: what its budget is held against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import redis

from forums.state.keys import ForumFleetKeys
from forums.state.scripts import script
from redis_components.server.replies import server_time
from redis_components.server.stored_values import LATEST, answers_of, number, readable, whole

SLOT_S = 300
WINDOW_S = 3600
KEEP_S = 2 * WINDOW_S


class Purpose(StrEnum):
    """What requests are for."""

    SCAN = "scan"  # list pages
    DETAIL = "detail"  # threads that are new or have changed
    CHECK = "check"  # threads looked at again for edits and deletions
    BACKFILL = "backfill"  # history


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What one finished scan or check has cost. `name` tells it from every other one of its site."""

    site: str
    name: str
    purpose: Purpose
    ended_at: float  # epoch s
    requests: int


@dataclass(frozen=True, kw_only=True)
class Spent:
    """Requests of the last hour."""

    scan: float = 0.0
    detail: float = 0.0
    check: float = 0.0
    backfill: float = 0.0

    def on(self, purpose: Purpose) -> float:
        """For one purpose."""
        return float(getattr(self, purpose))

    @property
    def live(self) -> float:
        """For what is new."""
        return self.scan + self.detail

    @property
    def later(self) -> float:
        """For what may wait."""
        return self.check + self.backfill

    @property
    def total(self) -> float:
        return self.live + self.later

    def compared(self, budget: float) -> str:
        """`over budget: 36 of 60 requests in the last hour`, for people."""
        return f"over budget: {self.total:.0f} of {budget:.10g} requests in the last hour"


class Ledger:
    """Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis, keys: ForumFleetKeys | None = None) -> None:
        self._client = client
        self._keys = keys or ForumFleetKeys()

    def add(self, spendings: Iterable[Spending]) -> int:
        """Count what was spent; returns how many were not counted before."""
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

    def say_budgets(self, budgets: Mapping[str, float]) -> None:
        """Say how many requests an hour each site may be sent."""
        if budgets:
            self._client.hset(self._keys.budgets(), mapping={site: f"{n:.10g}" for site, n in budgets.items()})

    def budgets(self, sites: Iterable[str]) -> dict[str, float]:
        """What was said of these sites."""
        names = list(sites)
        with self._client.pipeline(transaction=False) as pipe:
            pipe.hmget(self._keys.budgets(), names or [""])
            found = answers_of(pipe)[0] or [None] * len(names)
        known = {site.encode(): text for site, text in zip(names, found, strict=False) if text is not None}
        return readable(known, budget_of)

    def spent(self, sites: Iterable[str], now: float | None = None) -> dict[str, Spent]:
        """What each site was sent in the hour before `now` (epoch s of Redis)."""
        names = list(sites)
        moment = server_time(self._client) if now is None else now
        with self._client.pipeline(transaction=False) as pipe:
            for site in names:
                pipe.hgetall(self._keys.spent(site))
            return {site: _spent(fields or {}, moment) for site, fields in zip(names, answers_of(pipe), strict=True)}


def budget_of(name: str, raw: bytes) -> float:  # noqa: ARG001 - the form of what reads a field
    """Requests an hour. Raises ValueError."""
    return number(raw, 0.0, 1e15)


def spent_of(name: str, raw: bytes) -> tuple[Purpose, int, float]:
    """What for, the start of the slot (epoch s), and how many requests. Raises ValueError."""
    return *_slot_of(name), number(raw, 0.0, 1e12)


@lru_cache(maxsize=1024)
def _slot_of(name: str) -> tuple[Purpose, int]:
    """All sites have the same few names."""
    purpose, _, slot = name.partition("|")
    return Purpose(purpose), whole(slot, 0, round(LATEST))


def _spent(fields: Mapping[bytes, bytes], now: float) -> Spent:
    """Of the oldest slot, which reaches out of the window, the part that lies within."""
    sums = dict.fromkeys(Purpose, 0.0)
    for field, count in fields.items():
        try:
            purpose, slot, requests = spent_of(field.decode(), count)
        except ValueError:
            continue
        within = (slot + SLOT_S - (now - WINDOW_S)) / SLOT_S
        sums[purpose] += requests * min(max(within, 0.0), 1.0)
    return Spent(**{str(purpose): amount for purpose, amount in sums.items()})
