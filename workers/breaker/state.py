"""Opening and closing of breakers in Redis: the record, and the hold that keeps crawlers from the site.

The record is written first, then the hold. After writing the hold, the record is read again, so that of two concurrent changes
the slower one does not leave an outdated hold. If a process dies between the two writes, `mend` corrects the hold in the next
round of `probe_sites`.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, Set
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
import redis

from redis_components.frontier.holds import BREAKER, FLEET, SITE, Hold, HoldKind
from redis_components.server.untrusted_values import server_time
from workers.application import application
from workers.fleet.sizes import declared_fleet
from workers.state.holds import HOST, Breaker, Breakers, BreakerState, FleetHolds
from workers.state.registry import Registry
from workers.state.reports import Note, note

if TYPE_CHECKING:
    from .hosts import Options, Verdict

REMEMBERED_S = 86_400.0
"""A closed breaker is remembered for this time; if it opens again, its back-off continues."""

logger = logging.getLogger(__name__)


def open_breaker(
    client: redis.Redis,
    site: str,
    verdict: Verdict,
    options: Options,
    *,
    url: str,
    kind: str,
    by: str,
    asked_s: float = 0.0,
    pause_s: float | None = None,
    again: bool = True,
) -> bool:
    """Hold `site` because of `verdict`; return False if it is open already. Idempotent.

    `pause_s`: seconds until the first probe, else by the options and the time that the site has asked for (`asked_s`). Without
    `again` it is not opened for the cause for which it was
    the last time, since an operator has closed it.
    """
    breakers = Breakers(client)
    known = breakers.get(site)
    if known is not None and known.is_open:
        _follow(client, {site})
        return False
    if not again and known is not None and known.cause == verdict.cause:
        return False  # closed since the caller checked
    now = server_time(client)
    step = known.step if known is not None and now - (known.closed_at or 0.0) < REMEMBERED_S else 0
    if pause_s is None:
        pause_s = max(min(asked_s, REMEMBERED_S), pause_of(step, options, random.random()))  # noqa: S311 - jitter
    opened = Breaker(
        state=BreakerState.OPEN,
        cause=str(verdict.cause),
        reason=verdict.reason,
        since=now,
        by=by,
        url=url[:500],
        kind=kind,
        excerpt=verdict.excerpt,
        step=step,
        next_probe_at=now + pause_s,
    )
    if not breakers.put(site, opened):
        return False  # another process has just opened it
    with suppress(redis.exceptions.NoPermissionError):  # of a service's own user: `probe_sites` does it within seconds (`mend`)
        _follow(client, {site})
    seen = ": ".join(filter(None, (opened.url, opened.excerpt and repr(opened.excerpt[:120]))))
    seen = f"; {seen}" if seen else ""
    message = f"the breaker of site {site} is open: {opened.reason}{seen}"
    logger.error("%s", message)
    Registry(client).report_error(by or "breaker", message)
    note(client, Note(about="breaker", type="opened", said=f"{opened.reason}{seen}", at=now, site=site))
    return True


def close_breaker(client: redis.Redis, site: str, why: str) -> bool:
    """Release `site`; return False if its breaker is not open. Idempotent."""
    breakers, now = Breakers(client), server_time(client)
    while (known := breakers.get(site)) is not None and known.is_open:
        if breakers.put(site, msgspec.structs.replace(known, state=BreakerState.CLOSED, closed_at=now, last_probe=why)):
            logger.warning("the breaker of site %s is closed after %.0f s: %s", site, now - known.since, why)
            note(client, Note(about="breaker", type="closed", said=f"after {now - known.since:.0f} s: {why}", at=now, site=site))
            break
    else:
        _follow(client, {site})
        return False
    _follow(client, {site})
    return True


def mend(client: redis.Redis, breakers: Mapping[str, Breaker]) -> None:
    """Align the holds with the records, after a process died between the two writes."""
    held = {name.removeprefix(BREAKER) for name in FleetHolds(client).fields() if name.startswith(BREAKER)}
    if differ := held ^ {site for site, breaker in breakers.items() if breaker.is_open}:
        _follow(client, differ)


def due(client: redis.Redis, known: Mapping[str, Breaker], now: float) -> list[tuple[str, Breaker]]:
    """Return the breakers whose time has come, the most overdue first, without sites that an operator has paused."""
    paused = {name for name, hold in FleetHolds(client).fields().items() if hold.word is not HoldKind.DRAIN}
    found = [(site, one) for site, one in known.items() if one.is_open and one.next_probe_at <= now and SITE + site not in paused]
    return [] if FLEET in paused else sorted(found, key=lambda pair: pair[1].next_probe_at)


def probe_sites(client: redis.Redis) -> dict[str, str]:
    """Let the crawl try each host again whose time has come, and the application its sites; return the outcome by name.

    Without a site file there is no page, header or proxy for a probe: the crawl is the probe. A breaker that opens again within a
    day is open for twice as long. Raises `redis.RedisError`.
    """
    breakers = Breakers(client)
    known, now = breakers.all(), server_time(client)
    mend(client, known)
    for site, breaker in known.items():
        if not breaker.is_open and now - (breaker.closed_at or 0.0) >= REMEMBERED_S:
            breakers.put(site, None)
    done = {}
    for host, breaker in due(client, known, now):
        if breaker.kind == HOST and breakers.put(host, msgspec.structs.replace(breaker, step=breaker.step + 1)):
            close_breaker(client, host, "the crawl tries it again")
            done[host] = "tried again"
    return {**done, **application().probe_sites(client)}


def pause_of(step: int, options: Options, luck: float) -> float:
    """Return the seconds until the probe after this step: doubled each time up to `probe_max_s`, times a jitter of 75 % to 125
    %, so that sites behind one wall are not probed at the same instant. `luck` is from 0 to 1.
    """
    return min(options.probe_max_s, options.probe_s * 2.0 ** min(step, 30)) * (0.75 + 0.5 * luck)


def _follow(client: redis.Redis, sites: Set[str]) -> None:
    """Hold the sites of `sites` whose record is open and release the others, until no record has changed meanwhile."""
    breakers, fleet = Breakers(client), FleetHolds(client)
    known = {site: breakers.get(site) for site in sites}
    while known:
        fleet.change({BREAKER + site: _as_hold(breaker) for site, breaker in known.items()})
        fleet.spread(declared_fleet(client))
        now = {site: breakers.get(site) for site in known}
        known = {site: breaker for site, breaker in now.items() if _as_hold(breaker) != _as_hold(known[site])}


def _as_hold(breaker: Breaker | None) -> Hold | None:
    if breaker is None or not breaker.is_open:
        return None
    return Hold(word=HoldKind.PAUSE, at=breaker.since, by="breaker", reason=breaker.reason)
