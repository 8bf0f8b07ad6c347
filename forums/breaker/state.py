"""Breakers of sites with a file: when they are probed for the first time, and again; opened at once after a page that hung or
killed its crawler, since the next crawler would fail on it, too.
"""

from __future__ import annotations

import msgspec
import redis

from forum_reader.definition.site import BreakerOptions
from forum_reader.page.soft_block import BlockVerdict, Cause
from forums.sites import SiteError, load_site
from redis_components.connection import connect
from redis_components.politeness.limits import retry_after_s
from workers.breaker import state
from workers.breaker.state import pause_of
from workers.process.page_at_work import PageAtWork
from workers.state.holds import Breaker

FILE_PROBE_S = 3.0
"""Interval of checks of a missing or invalid site file: no request is sent, and the operator waits for the check."""


def open_breaker(
    client: redis.Redis, site: str, verdict: BlockVerdict, options: BreakerOptions, *, url: str, kind: str, by: str
) -> bool:
    """Hold `site` because of `verdict`; return False if it is open already, or given up. Idempotent."""
    return state.open_breaker(
        client,
        site,
        verdict,
        options,
        url=url,
        kind=kind,
        by=by,
        asked_s=retry_after_s(verdict.retry_after, verdict.date) or 0.0,
        pause_s=FILE_PROBE_S if verdict.cause is Cause.SITE_FILE else None,
        again=verdict.cause is not Cause.SITE_FILE,
    )


def is_given_up(known: Breaker | None) -> bool:
    """Return True if an operator closed the breaker although the site's file was missing or invalid."""
    return known is not None and not known.is_open and known.cause == Cause.SITE_FILE


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
    pause = pause_of(step, options, luck)
    return msgspec.structs.replace(
        breaker, good=0, step=step, probes=breaker.probes + 1, last_probe=found, next_probe_at=now + pause
    )


def open_for_page(page: PageAtWork, what: str, by: str = "supervisor") -> None:
    """Open the breaker of the page's site; `what` happened to the process. Does nothing if the site file disables the breaker.
    Raises redis.RedisError.
    """
    try:
        options = load_site(page.site).breaker
    except SiteError:  # its file is wrong or missing: its queue is held for that reason
        options = BreakerOptions()
    if options.enabled:
        found = BlockVerdict(cause=Cause.HUNG, reason=f"a crawler {what}")
        open_breaker(connect(), page.site, found, options, url=page.url, kind=page.kind, by=by)
