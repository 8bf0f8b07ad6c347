"""Holds of an operator in a crawl: pauses and drains of its spider and of sites, in Redis and as a crawler obeys them.

A crawler learns of a change with its next exchange. A site's name is `meta["site"]` of a request where that is text, else each
of `host:port`, host and the host's parent domains, so that `example.com` also holds `www.example.com`.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol
from urllib.parse import urlsplit

import redis

from redis_components.keys import CrawlKeys
from redis_components.server.scripts import script
from redis_components.server.untrusted_values import Epoch, JsonRecord, hash_at
from redis_components.utils import bytes_to_str

from .messages import HeldNow, Park

logger = logging.getLogger(__name__)

SPIDER, FLEET = "spider", "fleet"
"""Fields of a crawl's holds: the whole crawl, held alone or with the fleet."""
SITE, FLEET_SITE = "site:", "fleet:site:"
"""The beginnings of the fields that hold one site."""
BREAKER, FLEET_BREAKER = "breaker:", "fleet:breaker:"
"""The beginnings of the fields by which its breaker holds a site, in the fleet's own hash and in a crawl's."""
SERVICE = "service:"
"""The beginning of the field of a service that is stopped, in the fleet's own hash."""
VERSION = "version"
REQUESTS, TASKS = "requests:", "tasks:"
"""The beginnings of the names of lots, before that of the site."""


class HoldKind(StrEnum):
    """The kinds of holds."""

    PAUSE = "pause"  # no request is started; crawlers stay, and queued requests wait
    DRAIN = "drain"  # nothing new comes in; queued requests, and the ones that follow from them, are crawled to the end
    STOP = "stop"  # crawlers end gracefully and stay away; only a fleet knows it, a crawl without a fleet does not

    @property
    def state(self) -> str:
        """The state under this hold: `paused`, `draining`, `stopped`."""
        return {HoldKind.PAUSE: "paused", HoldKind.DRAIN: "draining", HoldKind.STOP: "stopped"}[self]


@dataclass(frozen=True, kw_only=True)
class Hold(JsonRecord):
    """One hold: its kind, time, operator and reason."""

    word: HoldKind
    at: Epoch = 0.0  # epoch s, Redis's clock
    by: str = ""  # user@host, or a task
    reason: str = ""
    at_once: bool = False  # of a stop: pages in flight are not finished
    removed: bool = False  # of the pause of a site: its data was removed, and what still comes of it is dropped

    @property
    def state(self) -> str:
        """The state under this hold, `removed` for a removed site."""
        return "removed" if self.removed else self.word.state

    def __str__(self) -> str:
        """Return the hold in one line: `paused by ops@host: the site complains`."""
        return f"{self.state} by {self.by or 'an operator'}{f': {self.reason}' if self.reason else ''}"


def parsed(fields: Mapping[Any, Any]) -> dict[str, Hold]:
    """Return the holds in a hash, by field; unreadable ones are left out, and logged."""
    found = {}
    for raw_field, raw in fields.items():
        name = raw_field.decode("utf-8", "backslashreplace") if isinstance(raw_field, bytes) else raw_field
        if name == VERSION:
            continue
        try:
            found[name] = Hold.from_json(raw)
        except ValueError as exc:
            logger.warning("the hold %r is not understood and not obeyed: %s", name, exc)
    return found


@dataclass(frozen=True, kw_only=True)
class Holds:
    """All holds of one crawl, as its crawlers obey them. A pause outweighs a drain."""

    entries: Mapping[str, Hold] = field(default_factory=dict)
    paused: bool = field(init=False)
    """No request is started."""
    feeding: bool = field(init=False)
    """Start tasks are leased."""
    sites: Mapping[str, HoldKind] = field(init=False)
    """The holds by site."""

    def __post_init__(self) -> None:
        whole = {hold.word for name, hold in self.entries.items() if name in (SPIDER, FLEET)}
        sites: dict[str, HoldKind] = {}
        for name, hold in self.entries.items():
            for prefix in (SITE, FLEET_SITE, FLEET_BREAKER):
                if name.startswith(prefix) and sites.get(name[len(prefix) :]) is not HoldKind.PAUSE:
                    sites[name[len(prefix) :]] = hold.word
        for attribute, value in (
            ("paused", HoldKind.PAUSE in whole),
            ("feeding", not whole),
            ("sites", {site: word for site, word in sites.items() if word is not HoldKind.STOP}),
        ):
            object.__setattr__(self, attribute, value)

    def __str__(self) -> str:
        """Return one line for the log."""
        return "; ".join(f"{name} {hold}" for name, hold in sorted(self.entries.items())) or "nothing"

    def site_of(self, names: Iterator[str], *, task: bool) -> str | None:
        """Return the first of these names by which a request, or a start task, is held; None where it is not."""
        for name in names:
            word = self.sites.get(name)
            if word is HoldKind.PAUSE or (task and word is HoldKind.DRAIN):
                return name
        return None

    def keeps_back(self, names: Iterator[str]) -> bool:
        """Return True if a request with these names must not be sent now."""
        return self.paused or (bool(self.sites) and self.site_of(names, task=False) is not None)

    def is_held(self, lot: str) -> bool:
        """Return True if a lot of parked requests has to stay where it is."""
        site = lot.partition(":")[2]
        return self.site_of(iter((site,)), task=lot.startswith(TASKS)) is not None


