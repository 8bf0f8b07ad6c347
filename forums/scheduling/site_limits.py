"""Writes the limits of site files to Redis, where every crawler reads them. A site that gets no contact information from Trawl is
on trial: it is limited to a number of requests a day, over all crawlers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TypeVar

import redis
from msgspec.structs import replace

from forum_reader.definition.site import Site
from forums.sites.http.politeness import project_agent, user_agent
from forums.state.forum_states import TRIAL_PER_DAY, TRIAL_RATE
from redis_components.keys import limits_key
from redis_components.politeness import limits
from redis_components.politeness.limits import BY_FILE, BY_TRIAL, DAY_MS, LaneLimits

_RESERVED = frozenset(
    {"example", "test", "invalid", "localhost", "local", "internal", "home.arpa", "example.com", "example.net", "example.org"}
)
"""Ends of names that are reserved (RFC 2606, 6761, 6762, 8375)."""


def _agent() -> str | None:
    from scrapy.utils.project import get_project_settings

    return project_agent(get_project_settings())


def is_on_trial(site: Site, agent: Callable[[], str | None] = _agent) -> bool:
    """Return True if the site is public and gets a User-Agent without a contact: neither its file nor the project (`agent`) has
    one.
    """
    if site.allow_private or not is_public_name(site.base_url.host or "") or user_agent(site):
        return False
    return agent() is None


def is_public_name(host: str) -> bool:
    """Return True if a host may be a public site: a name with a dot, or a public address."""
    from workers.http.public_addresses import is_public

    host = host.strip("[]").rstrip(".").lower()
    parts = host.split(".")
    if ":" in host or parts[-1].isdigit():
        return is_public(host)
    return len(parts) > 1 and not _RESERVED & {parts[-1], ".".join(parts[-2:])}


N = TypeVar("N", int, float)


def write_limits(client: redis.Redis, sites: Iterable[Site]) -> list[str]:
    """Write the limits of the files; return the changed lanes. An operator's limits (`trawl limit`) override the files."""
    known = limits.read(client, limits_key())
    return limits.write(client, known, _limits_of_lanes(sites), ("", BY_FILE, BY_TRIAL))


def _limits_of_lanes(sites: Iterable[Site]) -> dict[str, LaneLimits | None]:
    """Return the limits by lane; a site in a shared lane has none under its own name."""
    lanes: dict[str, LaneLimits | None] = {}
    agent = cache(_agent)  # once for all sites: Scrapy makes the project's settings for each call
    for site in sites:
        lanes.setdefault(site.name, None)
        lane, wanted = site.politeness.lane or site.name, _limits_of(site, agent)
        if wanted is not None:
            shared = lanes.get(lane)
            lanes[lane] = wanted if shared is None else _strictest(shared, wanted)
    return lanes


def _strictest(one: LaneLimits, other: LaneLimits) -> LaneLimits:
    """Return the lower number of each limit, with the quiet hours of the first that has some."""
    windows = sorted({window for _, window in (*one.quotas, *other.quotas)})
    quiet = one if one.quiet else other
    return LaneLimits(
        rate=_lower(one.rate, other.rate),
        burst=min(one.burst, other.burst),
        concurrency=_lower(one.concurrency, other.concurrency),
        weight=max(one.weight, other.weight),
        quotas=tuple((n, window) for window in windows if (n := _lower(one.within(window), other.within(window))) is not None),
        quiet=quiet.quiet,
        zone=quiet.zone,
        offsets=quiet.offsets,
        by=BY_TRIAL if BY_TRIAL in (one.by, other.by) else BY_FILE,
    )


def _lower(one: N | None, other: N | None) -> N | None:
    return min((number for number in (one, other) if number is not None), default=None)


def _limits_of(site: Site, agent: Callable[[], str | None]) -> LaneLimits | None:
    wanted = _limits_of_file(site)
    if not is_on_trial(site, agent):
        return wanted
    wanted = wanted or LaneLimits()
    limited = _strictest(wanted, LaneLimits(quotas=((TRIAL_PER_DAY, DAY_MS),), by=BY_TRIAL))
    return replace(limited, burst=wanted.burst, rate=limited.rate or TRIAL_RATE)


def _limits_of_file(site: Site) -> LaneLimits | None:
    asked = {name: value for name, value in site.politeness.model_dump(exclude={"lane", "obey_robots"}).items() if value}
    found = LaneLimits.of(**asked, zone=site.time_zone, by=BY_FILE)
    return None if replace(found, burst=1) == LaneLimits(by=BY_FILE) else found
