"""Breakers of sites and hosts in Redis: which one answers with other pages than its own, since when and why, and the time of its
next probe. A closed breaker is remembered for a day: if it opens again, probes are less frequent.

The hold of a breaker is among the holds (field `breaker:<site>`); `workers/breaker/` opens and closes breakers.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

import msgspec
import redis

from redis_components.server.untrusted_values import Count, Epoch, RecordStore
from workers.state.keys import FleetKeys

HOST = "host"
"""Kind of page in the record of a host without a site file."""


class BreakerState(StrEnum):
    """State of a breaker."""

    OPEN = "open"  # the site's requests stay in the queue; probes fetch single pages
    CLOSED = "closed"  # the site is crawled; the record is kept for a day


class Breaker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The breaker of one site. Times are Redis's, in epoch seconds."""

    CUT: ClassVar[bool] = True

    state: BreakerState
    cause: str  # a label of metrics, `refused` and the like (`workers.breaker.hosts`)
    reason: str  # one line, for people
    since: Epoch  # when it opened
    by: str = ""  # the process that opened it
    url: str = ""  # the page that opened it
    kind: str = ""  # of that page, by the application; `host`: of a host without a site file
    excerpt: str = ""  # beginning of that page's text; at most 300 characters
    step: Count = 0  # of the back-off between probes
    next_probe_at: Epoch = 0.0
    probes: Count = 0  # since it opened
    good: Count = 0  # consecutive probes that found a page of the site
    last_probe: str = ""  # result of the last one
    closed_at: Epoch | None = None

    @property
    def is_open(self) -> bool:
        """True if the site's requests are held."""
        return self.state is BreakerState.OPEN


class Breakers:
    """The breakers of all sites. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis, keys: FleetKeys | None = None) -> None:
        self._store = RecordStore(client, (keys or FleetKeys()).breakers(), Breaker)

    def all(self) -> dict[str, Breaker]:
        """Return all breakers by site, including closed ones, without unreadable ones."""
        return self._store.all()

    def open_ones(self) -> dict[str, Breaker]:
        """Return the open breakers by site."""
        return {site: breaker for site, breaker in self.all().items() if breaker.is_open}

    def get(self, site: str) -> Breaker | None:
        """Return the breaker of one site, open or closed."""
        return self._store.get(site)

    def put(self, site: str, breaker: Breaker | None) -> bool:
        """Replace the breaker that was read (None: delete it); return False without a change if another process changed it."""
        return self._store.swap(site, breaker)
