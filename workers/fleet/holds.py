"""Pausing, draining, stopping and resuming: the bodies of the commands and tasks, and what the reconciler and the seeder ask.

What the breaker of a site or host holds (`workers/breaker/`) is shown here but not released: the breaker closes when a probe
finds the site well, or by `trawl resume --breaker`.

A *pause* starts no request; crawlers stay, and what is queued waits. A *drain* lets nothing new in; what is queued is crawled to
the end. A *stop* ends crawlers gracefully and keeps them away; the size of the service is kept. A *resume* ends all of these.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import redis

from redis_components.errors import ConfigError, OnHold, did_you_mean
from redis_components.frontier import holds
from redis_components.frontier.holds import BREAKER, FLEET, SERVICE, SITE, SPIDER, Hold, HoldKind, why_not_seeded
from redis_components.keys import keys_in
from redis_components.server.untrusted_values import server_time
from workers.application import application
from workers.state.holds import SLOT, FleetHolds, Held
from workers.state.keys import FleetKeys
from workers.state.registry import Registry

from .sizes import declared_fleet

_SITE = re.compile(r"[^\s\x00-\x1f/]{1,253}")
_HOST = re.compile(r".*[.:].*|localhost", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class HoldTarget:
    """The object of a hold: services, a site; `whole` alone is the fleet."""

    services: tuple[str, ...] = ()
    site: str = ""
    whole: bool = False  # the fleet, or with `site` the site in all services

    def __post_init__(self) -> None:
        if self.whole and self.services:
            raise ConfigError("services cannot be combined with --all: name services, or use --all for the whole fleet")
        if not (self.whole or self.services or self.site):
            raise ConfigError("name one or more services, --site NAME, or --all for the whole fleet")

    def covers(self, service: str) -> bool:
        """Return True if the target includes the crawlers of a service; a site's target includes none."""
        return not self.site and (self.whole or service in self.services)

    def checked(self, client: redis.Redis, held: Collection[Held] = ()) -> HoldTarget:
        """Return the target with a site's name as crawlers use it. Raises ConfigError for a service or site that does not
        exist; targets in `held` are taken to exist.
        """
        services = {*declared_fleet(client), *(one.service for one in held)}
        strange = [name for name in self.services if name not in services and not _has_crawl(client, name)]
        if strange:
            known = f"{', '.join(sorted(services))}, and Redis has no crawl of that name{did_you_mean(strange[0], services)}"
            raise ConfigError(f"unknown service {strange[0]!r}: TRAWL_FLEET names {known}")
        if not self.site or self.site in {one.site for one in held}:
            return self
        fleet = declared_fleet(client)
        return replace(self, site=known_site(self.site, anything=any(name not in fleet for name in self.services)))


