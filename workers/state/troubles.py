"""Problems that only single processes of the fleet see: disks, clocks, databases, the destinations of items.

Each reports its problems itself, again every few seconds while they last, so that `trawl status`, the status page and the
exporter, on other machines, have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import redis

from redis_components.server.health import Problem
from redis_components.server.printable import without_class_names
from redis_components.server.untrusted_values import Epoch, as_text, decoded, hash_at, readable, server_time
from workers.state.keys import FleetKeys

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

    def __init__(self, client: redis.Redis, keys: FleetKeys | None = None) -> None:
        self._client = client
        self._key = (keys or FleetKeys()).troubles()

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
