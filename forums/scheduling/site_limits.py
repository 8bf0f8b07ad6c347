"""The limits of sites, from their files into Redis, where every crawler obeys them."""

from __future__ import annotations

from collections.abc import Iterable

import redis

from forums.sites.definition.site import Site
from redis_components.frontier import limits
from redis_components.frontier.limits import LaneLimits
from redis_components.frontier.quiet_hours import parse_quiet_hours
from redis_components.keys import limits_key

BY_FILE = "the site file"


def say_limits(client: redis.Redis, sites: Iterable[Site]) -> list[str]:
    """Set what the files say; the sites that changed. What an operator has set (`trawl limit`) counts more than the file."""
    key, changed = limits_key(), []
    known = limits.read(client, key)
    for site in sites:
        now, wanted = known.get(site.name), _limits_of(site)
        by_operator = now is not None and now.by not in ("", BY_FILE)
        of_file = now is not None and now.by == BY_FILE
        if by_operator or now == wanted or (wanted is None and not of_file):
            continue
        limits.change(client, key, site.name, wanted or LaneLimits())  # a wait that the site asked for stays
        changed.append(site.name)
    return changed


def _limits_of(site: Site) -> LaneLimits | None:
    manners = site.politeness
    limits = (manners.max_rate, manners.max_concurrency, manners.max_per_hour, manners.max_per_day, manners.quiet_hours)
    if not any(limits) and manners.weight == 1:
        return None
    return LaneLimits.of(
        rate=manners.max_rate,
        burst=manners.max_burst,
        concurrency=manners.max_concurrency,
        weight=manners.weight,
        per_hour=manners.max_per_hour,
        per_day=manners.max_per_day,
        quiet=parse_quiet_hours(manners.quiet_hours, site.time_zone) if manners.quiet_hours else None,
        by=BY_FILE,
    )
