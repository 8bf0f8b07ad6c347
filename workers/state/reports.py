"""Reports of a fleet: what happened, as two bounded streams, and the problems that only single processes see.

The audit has operator, change, time and host of each act, by commands and tasks alike. News are breakers, ends of rolls, services
that sized themselves; the forum writer moves them into the log of events. Problems of disks, clocks, databases and destinations
of items are reported by the process that sees them, again every few seconds while they last, so that `trawl status`, the status
page and the exporter, on other machines, have them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import redis

from redis_components.admin.health import Problem
from redis_components.server.printable import without_class_names
from redis_components.server.untrusted_values import Epoch, JsonRecord, as_text, decoded, hash_at, readable, server_time

from .keys import FleetKeys


@dataclass(frozen=True, kw_only=True)
class Act(JsonRecord):
    """One change, or the attempt of one."""

    CUT = True

    at: Epoch
    by: str  # user@host, or the process that sent a task
    what: tuple[str, ...]  # command or task and its arguments, secrets masked
    outcome: str = ""  # `done`, `exit code 2`; "" where it is not known
    origin: str = ""  # the address of an SSH session


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

    about: str  # `breaker`, `fleet`, `crawler`
    type: str  # `opened`, `closed`, `changed`; of a crawler `started`, `ended`, `died`, `lost`
    said: str  # one sentence
    at: Epoch
    site: str = ""


def note(client: redis.Redis, one: Note) -> None:
    """Add a note. A failure is logged: the act itself must not fail because of it."""
    try:
        one.add_to(client, FleetKeys().notes())
    except redis.RedisError as error:
        logger.warning("no event of it (%s): %s", error, one.said)


EVERY_S = 10.0
COUNTS_S = 60.0
"""A process that did not repeat its problems for this time has none, or is gone, which shows elsewhere."""
MOST = 100  # processes that are shown
LONGEST = 500  # characters


@dataclass(frozen=True, kw_only=True)
class Reported:
    """The problems of one process."""

    at: Epoch  # epoch s by Redis's clock
    found: list[Problem] = field(default_factory=list)


class Troubles:
    """Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis) -> None:
        self._client, self._key = client, FleetKeys().troubles()

    def report(self, process: str, found: Sequence[Problem]) -> None:
        """Replace the problems of `process` (`worker celery@host`); none: it is well."""
        if not found:
            self._client.hdel(self._key, process)
            return
        short = [Problem(what=without_class_names(one.what)[:LONGEST], fix=one.fix[:LONGEST], grave=one.grave) for one in found]
        reported = Reported(at=server_time(self._client), found=short)
        known = readable(hash_at(self._client, self._key), reported_of)
        over = [name for name, one in known.items() if reported.at - one.at > COUNTS_S]
        self._client.hdel(self._key, process, *over)
        self._client.hset(self._key, process, msgspec.json.encode(reported))

    def all(self, now: float) -> list[Problem]:
        """Return what was reported lately, each with its process; `now` is Redis's time."""
        known = readable(hash_at(self._client, self._key), reported_of)
        late = [(process, one) for process, one in sorted(known.items()) if now - one.at < COUNTS_S][:MOST]
        return [Problem(what=f"{process}: {p.what}", fix=p.fix, grave=p.grave) for process, one in late for p in one.found]


def reported_of(name: str, raw: bytes) -> Reported:
    """Return the problems of a process as it reported them. Raises ValueError."""
    if not as_text(name).isprintable():
        raise ValueError("is not the name of a process")
    return decoded(raw, Reported)
