"""The breakers of sites, as everybody can read them in Redis: which site answers with something other than its pages, since when
and why, and when it is asked again. A breaker that closed is remembered for a day: who breaks again soon is asked more rarely.

What a breaker holds stands among the holds (`fleet_holds.py`, field `breaker:<site>`); who opens and closes it is in
`forums/breaker/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, cast

import msgspec
import redis

from forums.state.keys import ForumFleetKeys
from redis_components.server.replies import as_text
from redis_components.server.stored_records import RecordStore
from redis_components.server.stored_values import Count, Epoch, decoded, hash_at, readable

HOST = "host"
"""The kind of page in the record of a host without a site file."""


class BreakerState(StrEnum):
    """What a breaker does."""

    OPEN = "open"  # the site's requests stay in the queue; single pages are fetched to see whether it is well again
    CLOSED = "closed"  # the site is crawled; the record is kept for a day


class Breaker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The breaker of one site. Times are Redis's, in epoch seconds."""

    state: BreakerState
    cause: str  # a label of metrics, one of `forums.sites.http.soft_block.Cause`
    reason: str  # one line, for people
    since: Epoch  # when it opened
    by: str = ""  # the process that opened it
    url: str = ""  # the page that tripped it
    kind: str = ""  # of that page: `index`, `list`, `thread`, `comments`; `host`: of a host without a site file
    excerpt: str = ""  # the beginning of what stood there, as text; at most 300 characters
    step: Count = 0  # of the back-off between probes
    next_probe_at: Epoch = 0.0
    probes: Count = 0  # since it opened
    good: Count = 0  # probes in a row that found a page of the site
    last_probe: str = ""  # what the last one found
    closed_at: Epoch | None = None

    @property
    def is_open(self) -> bool:
        """Whether the site's requests stay."""
        return self.state is BreakerState.OPEN


class Breakers:
    """The breakers of all sites. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis, keys: ForumFleetKeys | None = None) -> None:
        self._store = RecordStore(client, (keys or ForumFleetKeys()).breakers(), Breaker)

    def all(self) -> dict[str, Breaker]:
        """By site, also those that closed; what cannot be read is left out."""
        return self._store.all()

    def open_ones(self) -> dict[str, Breaker]:
        """By site, those that are open."""
        return {site: breaker for site, breaker in self.all().items() if breaker.is_open}

    def get(self, site: str) -> Breaker | None:
        """The breaker of one site, open or closed."""
        return self._store.get(site)

    def put(self, site: str, breaker: Breaker | None) -> bool:
        """Put it (None: nothing) in the place of what was read; False, and nothing is changed, when somebody else was quicker."""
        return self._store.swap(site, breaker)


def wrong_files(client: redis.Redis, keys: ForumFleetKeys | None = None) -> dict[str, str]:
    """What is wrong with site files, by site, as the last round of seeding found it."""
    found = hash_at(client, (keys or ForumFleetKeys()).wrong_sites())
    return {as_text(site): as_text(said) for site, said in sorted(found.items())}


def note_wrong_files(client: redis.Redis, known: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Note what is wrong `now`, where `known` was noted."""
    key = ForumFleetKeys().wrong_sites()
    if new := {site: said for site, said in now.items() if known.get(site) != said}:
        client.hset(key, mapping=cast("dict[Any, Any]", new))
    if right := known.keys() - now.keys():
        client.hdel(key, *right)


class _Drift(msgspec.Struct):
    """The part of `forums.breaker.drift.Drift` that people are shown: the exporter may not import `workers`."""

    drifted: dict[str, tuple[float, float]] = {}


def drifted(client: redis.Redis, keys: ForumFleetKeys | None = None) -> dict[tuple[str, str, str], tuple[float, float]]:
    """What pages have no more that they used to have: (site, kind of page, field or `rows`) -> what it is now, and normally: the
    share of rows in which the field is empty, or rows per page.
    """
    found = {}
    for name, drift in readable(hash_at(client, (keys or ForumFleetKeys()).drift()), _drift_of).items():
        site, _, kind = name.rpartition("/")
        found.update({(site, kind, figure): values for figure, values in drift.drifted.items()})
    return found


def _drift_of(name: str, raw: bytes) -> _Drift:  # noqa: ARG001 - the form of what reads a field
    return decoded(raw, _Drift)


def drift_sentence(figure: str, now: float, usual: float) -> str:
    """`body is empty in 100 % of the rows, usually in 0 %`."""
    if figure == "rows":
        return f"{now:.1f} rows a page, usually {usual:.1f}"
    return f"{figure} is empty in {100 * now:.0f} % of the rows, usually in {100 * usual:.0f} %"
