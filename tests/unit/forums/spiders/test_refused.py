"""A callback that asks a Redis which refuses: it waits, as the frontier does, and fails only where the command is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import redis
from redis.exceptions import ClusterError, NoPermissionError, OutOfMemoryError, ReadOnlyError

from forums.spiders import base
from forums.spiders.base import ForumSpider
from redis_components.server.scripts import SLOWEST_RETRY_S

REFUSALS = [
    redis.ConnectionError("away"),
    redis.TimeoutError("slow"),
    redis.AuthenticationError("another password"),
    NoPermissionError("NOPERM"),
    ReadOnlyError("READONLY"),
    OutOfMemoryError("command not allowed"),
    redis.ResponseError("MISCONF Redis is configured to save RDB snapshots"),
    redis.ResponseError("NOREPLICAS Not enough good replicas to write."),
    redis.ResponseError("BUSY Redis is busy running a script"),
    ClusterError("moved"),
]


def test_it_waits_for_a_redis_that_refuses_and_not_for_a_wrong_command(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def at_once(ask: Callable[[], str]) -> str:
        return ask()

    async def paused(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(base, "in_thread", at_once)
    monkeypatch.setattr(base, "sleep", paused)
    answers = [*REFUSALS]

    def ask() -> str:
        if answers:
            raise answers.pop()
        return "told"

    assert asyncio.run(ForumSpider.in_thread(ask)) == "told"
    assert len(pauses) == len(REFUSALS)
    assert max(pauses) == SLOWEST_RETRY_S
    answers = [redis.ResponseError("WRONGTYPE Operation against a key")]
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        asyncio.run(ForumSpider.in_thread(ask))