def who() -> str:
    """Return `user@host`, the author of a hold."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):  # a container's user without a name
        name = str(os.getuid())
    return f"{name}@{socket.gethostname()}"


def hold(
    client: redis.Redis, target: HoldTarget, word: HoldKind, *, reason: str = "", by: str | None = None, at_once: bool = False
) -> list[Held]:
    """Pause, drain or stop the target; return everything that is held then. A repeated hold replaces its author, time and
    reason.

    Raises ConfigError for a target that does not exist or cannot be held so; nothing is changed then.
    """
    _check_word(client, target, word)
    target = target.checked(client)
    new = Hold(word=word, at=server_time(client), by=by or who(), reason=" ".join(reason.split()), at_once=at_once)
    _change(client, target, new)
    return overview(client, target.services)


def resume(client: redis.Redis, target: HoldTarget) -> list[Held]:
    """End every pause, drain and stop of the target; returns what is still held. Raises ConfigError for what does not exist.

    What holds for the whole fleet is not ended for one service alone. Slots of the target that were given up (crash-looping,
    refused) are tried again: who resumes has looked at them.
    """
    target = target.checked(client, overview(client, target.services))
    _change(client, target, None)
    registry = Registry(client)
    registry.forget(one.name for one in registry.crawlers() if one.state.given_up and target.covers(one.spider))
    return overview(client, target.services)


def overview(client: redis.Redis, more: Iterable[str] = ()) -> list[Held]:
    """Return everything that is held in the fleet, and in the crawls of `more` spiders, the widest first."""
    return FleetHolds(client).all(dict.fromkeys((*declared_fleet(client), *more)))


def _change(client: redis.Redis, target: HoldTarget, new: Hold | None) -> None:
    fleet, services = FleetHolds(client), list(declared_fleet(client))
    is_stop = new is not None and new.word is HoldKind.STOP
    if target.whole and not target.site:
        changes: dict[str, Hold | None] = {FLEET: new}
        if new is None:
            changes |= dict.fromkeys(name for name in fleet.fields() if not name.startswith(BREAKER))
            for service in services:
                holds.change(client, keys_in(client, service), dict.fromkeys(holds.read(client, keys_in(client, service))))
        fleet.change(changes)
    elif target.site and not target.services:
        fleet.change({SITE + target.site: new})
        if new is None:
            for service in services:
                holds.change(client, keys_in(client, service), {SITE + target.site: None})
    for service in target.services:
        if target.site:
            holds.change(client, keys_in(client, service), {SITE + target.site: new})
            continue
        if is_stop or new is None:
            slots = dict.fromkeys(name for name in fleet.fields() if f"{name}/".startswith(f"{SLOT}{service}/"))
            fleet.change(slots | {SERVICE + service: new})
        if not is_stop:
            holds.change(client, keys_in(client, service), {SPIDER: new})
    fleet.spread(services)


def stopped_slots(held: Mapping[str, Hold], desired: Mapping[str, int]) -> dict[tuple[str, int], Hold]:
    """Return the slots that are desired but must stay empty; `held` is `FleetHolds.fields()`."""
    found: dict[tuple[str, int], Hold] = {}
    for service, size in desired.items():
        stops = [held[name] for name in (FLEET, SERVICE + service) if name in held and held[name].word is HoldKind.STOP]
        if stops:
            stop = max(stops, key=lambda one: (one.at_once, one.at))
            found |= {(service, number): stop for number in range(size)}
        slots = {(service, number): held.get(f"{SLOT}{service}/{number}") for number in range(size)}
        found = {slot: one for slot, one in slots.items() if one} | found
    return found


def refuse_if_draining(client: redis.Redis, service: str, site: str) -> None:
    """Raise OnHold where start tasks of this site ("": of any) must not come in now."""
    found = why_not_seeded(client, FleetKeys(), keys_in(client, service), service, [site]).get(site)
    if found is not None and found.word is HoldKind.DRAIN:
        where = f"{service}, site {site}" if site else service
        raise OnHold(f"{where}: {found}; trawl resume lets start tasks in again")


def _has_crawl(client: redis.Redis, spider: str) -> bool:
    """Return True if a crawl outside of the fleet has begun, as by `scrapy crawl`."""
    keys = keys_in(client, spider)
    return bool(client.exists(keys.counters()))


def _check_word(client: redis.Redis, target: HoldTarget, word: HoldKind) -> None:
    if word is HoldKind.STOP and target.site:
        raise ConfigError("crawlers serve all sites, so a site cannot be stopped: pause or drain it")
    if word is HoldKind.STOP and (strange := [name for name in target.services if name not in declared_fleet(client)]):
        hint = did_you_mean(strange[0], declared_fleet(client))
        raise ConfigError(
            f"{strange[0]!r} is not a service of this fleet, which cannot stop its crawlers: pause it instead{hint}"
        )


def known_site(site: str, *, anything: bool) -> str:
    """Return the name of a site file, else a host as URLs have it. Raises ConfigError."""
    if not _SITE.fullmatch(site):
        raise ConfigError(f"site {site!r:.100}: name a site, or a host such as example.com: no URL, no spaces, 253 characters")
    known = application().site_names()
    if site in known:
        return site
    if _HOST.fullmatch(site):
        try:
            return site.lower().encode("idna").decode() if not site.isascii() else site.lower()
        except UnicodeError as error:
            raise ConfigError(f"site {site!r:.100} is not a valid host name: {error}") from error
    if not anything:
        place = application().site_names_place()
        listed = f"sites in {place} are {', '.join(known)}" if known else f"there is no site file in {place}"
        raise ConfigError(f"unknown site {site!r}: {listed}; a host such as example.com is one, too{did_you_mean(site, known)}")
    return site