_LONGEST_HOST = 255  # characters that a name can have; each of its parts is looked at


def names_of(site: object, url: str) -> Iterator[str]:
    """Yield the names by which a request can be held: its `meta["site"]`, else those in its URL, the nearest first."""
    if isinstance(site, str) and site:
        yield site
        return
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return
    if len(host) > _LONGEST_HOST:
        return
    if port is not None:
        yield f"{host}:{port}"
    if _is_address(host):
        yield host
        return
    while host:
        yield host
        host = host.partition(".")[2]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def lot_of(site: str, *, task: bool) -> str:
    """Return the lot of parked requests or start tasks of a site."""
    return f"{TASKS if task else REQUESTS}{site}"


class HoldKeys(Protocol):
    """Keys of a crawl, or of the fleet."""

    def holds(self) -> str:
        """Return the key of the holds."""


def read(client: redis.Redis, keys: HoldKeys) -> dict[str, Hold]:
    """Return the holds of one crawl, or those in the fleet's own hash, by field."""
    return parsed(hash_at(client, keys.holds()))


def why_not_seeded(
    client: redis.Redis, fleet: HoldKeys, crawl: HoldKeys, service: str, sites: Collection[str]
) -> dict[str, Hold]:
    """Return the sites that get no start tasks of this service, with the hold that is the reason."""
    held = [*read(client, fleet).items(), *read(client, crawl).items()]
    found = {}
    for site in sites:
        names = (FLEET, SERVICE + service, SPIDER, SITE + site, BREAKER + site)
        if of_site := [hold for name, hold in held if name in names]:
            found[site] = of_site[0]
    return found


def change(client: redis.Redis, keys: HoldKeys, changes: Mapping[str, Hold | None]) -> int:
    """Hold, or with None let go, in a crawl or in the fleet's own hash; return the number of changed fields. Repeatable."""
    operands = [text for name, hold in changes.items() for text in (name, hold.to_json() if hold else "")]
    return int(script("hold")(client, keys, {"changes": operands})) if operands else 0


def parked_lots(client: redis.Redis, keys: CrawlKeys) -> dict[str, int]:
    """Return the number of parked requests and start tasks, by lot."""
    return {bytes_to_str(lot): int(n) for lot, n in client.hgetall(keys.parked()).items()}


MOST_TASKS = 500
"""Start tasks to lease at once where those before them were parked: the spider reads each of them while the reactor waits."""


UNKNOWN = "?"
"""No version: the answer then has all holds."""


class HoldPolicy:
    """Parks held leases, and puts released ones back.

    Where the head of the queue is of a held site, twice as much is leased each time, so that what lies behind it is reached soon.
    """

    def __init__(self) -> None:
        self.version = ""
        """Of the holds that this process knows."""
        self.holds = Holds()
        self.paused = False  # as `holds` has it; asked for several times in each exchange
        self.feeding = True
        self._back: list[str] = []  # lots that are not held any more and have entries, as far as we know
        self._parked = 0  # requests, since the last exchange that leased some
        self._parked_tasks = 0

    def learn(self, held: HeldNow) -> None:
        """Take over a new version of the holds."""
        self.version = held.version
        self.holds = Holds(entries=parsed(held.fields))
        self.paused, self.feeding = self.holds.paused, self.holds.feeding
        self._back = [lot for lot in held.lots if not self.holds.is_held(lot)]

    def park(self, lease_id: str, names: Iterator[str], *, task: bool) -> Park | None:
        """Return the parking of a lease whose request has these names; None where it is not held."""
        site = self.holds.site_of(names, task=task)
        if site is None:
            return None
        if task:
            self._parked_tasks += 1
        else:
            self._parked += 1
        return Park(lease_id, lot_of(site, task=task))

    def want(self, wanted: int, held: int, most: int) -> int:
        """Return the requests to lease where `wanted` would do without holds; no more than `most` with the `held` ones."""
        if not self._parked:
            return wanted
        return min(wanted + 2 * self._parked, max(wanted, most - held)) if wanted else 0

    def want_tasks(self, wanted: int) -> int:
        """Start tasks to lease, in the same way."""
        return min(wanted + 2 * self._parked_tasks, max(wanted, MOST_TASKS)) if wanted else 0

    def asked(self, *, requests: int, tasks: int) -> None:
        """Note that an exchange asks for this number."""
        if requests:
            self._parked = 0
        if tasks:
            self._parked_tasks = 0

    @property
    def unpark(self) -> str:
        """The lot to put back from in the next exchange; "" for none."""
        return self._back[-1] if self._back else ""

    def put_back(self, lot: str, left: int) -> None:
        """Note that an exchange has put back from `lot`, with `left` entries remaining."""
        if not left and lot in self._back:
            self._back.remove(lot)


def lots_in(parks: Iterable[Park], unpark: str) -> dict[str, int]:
    """Return the lots of a message, with their places from 1; `unpark` stands first."""
    lots = dict.fromkeys(([unpark] if unpark else []) + [park.lot for park in parks])
    return {lot: place for place, lot in enumerate(lots, 1)}
