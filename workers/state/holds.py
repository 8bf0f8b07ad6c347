"""Holds of an operator in a whole fleet, their way to each crawl, also to one of a service that comes later, and breakers.

The hash `FleetKeys.holds` has the holds of more than one crawl, and those that only a fleet has: stopped services.
Holds of the whole fleet, or of a site everywhere, are copied into the holds of each service's crawl, which its crawlers obey. A
service that is held directly is held there only.

A closed breaker is remembered for a day: if it opens again, probes are less frequent. The hold of a breaker is among the holds
(field `breaker:<site>`); `workers/breaker/` opens and closes breakers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import msgspec
import redis

from redis_components.frontier import holds
from redis_components.frontier.holds import (
    BREAKER,
    FLEET,
    FLEET_BREAKER,
    FLEET_SITE,
    SERVICE,
    SITE,
    SPIDER,
    Hold,
    HoldKind,
    parsed,
)
from redis_components.keys import CrawlKeys, CrawlRecords
from redis_components.server.untrusted_values import Count, Epoch, RecordStore, answers_of
from workers.state.keys import FleetKeys


@dataclass(frozen=True, kw_only=True)
class Held:
    """One thing that is held, wherever it stands in Redis."""

    hold: Hold
    service: str = ""  # "": in all of them
    site: str = ""  # "": all
    by_breaker: bool = False  # by that of the site, which lets go without a command

    @property
    def what(self) -> str:
        """`the fleet`, `forum_detail`, `site demo`, `site demo in forum_detail`."""
        if self.site:
            return f"site {self.site} in {self.service}" if self.service else f"site {self.site}"
        return self.service or "the fleet"


def word_of(service: str, held: Iterable[Held]) -> HoldKind | None:
    """Return the strongest hold of all of a service, or None: a stop outweighs a pause, a pause a drain."""
    words = {one.hold.word for one in held if one.service in ("", service) and not one.site}
    return next((word for word in (HoldKind.STOP, HoldKind.PAUSE, HoldKind.DRAIN) if word in words), None)


class FleetHolds:
    """Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis) -> None:
        self._client, self._keys = client, FleetKeys()

    def fields(self) -> dict[str, Hold]:
        """Return the holds in the fleet's own hash, by field."""
        return holds.read(self._client, self._keys)

    def change(self, changes: Mapping[str, Hold | None]) -> int:
        """Hold, or with None let go, in the fleet's own hash; how many fields are not what they were."""
        return holds.change(self._client, self._keys, changes)

    def spread(self, services: Iterable[str], fields: Mapping[str, Hold] | None = None) -> list[str]:
        """Bring what holds for the fleet, which `fields` has where it is known, into the crawls of these services; returns those
        that were changed. Safe to repeat.
        """
        wanted, changed = _for_crawls(self.fields() if fields is None else fields), []
        for service, (keys, entries) in self._of_crawls(services).items():
            copies = (FLEET_SITE, FLEET_BREAKER)
            present = {name: hold for name, hold in entries.items() if name == FLEET or name.startswith(copies)}
            changes: dict[str, Hold | None] = {name: None for name in present if name not in wanted}
            changes |= {name: hold for name, hold in wanted.items() if present.get(name) != hold}
            if changes and holds.change(self._client, keys, changes):
                changed.append(service)
        return changed

    def all(self, services: Iterable[str]) -> list[Held]:
        """Return all holds of the fleet and of the crawls of these services, the widest first."""
        found = [held for name, hold in sorted(self.fields().items()) if (held := _held_in_fleet(name, hold))]
        for service, (_, entries) in self._of_crawls(services).items():
            found += [held for name, hold in sorted(entries.items()) if (held := _held_in_crawl(service, name, hold))]
        return sorted(found, key=lambda held: (bool(held.service), bool(held.site), held.service))

    def _of_crawls(self, services: Iterable[str]) -> dict[str, tuple[CrawlKeys, dict[str, Hold]]]:
        """Return the keys and the holds of the crawls of these services."""
        crawls = CrawlRecords(self._client, self._keys).keys_of_all(services)
        with self._client.pipeline(transaction=False) as pipe:
            for keys in crawls.values():
                pipe.hgetall(keys.holds())
            found = answers_of(pipe)
        return {service: (keys, parsed(raw or {})) for (service, keys), raw in zip(crawls.items(), found, strict=True)}


def _for_crawls(fields: Mapping[str, Hold]) -> dict[str, Hold]:
    """Return the fields that each crawl has because the fleet has them."""
    wanted = {name: hold for name, hold in fields.items() if hold.word is not HoldKind.STOP}
    return {f"{FLEET}:{name}" if name != FLEET else FLEET: hold for name, hold in wanted.items() if _is_for_crawls(name)}


SLOT = "slot:"
"""Field of a stop of one slot, `slot:books/1`, by a command of 49295b45: obeyed, and ended with those of the service."""


def _is_for_crawls(name: str) -> bool:
    return name == FLEET or name.startswith((SITE, BREAKER))


def _held_in_fleet(name: str, hold: Hold) -> Held | None:
    if name == FLEET:
        return Held(hold=hold)
    if name.startswith(SITE):
        return Held(hold=hold, site=name.removeprefix(SITE))
    if name.startswith(BREAKER):
        return Held(hold=hold, site=name.removeprefix(BREAKER), by_breaker=True)
    found = next((one for one in (SERVICE, SLOT) if name.startswith(one)), None)
    return Held(hold=hold, service=name.removeprefix(found)) if found else None


def _held_in_crawl(service: str, name: str, hold: Hold) -> Held | None:
    """Return a hold of a crawl; None for a copy of the fleet's."""
    if name == SPIDER:
        return Held(hold=hold, service=service)
    return Held(hold=hold, service=service, site=name.removeprefix(SITE)) if name.startswith(SITE) else None


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


class Breakers(RecordStore[Breaker]):
    """The breakers of all sites, open and closed. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__(client, FleetKeys().breakers(), Breaker)

    def open_ones(self) -> dict[str, Breaker]:
        """Return the open breakers by site."""
        return {site: breaker for site, breaker in self.all().items() if breaker.is_open}
