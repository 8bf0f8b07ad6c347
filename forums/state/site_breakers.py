"""Breakers of sites in Redis: which site answers with other pages than its own, since when and why, and the time of its next
probe. A closed breaker is remembered for a day: if it opens again, probes are less frequent.

The hold of a breaker is among the holds (field `breaker:<site>`); `forums/breaker/` opens and closes breakers.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, cast

import msgspec
import redis

from forums.state.keys import ForumFleetKeys
from redis_components.server.record_store import RecordStore
from redis_components.server.replies import as_text
from redis_components.server.untrusted_values import Count, Epoch, decoded, hash_at, readable

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
    cause: str  # a label of metrics, one of `forum_reader.page.soft_block.Cause`
    reason: str  # one line, for people
    since: Epoch  # when it opened
    by: str = ""  # the process that opened it
    url: str = ""  # the page that opened it
    kind: str = ""  # of that page: `index`, `list`, `thread`, `comments`; `host`: of a host without a site file
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

    def __init__(self, client: redis.Redis, keys: ForumFleetKeys | None = None) -> None:
        self._store = RecordStore(client, (keys or ForumFleetKeys()).breakers(), Breaker)

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


def wrong_files(client: redis.Redis, keys: ForumFleetKeys | None = None) -> dict[str, str]:
    """Return the errors of site files, by site, as of the last round of seeding."""
    found = hash_at(client, (keys or ForumFleetKeys()).wrong_sites())
    return {as_text(site): as_text(reason) for site, reason in sorted(found.items())}


def note_wrong_files(client: redis.Redis, known: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Replace the errors of site files: `known` are the stored ones, `now` the present ones."""
    key = ForumFleetKeys().wrong_sites()
    if new := {site: reason for site, reason in now.items() if known.get(site) != reason}:
        client.hset(key, mapping=cast("dict[Any, Any]", new))
    if right := known.keys() - now.keys():
        client.hdel(key, *right)


class _Drift(msgspec.Struct):
    """Part of `forums.breaker.drift.Drift` that is shown: the exporter must not import `workers`."""

    drifted: dict[str, tuple[float, float]] = {}


def drifted(client: redis.Redis, keys: ForumFleetKeys | None = None) -> dict[tuple[str, str, str], tuple[float, float]]:
    """Return the drifted figures: (site, kind of page, field or `rows`) -> value now, and the baseline: the share of rows with
    the field empty, or rows per page.
    """
    found = {}
    for name, drift in readable(hash_at(client, (keys or ForumFleetKeys()).drift()), _drift_of).items():
        site, _, kind = name.rpartition("/")
        found.update({(site, kind, figure): values for figure, values in drift.drifted.items()})
    return found


def _drift_of(name: str, raw: bytes) -> _Drift:  # noqa: ARG001 - the form of what reads a field
    return decoded(raw, _Drift)


def drift_sentence(figure: str, now: float, usual: float) -> str:
    """Describe a drift: `body is empty in 100 % of the rows, usually in 0 %`."""
    if figure == "rows":
        return f"{now:.1f} rows a page, usually {usual:.1f}"
    return f"{figure} is empty in {100 * now:.0f} % of the rows, usually in {100 * usual:.0f} %"
