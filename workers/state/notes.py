"""News of the fleet for subscribers: breakers, ends of rolls, services that sized themselves.

A bounded stream in Redis; the forum writer moves it into the log of events. Acts of operators are in the audit (`audit.py`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import redis

from redis_components.server.record_store import JsonRecord
from redis_components.server.untrusted_values import Epoch
from workers.state.keys import FleetKeys

KEPT = 10_000

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Note(JsonRecord):
    """One thing that happened."""

    CUT = True

    about: str  # `breaker`, `fleet`
    type: str  # `opened`, `closed`, `changed`
    said: str  # one sentence
    at: Epoch
    site: str = ""


def note(client: redis.Redis, one: Note) -> None:
    """Add a note. A failure is logged: the act itself must not fail because of it."""
    fields: Any = {"note": one.to_json()}
    try:
        client.xadd(FleetKeys().notes(), fields, maxlen=KEPT, approximate=True)
    except redis.RedisError as error:
        logger.warning("no event of it (%s): %s", error, one.said)
