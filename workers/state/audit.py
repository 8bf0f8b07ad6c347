"""Records of what happened in a fleet, as two bounded streams: the audit, and news for subscribers.

The audit has operator, change, time and host of each act, by commands and tasks alike. News are breakers, ends of rolls, services
that sized themselves; the forum writer moves them into the log of events.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import redis

from redis_components.server.printable import SECRET_NAME, in_one_line
from redis_components.server.untrusted_values import Epoch, JsonRecord
from redis_components.server.url import masked
from workers.state.keys import FleetKeys

KEPT = 10_000
_LONGEST = 200  # characters of one argument
_SEARCHED = 2_000  # characters of one argument in which secrets are looked for, before it is cut
_SECRET = re.compile(rf"({SECRET_NAME}[\"']?\s*+[=:]).+", re.IGNORECASE | re.DOTALL)
_NAME = re.compile(SECRET_NAME, re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Act(JsonRecord):
    """One change, or the attempt of one."""

    CUT = True

    at: Epoch
    by: str  # user@host, or the process that sent a task
    what: tuple[str, ...]  # command or task and its arguments, secrets masked
    outcome: str = ""  # `done`, `exit code 2`; "" where it is not known
    origin: str = ""  # the address of an SSH session


def without_secrets(arguments: Iterable[object]) -> tuple[str, ...]:
    """Return arguments as they may be kept: without passwords of URLs and values that are named like a secret, also where the
    value is the next argument (`--token VALUE`).
    """
    kept = []
    is_value = False
    for text in (str(one)[:_SEARCHED] for one in arguments):
        shown = _SECRET.sub(r"\1***", masked(text) if "://" in text else text)
        kept.append("***" if is_value and not text.startswith("-") else in_one_line(shown)[:_LONGEST])
        is_value = text.startswith("-") and bool(_NAME.fullmatch(text))
    return tuple(kept)


def append(client: redis.Redis, act: Act) -> None:
    """Add an act. Raises `redis.RedisError`."""
    client.xadd(FleetKeys().audit(), {"act": act.to_json()}, maxlen=KEPT, approximate=True)


def latest(client: redis.Redis, limit: int) -> list[Act]:
    """Return the last acts, the newest first; unreadable ones are left out. Raises `redis.RedisError`."""
    found = []
    for _, fields in client.xrevrange(FleetKeys().audit(), count=limit) or ():
        try:
            found.append(Act.from_json((fields or {})[b"act"]))
        except (ValueError, KeyError):
            continue
    return found


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
