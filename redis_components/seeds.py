"""Start tasks from outside: seeding what is due, and pushing single tasks. Atomic, so that two beats do no harm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import redis

from .keys import CrawlKeys
from .scripts import script


@dataclass(frozen=True, kw_only=True)
class Seed:
    """A start task that is due again every `interval_s`."""

    id: str
    data: bytes
    interval_s: float


@dataclass(frozen=True, kw_only=True)
class Seeding:
    """What happened to one seed: `outcome` is seeded, pending, early (due at `at`) or full; `at` is epoch seconds (for full:
    the limit).
    """

    outcome: str
    at: float


def seed(
    client: redis.Redis, keys: CrawlKeys, seeds: Sequence[Seed], *, max_pending: int, force: bool = False, pending_s: float = 3600
) -> list[Seeding]:
    """Seed those of `seeds` that are due (all with `force`) and not pending, most overdue first, up to `max_pending` pending
    ones.

    Returns the outcome of each, in the order given. A pending mark older than `pending_s` counts as forgotten: its scan was
    lost with a dead request.
    """
    operands: list[str | bytes | int] = []
    for one in seeds:
        operands += (one.id, int(one.interval_s * 1000), one.data)
    outcomes = script("seed")(
        client,
        {"start_tasks": keys.start_tasks(), "pending": keys.pending(), "seeded": keys.seeded()},
        {"max_pending": max_pending, "pending_ms": int(pending_s * 1000), "force": int(force), "tasks": operands},
    )
    return [Seeding(outcome=outcome.decode(), at=at if outcome == b"full" else at / 1000) for outcome, at in outcomes]


def push(client: redis.Redis, keys: CrawlKeys, tasks: Iterable[bytes]) -> int:
    """Append start tasks as they are; the number of tasks that wait then."""
    return int(client.rpush(keys.start_tasks(), *tasks))
