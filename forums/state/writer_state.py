"""State of the forum writer in Redis: the database that a fleet stores into, by the random id in its tables, and the one whose
threads Redis remembers; and for Prometheus the stored changes, the time for them, and the delays of posts and comments from
publication to the database.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import redis

from redis_components.server.untrusted_values import WrongValue, as_text, hash_at, number, readable, server_time

from .keys import ForumFleetKeys, script

ANOTHER_DATABASE = (
    "The database is another one than the one whose threads Redis remembers: what only that one held is not read again."
    " Run `trawl forums forget --all`, or `trawl db move` back to the former database."
)
LATELY_S = 60.0  # a claim is renewed each time that items are stored, usually each second


class DatabaseClaim:
    """The claim of one database for the fleet. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._key = ForumFleetKeys().database()

    def take(self, identity: str, place: str) -> str | None:
        """Claim the database with this id, for good; return the place of the fleet's where that is another one.

        Safe to repeat. The first database that is written is the fleet's, until `move`.
        """
        ours, theirs = script("claim_database")(self._client, {"database": self._key}, {"identity": identity, "place": place})
        return None if ours else as_text(theirs)

    def holder(self) -> tuple[str, str] | None:
        """Return id and place of the fleet's database; None where none is claimed yet."""
        identity, place = self._fields("written", "place")
        return None if identity is None else (identity, place or "")

    def idle_s(self) -> float:
        """Return for how many seconds nothing was stored in the fleet's database."""
        (at,) = self._fields("at")
        return server_time(self._client) - float(at or 0)

    def move(self, identity: str, place: str) -> None:
        """Make this database the fleet's."""
        self._client.hset(self._key, mapping={"written": identity, "place": place})
        self._client.hdel(self._key, "refused", "refused_at")

    def refused(self) -> str | None:
        """Return the place of another database that a writer had within the last minute."""
        place, at = self._fields("refused", "refused_at")
        return place if at and server_time(self._client) - float(at) < LATELY_S else None

    def is_another(self) -> bool:
        """Return True if the records of threads speak of another database than the fleet's."""
        known, written = self._fields("known", "written")
        return known is not None and written is not None and known != written

    def forget(self) -> None:
        """Note that there are no records any more: the next database that is written is the one that they speak of."""
        self._client.hdel(self._key, "known")

    def _fields(self, *names: str) -> list[str | None]:
        values: Any = self._client.hmget(self._key, [*names])
        return [None if value is None else as_text(value) for value in values]


BOUNDS_S = (5, 15, 60, 300, 900, 3600, 21_600, 86_400)
MOST_SITES = 500  # in the exporter: a label for each
_PLACES = (*(str(bound) for bound in BOUNDS_S), "inf")


@dataclass(frozen=True, kw_only=True)
class DelayHistogram:
    """Histogram of one site, since its counts began."""

    counts: tuple[int, ...]  # by BOUNDS_S and above, not cumulative
    sum_s: float

    @property
    def buckets(self) -> list[tuple[str, float]]:
        """Return the buckets of Prometheus: upper bound and cumulative count."""
        bounds = (*(f"{bound:.1f}" for bound in BOUNDS_S), "+Inf")
        return list(zip(bounds, map(float, accumulate(self.counts)), strict=True))


class PublicationDelays:
    """The histograms of all sites. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._key = ForumFleetKeys().delays()

    def add(self, delays: Mapping[str, Iterable[float]]) -> None:
        """Count these seconds, by site. Not idempotent: a writer that dies between its commit and this call loses a batch of
        them.
        """
        with self._client.pipeline() as pipe:
            for site, found in delays.items():
                seconds = list(found)
                for place, times in Counter(_PLACES[bisect_left(BOUNDS_S, one)] for one in seconds).items():
                    pipe.hincrby(self._key, f"{site}|{place}", times)
                pipe.hincrbyfloat(self._key, f"{site}|sum", sum(seconds))
            pipe.execute()

    def read(self) -> dict[str, DelayHistogram]:
        """Return the histograms by site, without unreadable values."""
        fields = readable(hash_at(self._client, self._key), delay_of)
        sites = sorted({name.rpartition("|")[0] for name in fields})[:MOST_SITES]
        return {
            site: DelayHistogram(
                counts=tuple(int(fields.get(f"{site}|{place}", 0)) for place in _PLACES), sum_s=fields.get(f"{site}|sum", 0.0)
            )
            for site in sites
        }


def delay_of(name: str, raw: bytes) -> float:
    """Parse a count, or a sum of seconds. Raises ValueError."""
    site, _, place = name.rpartition("|")
    if not site or place not in (*_PLACES, "sum"):
        raise ValueError("is not a count of delays")
    return number(raw, 0.0, 1e18)


_CHANGES = ("new", "restored", "moved", "edited", "corrected", "deleted")
_ROWS = ("post", "comment")
_WORK = ("batches", "items", "seconds")


@dataclass(frozen=True, kw_only=True)
class WriterFigures:
    """Counters since the start; they are lost with Redis."""

    changes: Mapping[tuple[str, str, str], float] = field(default_factory=dict)  # (site, post or comment, kind of change)
    batches: float = 0.0
    items: float = 0.0  # that left the streams, including refused ones
    seconds: float = 0.0  # of storing them


class WriterCounts:
    """Counters in Redis. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._key = ForumFleetKeys().writer_figures()

    def add(self, changes: Mapping[str, int], *, batches: int, items: int, seconds: float) -> None:
        """Add changes (`<site>|<post or comment>|<kind>` -> number), and work. Not idempotent: a writer that dies between its
        commit and this call loses the counts of its last batches.
        """
        with self._client.pipeline() as pipe:
            for name, times in changes.items():
                pipe.hincrby(self._key, name, times)
            pipe.hincrby(self._key, "batches", batches)
            pipe.hincrby(self._key, "items", items)
            pipe.hincrbyfloat(self._key, "seconds", seconds)
            pipe.execute()

    def read(self) -> WriterFigures:
        """Return the counters, without unreadable values."""
        fields = readable(hash_at(self._client, self._key), figure_of)
        work = {name: fields.pop(name, 0.0) for name in _WORK}
        sites = set(sorted({name.partition("|")[0] for name in fields})[:MOST_SITES])
        split = ((tuple(name.split("|")), value) for name, value in sorted(fields.items()))
        return WriterFigures(changes={(a, b, c): value for (a, b, c), value in split if a in sites}, **work)


def figure_of(name: str, raw: bytes) -> float:
    """Parse a count, or the sum of seconds. Raises ValueError."""
    site, *rest = name.split("|")
    if name not in _WORK and not (site and len(rest) == 2 and rest[0] in _ROWS and rest[1] in _CHANGES):
        raise WrongValue("is not a count of the writer's")
    return number(raw, 0.0, 1e18)
