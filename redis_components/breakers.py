"""The breakers of sites, as everybody can read them in Redis: which site answers with something that is no page of it, since when
and why, and when it is asked again. A breaker that closed is remembered for a day: who breaks again soon is asked more rarely.

What a breaker holds stands among the holds (`fleet_holds.py`, field `breaker:<site>`); who opens and closes it is in
`workers/breaker/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, cast

import msgspec
import redis

from .answers import as_bytes, as_text
from .keys import FleetKeys
from .scripts import script


class BreakerState(StrEnum):
    """What a breaker does."""

    OPEN = "open"  # the site's requests stay in the queue; single pages are fetched to see whether it is well again
    CLOSED = "closed"  # the site is crawled; the record is kept for a day


class Breaker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The breaker of one site. Times are Redis's, in epoch seconds."""

    state: BreakerState
    cause: str  # for metrics: `challenge`, `login`, `empty`, `format`, `refused`, `busy`, `unreachable`, `drift`, `site file`
    reason: str  # one line, for people
    since: float  # when it opened
    by: str = ""  # the process that opened it
    url: str = ""  # the page that tripped it
    kind: str = ""  # of that page: `index`, `list`, `thread`, `comments`
    excerpt: str = ""  # the beginning of what stood there, as text; at most 300 characters
    step: int = 0  # of the back-off between probes
    next_probe_at: float = 0.0
    probes: int = 0  # since it opened
    good: int = 0  # probes in a row that found a page of the site
    last_probe: str = ""  # what the last one found
    closed_at: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether the site's requests stay."""
        return self.state is BreakerState.OPEN


class Breakers:
    """The breakers of all sites. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis, keys: FleetKeys | None = None) -> None:
        self._client = client
        self._key = (keys or FleetKeys()).breakers()
        self._found: dict[str, bytes] = {}

    def all(self) -> dict[str, Breaker]:
        """By site, also those that closed; what cannot be read is left out."""
        self._found = {as_text(site): as_bytes(raw) for site, raw in self._client.hgetall(self._key).items()}
        read = {site: _read(raw) for site, raw in sorted(self._found.items())}
        return {site: breaker for site, breaker in read.items() if breaker is not None}

    def open_ones(self) -> dict[str, Breaker]:
        """By site, those that are open."""
        return {site: breaker for site, breaker in self.all().items() if breaker.is_open}

    def get(self, site: str) -> Breaker | None:
        """The breaker of one site, open or closed."""
        raw = self._client.hget(self._key, site)
        self._found[site] = as_bytes(raw or b"")
        return _read(self._found[site])

    def put(self, site: str, breaker: Breaker | None) -> bool:
        """Put it (None: nothing) in the place of what was read; False, and nothing is changed, when somebody else was quicker."""
        value = msgspec.json.encode(breaker) if breaker is not None else b""
        args = {"field": site, "expected": self._found.get(site, b""), "value": value}
        written = bool(script("swap")(self._client, {"notes": self._key}, args))
        if written:
            self._found[site] = value
        return written


def _read(raw: bytes) -> Breaker | None:
    try:
        return msgspec.json.decode(raw, type=Breaker)
    except ValueError:
        return None


def wrong_files(client: redis.Redis, keys: FleetKeys | None = None) -> dict[str, str]:
    """What is wrong with site files, by site, as the last round of seeding found it."""
    found = client.hgetall((keys or FleetKeys()).wrong_sites())
    return {as_text(site): as_text(said) for site, said in sorted(found.items())}


def note_wrong_files(client: redis.Redis, known: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Note what is wrong `now`, where `known` was noted."""
    key = FleetKeys().wrong_sites()
    if new := {site: said for site, said in now.items() if known.get(site) != said}:
        client.hset(key, mapping=cast("dict[Any, Any]", new))
    if right := known.keys() - now.keys():
        client.hdel(key, *right)


class _Drift(msgspec.Struct):
    """The part of `workers.breaker.drift.Drift` that people are shown: the exporter may not import `workers`."""

    drifted: dict[str, tuple[float, float]] = {}


def drifted(client: redis.Redis, keys: FleetKeys | None = None) -> dict[tuple[str, str, str], tuple[float, float]]:
    """What pages have no more that they used to have: (site, kind of page, field or `rows`) -> what it is now, and normally: the
    share of rows in which the field is empty, or rows per page.
    """
    found = {}
    for name, raw in sorted(client.hgetall((keys or FleetKeys()).drift()).items()):
        site, _, kind = as_text(name).rpartition("/")
        try:
            figures = msgspec.json.decode(raw, type=_Drift).drifted
        except ValueError:
            continue
        found.update({(site, kind, figure): values for figure, values in figures.items()})
    return found


def drift_sentence(figure: str, now: float, usual: float) -> str:
    """`body is empty in 100 % of the rows, usually in 0 %`."""
    if figure == "rows":
        return f"{now:.1f} rows a page, usually {usual:.1f}"
    return f"{figure} is empty in {100 * now:.0f} % of the rows, usually in {100 * usual:.0f} %"
