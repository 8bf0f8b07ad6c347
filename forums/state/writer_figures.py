"""Counters of the forum writer for Prometheus: stored changes, and the time for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import redis

from forums.state.keys import ForumFleetKeys
from redis_components.server.untrusted_values import WrongValue, hash_at, number, readable

MOST_SITES = 500  # in the exporter: a label for each
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

    def __init__(self, client: redis.Redis, keys: ForumFleetKeys | None = None) -> None:
        self._client = client
        self._key = (keys or ForumFleetKeys()).writer_figures()

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
