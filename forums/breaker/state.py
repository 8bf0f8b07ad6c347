"""Opening and closing breakers in Redis: the record, and the hold by which crawlers leave the site alone.

The record is written first, and the hold then follows it: whoever changes a record looks at it again when the hold is written, so
that of two who change it at once the slower one does not leave the hold of what was. A process that dies between the two leaves
what `mend` sets right at the next round of `probe_sites`.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, Set

import msgspec
import redis

from forums.sites.definition.breaker_options import BreakerOptions
from forums.sites.http.soft_block import BlockVerdict, Cause
from forums.state.site_breakers import Breaker, Breakers, BreakerState
from redis_components.fleet.holds import FleetHolds
from redis_components.fleet.notes import Note, note
from redis_components.fleet.registry import Registry
from redis_components.frontier.holds import BREAKER, Hold, HoldKind
from redis_components.server.replies import server_time
from workers.fleet.sizes import declared_fleet

REMEMBERED_S = 86_400.0
"""A breaker that closed is remembered so long; one that opens again goes on with its back-off."""

FILE_PROBE_S = 3.0
"""Between two looks at a site file that is missing or wrong: nobody is asked, and who mends it waits for that."""

NAME_PROBE_S, NAME_PROBE_PART = 5.0, 0.1
"""Between two tries to resolve a site's name: a part of the time since its breaker opened, and at least so long. The site is not
asked, so it needs no rest, and a name server that was away is missed for little longer than that.
"""

logger = logging.getLogger(__name__)


def open_breaker(
    client: redis.Redis, site: str, verdict: BlockVerdict, options: BreakerOptions, *, url: str, kind: str, by: str
) -> bool:
    """Hold `site` because of `verdict`; False where it is open already, or given up. Repeatable."""
    breakers = Breakers(client)
    known = breakers.get(site)
    if known is not None and known.is_open:
        _follow(client, {site})
        return False
    if verdict.cause is Cause.SITE_FILE and _is_given_up(known):
        return False  # closed by hand since the caller looked
    now = server_time(client)
    step = known.step if known is not None and now - (known.closed_at or 0.0) < REMEMBERED_S else 0
    if verdict.cause is Cause.SITE_FILE:
        pause = FILE_PROBE_S
    elif verdict.cause is Cause.NO_NAME:
        pause = name_pause_s(0.0, options)
    else:
        pause = max(verdict.retry_after_s, pause_s(step, options, random.random()))  # noqa: S311 - jitter
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
        return False  # somebody else has just opened it
    _follow(client, {site})
    seen = f"; {opened.url}: {opened.excerpt[:120]!r}" if opened.url else ""
    said = f"the breaker of site {site} is open: {opened.reason}{seen}"
    logger.error("%s", said)
    Registry(client).report_error(by or "breaker", said)
    note(client, Note(about="breaker", type="opened", said=f"{opened.reason}{seen}", at=now, site=site))
    return True


def close_breaker(client: redis.Redis, site: str, why: str) -> bool:
    """Let `site` go on; False where its breaker is not open. Repeatable."""
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
    """Let `site` go on, whose file is right; nothing of it is remembered."""
    close_breaker(client, site, "its site file is right")
    breakers = Breakers(client)
    if (known := breakers.get(site)) is not None and not known.is_open:
        breakers.put(site, None)


def is_given_up(client: redis.Redis, site: str) -> bool:
    """Whether somebody has closed the breaker by hand although the site's file was missing or wrong."""
    return _is_given_up(Breakers(client).get(site))


def mend(client: redis.Redis, breakers: Mapping[str, Breaker]) -> None:
    """Make the holds what the records say: after a process died between the two."""
    held = {name.removeprefix(BREAKER) for name in FleetHolds(client).fields() if name.startswith(BREAKER)}
    if differ := held ^ {site for site, breaker in breakers.items() if breaker.is_open}:
        _follow(client, differ)


def pause_s(step: int, options: BreakerOptions, luck: float) -> float:
    """Seconds until the probe after this step: doubled each time up to `probe_max_s`, and between 75 % and 125 % of that, so that
    sites behind one wall are not probed at the same instant. `luck` is from 0 to 1.
    """
    return min(options.probe_max_s, options.probe_s * 2.0 ** min(step, 30)) * (0.75 + 0.5 * luck)


def name_pause_s(open_s: float, options: BreakerOptions) -> float:
    """Seconds until the next try to resolve a site's name, which was not resolved while its breaker was open for `open_s`."""
    return min(options.probe_max_s, max(NAME_PROBE_S, NAME_PROBE_PART * open_s))


def after_no_name(breaker: Breaker, found: str, options: BreakerOptions, now: float) -> Breaker:
    """The breaker after a probe that did not reach the site's name server: the site's back-off stays as it is."""
    return msgspec.structs.replace(
        breaker,
        good=0,
        probes=breaker.probes + 1,
        last_probe=found,
        next_probe_at=now + name_pause_s(now - breaker.since, options),
    )


def after_probe(breaker: Breaker, found: str | None, options: BreakerOptions, now: float, luck: float) -> Breaker:
    """The breaker after a probe that `found` something wrong, or None: a page of the site."""
    if found is None:
        return msgspec.structs.replace(
            breaker,
            good=breaker.good + 1,
            probes=breaker.probes + 1,
            last_probe="a page of the site",
            next_probe_at=now + min(options.probe_s, 5.0) * (0.75 + 0.5 * luck),  # well or not: soon known
        )
    step = breaker.step + 1
    pause = pause_s(step, options, luck)
    return msgspec.structs.replace(
        breaker, good=0, step=step, probes=breaker.probes + 1, last_probe=found, next_probe_at=now + pause
    )


def _is_given_up(known: Breaker | None) -> bool:
    return known is not None and not known.is_open and known.cause == Cause.SITE_FILE


def _follow(client: redis.Redis, sites: Set[str]) -> None:
    """Hold those of `sites` whose record is open and let the others go, until no record has changed meanwhile."""
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
