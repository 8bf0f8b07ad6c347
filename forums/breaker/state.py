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

import msgspec
import redis
from scrapy import Request

from forum_reader.definition.site_options import BreakerOptions
from forum_reader.page.soft_block import BlockVerdict, Cause
from forums.state.site_breakers import Breaker, Breakers, BreakerState
from redis_components.frontier.holds import BREAKER, Hold, HoldKind
from redis_components.frontier.redis_time import shared_clock
from redis_components.politeness.retry_after import retry_after_s
from redis_components.server.replies import server_time
from workers.fleet.sizes import declared_fleet
from workers.state.holds import FleetHolds
from workers.state.notes import Note, note
from workers.state.registry import Registry

REMEMBERED_S = 86_400.0
"""A closed breaker is remembered for this time; if it opens again, its back-off continues."""

FILE_PROBE_S = 3.0
"""Interval of checks of a missing or invalid site file: no request is sent, and the operator waits for the check."""

NAME_PROBE_S, NAME_PROBE_PART = 5.0, 0.1
"""Interval of tries to resolve a site's name: this part of the time since its breaker opened, and at least `NAME_PROBE_S`. The
site receives no request, so the interval may be short, and a recovered name server is noticed soon.
"""

logger = logging.getLogger(__name__)


def open_breaker(
    client: redis.Redis, site: str, verdict: BlockVerdict, options: BreakerOptions, *, url: str, kind: str, by: str
) -> bool:
    """Hold `site` because of `verdict`; return False if it is open already, or given up. Idempotent."""
    breakers = Breakers(client)
    known = breakers.get(site)
    if known is not None and known.is_open:
        _follow(client, {site})
        return False
    if verdict.cause is Cause.SITE_FILE and _is_given_up(known):
        return False  # closed by an operator since the caller checked
    now = server_time(client)
    step = known.step if known is not None and now - (known.closed_at or 0.0) < REMEMBERED_S else 0
    if verdict.cause is Cause.SITE_FILE:
        pause = FILE_PROBE_S
    elif verdict.cause is Cause.NO_NAME:
        pause = name_pause_s(0.0, options)
    else:
        asked_s = retry_after_s(verdict.retry_after, verdict.date) or 0.0
        pause = max(asked_s, pause_s(step, options, random.random()))  # noqa: S311 - jitter
    opened = Breaker(
        state=BreakerState.OPEN,
        cause=verdict.cause.value,
        reason=verdict.reason,
        since=now,
        by=by,
        url=url[:500],
        kind=kind,
        excerpt=verdict.excerpt,
        step=step,
        next_probe_at=now + pause,
    )
    if not breakers.put(site, opened):
        return False  # another process has just opened it
    with suppress(redis.exceptions.NoPermissionError):  # of a service's own user: `probe_sites` does it within seconds (`mend`)
        _follow(client, {site})
    seen = f"; {opened.url}: {opened.excerpt[:120]!r}" if opened.url else ""
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


def close_for_file(client: redis.Redis, site: str) -> None:
    """Release `site` after its file became valid, and delete its record."""
    close_breaker(client, site, "its site file is right")
    breakers = Breakers(client)
    if (known := breakers.get(site)) is not None and not known.is_open:
        breakers.put(site, None)


def is_given_up(client: redis.Redis, site: str) -> bool:
    """Return True if an operator closed the breaker although the site's file was missing or invalid."""
    return _is_given_up(Breakers(client).get(site))


def mend(client: redis.Redis, breakers: Mapping[str, Breaker]) -> None:
    """Align the holds with the records, after a process died between the two writes."""
    held = {name.removeprefix(BREAKER) for name in FleetHolds(client).fields() if name.startswith(BREAKER)}
    if differ := held ^ {site for site, breaker in breakers.items() if breaker.is_open}:
        _follow(client, differ)


def pause_s(step: int, options: BreakerOptions, luck: float) -> float:
    """Return the seconds until the probe after this step: doubled each time up to `probe_max_s`, times a jitter of 75 % to 125
    %, so that sites behind one wall are not probed at the same instant. `luck` is from 0 to 1.
    """
    return min(options.probe_max_s, options.probe_s * 2.0 ** min(step, 30)) * (0.75 + 0.5 * luck)


def name_pause_s(open_s: float, options: BreakerOptions) -> float:
    """Return the seconds until the next try to resolve a site's name, unresolved while its breaker was open for `open_s`."""
    return min(options.probe_max_s, max(NAME_PROBE_S, NAME_PROBE_PART * open_s))


def after_no_name(breaker: Breaker, found: str, options: BreakerOptions, now: float) -> Breaker:
    """Return the breaker after a probe whose name was not resolved: the site's back-off is unchanged."""
    return msgspec.structs.replace(
        breaker,
        good=0,
        probes=breaker.probes + 1,
        last_probe=found,
        next_probe_at=now + name_pause_s(now - breaker.since, options),
    )


def after_probe(breaker: Breaker, found: str | None, options: BreakerOptions, now: float, luck: float) -> Breaker:
    """Return the breaker after a probe that `found` a fault, or None: a page of the site."""
    if found is None:
        return msgspec.structs.replace(
            breaker,
            good=breaker.good + 1,
            probes=breaker.probes + 1,
            last_probe="a page of the site",
            next_probe_at=now + min(options.probe_s, 5.0) * (0.75 + 0.5 * luck),  # soon, to decide if the site is well
        )
    step = breaker.step + 1
    pause = pause_s(step, options, luck)
    return msgspec.structs.replace(
        breaker, good=0, step=step, probes=breaker.probes + 1, last_probe=found, next_probe_at=now + pause
    )


def _is_given_up(known: Breaker | None) -> bool:
    return known is not None and not known.is_open and known.cause == Cause.SITE_FILE


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


BLOCKED = "blocked"
"""Key in `meta`: how many times this page was blocked."""
WAIT_S = 1.0
"""Delay of a page whose site has just been held. A hold reaches a crawler within 2 s; without the delay the page would come back
at once, again and again, and be given up, or stored as removed, before the hold applies.
"""
_OF_ONE_FETCH = ("retry_times", "redirect_times", "redirect_ttl", "redirect_urls", "redirect_reasons", "fetched_at")


def sent_again(request: Request, blocks: int, *, waits: bool = False) -> Request:
    """Return the request at a lower priority, behind other repeated ones; with `waits` it is sent after `WAIT_S`."""
    meta = {name: value for name, value in request.meta.items() if name not in _OF_ONE_FETCH}
    if waits:
        meta["not_before"] = shared_clock.time() + WAIT_S
    meta[BLOCKED] = blocks
    return request.replace(url=first_url(request), meta=meta, dont_filter=True, priority=request.priority - 1)


def first_url(request: Request) -> str:
    """Return the requested URL, before redirects."""
    urls = request.meta.get("redirect_urls")
    return urls[0] if isinstance(urls, list) and urls and isinstance(urls[0], str) else request.url
