"""Permits for requests that are none of the frontier's: probes, and pages that an operator looks at. A site gets no more with
them than without.
"""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import Iterable
from typing import NamedTuple

import redis

from redis_components.keys import lane_busy_key
from redis_components.server.scripts import script

from .limits import is_name

KEEP_S = 60.0
"""Seconds for which a request counts as at work if its process died without reporting its end."""


class Permit(NamedTuple):
    """Permission to send a request `wait_s` from now; else none may be sent before that time. `lane` "": no limits."""

    is_granted: bool
    wait_s: float
    lane: str


class LanePermits:
    """Asks the limits at `key` (`keys.limits_key`). Its methods block, and raise `redis.RedisError`."""

    def __init__(self, client: redis.Redis, key: str) -> None:
        self._client = client
        self._key = key
        self._claim = f"visit|{os.getpid()}-{uuid.uuid4().hex[:8]}"

    def ask(self, names: Iterable[str]) -> Permit:
        """Ask for one request of the first of these lanes that has limits; `end` it."""
        args = {"claim": self._claim, "keep_ms": round(KEEP_S * 1000), "names": [name for name in names if is_name(name)]}
        state, ms, lane = script("lane_permit")(self._client, {"limits": self._key}, args)
        return Permit(state != b"wait", int(ms) / 1000, lane.decode())

    def end(self, lane: str) -> None:
        """Free the place of a request that has ended."""
        self._client.zrem(lane_busy_key(self._key, lane), self._claim)

    def refused(self, lane: str, seconds: float | None) -> None:
        """Leave the site of `lane` alone for `seconds`, as it asked; None: it gave no time."""
        args = {"lane": lane, "ms": math.ceil((seconds or 0.0) * 1000)}
        script("lane_refused")(self._client, {"limits": self._key}, args)
