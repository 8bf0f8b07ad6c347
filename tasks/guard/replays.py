"""Refuses a signed message that was run before: who can write to Redis can put a captured one into its queue again.

A pool process remembers the signature in Redis in the moment before it runs the task, as long as the signature holds. There is
no redelivery to mistake for a replay: messages are gone when a worker takes them, and one that a worker gives back as it ends was
not begun (`celeryconfig.py`). A replay by `trawl dead messages replay --sign`, a retry and the next task of a chain have
other signatures. Rounds of beat have `Schedules.begin` for it.
"""

from __future__ import annotations

from hashlib import sha256

import redis

from redis_components.server.signing import AHEAD_S
from workers.environment.variables import Signing
from workers.state.keys import FleetKeys


def is_first_run(client: redis.Redis, signature: str, keys: FleetKeys | None = None) -> bool:
    """Return True if no process has begun the message with this signature, and mark it as begun. Raises redis.RedisError."""
    key = (keys or FleetKeys()).begun_message(sha256(signature.encode()).hexdigest()[:32])
    holds_s = Signing.read().signing_max_age + 2 * AHEAD_S  # by the clocks of the signer and of any worker
    return bool(client.set(key, b"1", nx=True, ex=round(holds_s)))
