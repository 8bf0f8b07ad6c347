"""Start tasks from outside: seeding forums, and pushing single tasks. Atomic, so that two beats do no harm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import redis

from .keys import CrawlKeys
from .scripts import script

PENDING_S = 3600.0
"""A pending mark older than this counts as forgotten: its scan was lost with a dead request."""


@dataclass(frozen=True, kw_only=True)
class Seed:
    """A start task; `wait_s` must lie between two seedings of it."""

    id: str
    data: bytes
    wait_s: float


@dataclass(frozen=True, kw_only=True)
class Seeding:
    """What happened to one seed: `outcome` is seeded, pending, early (due at `at`) or full; `at` is epoch seconds (for full:
    the limit).
    """

    outcome: str
    at: float


def seed(
    client: redis.Redis,
    keys: CrawlKeys,
    seeds: Sequence[Seed],
    *,
    max_pending: int,
    force: bool = False,
    pending_s: float = PENDING_S,
) -> list[Seeding]:
    """Seed those of `seeds` that are not pending and were not seeded just now (with `force` those, too), the first ones first,
    up to `max_pending` pending ones. Returns the outcome of each, in the order given.
    """
    operands: list[str | bytes | int] = []
    for one in seeds:
        operands += (one.id, int(one.wait_s * 1000), one.data)
    outcomes = script("seed")(
        client,
        {
            "start_tasks": keys.start_tasks(),
            "pending": keys.pending(),
            "seeded": keys.seeded(),
            "turns": keys.turns(),
        },
        {"max_pending": max_pending, "pending_ms": int(pending_s * 1000), "force": int(force), "tasks": operands},
    )
    return [Seeding(outcome=outcome.decode(), at=at if outcome == b"full" else at / 1000) for outcome, at in outcomes]


def pending(client: redis.Redis, keys: CrawlKeys, ids: Sequence[str], now: float) -> dict[str, float]:
    """Which of these start tasks are pending at `now`, since when (epoch s)."""
    found = cast("list[bytes | None]", client.hmget(keys.pending(), list(ids))) if ids else []
    marks = {name: float(text) / 1000 for name, text in zip(ids, found, strict=True) if text is not None}
    return {name: since for name, since in marks.items() if since > now - PENDING_S}


def push(client: redis.Redis, keys: CrawlKeys, tasks: Iterable[bytes]) -> int:
    """Append start tasks as they are; the number of tasks that wait then."""
    return int(client.rpush(keys.start_tasks(), *tasks))
