"""How a site's requests are shared out: what is new first, scans next, what may wait last. Pure."""

from __future__ import annotations

from redis_components.spending import Spent
from workers.sites import Site

SCANS_AT_LEAST = 0.1
"""Of the budget: threads that are to be fetched never keep a site from being watched."""


def over(site: Site, spent: Spent) -> str:
    """Why nothing more is sent, for people."""
    return f"over budget: {spent.total:.0f} of {site.schedule.requests_per_hour:.10g} requests in the last hour"


def for_scans(site: Site, spent: Spent) -> float:
    """Requests an hour for list pages: what the threads of the last hour, and the share of what may wait, leave over."""
    whole = site.schedule.requests_per_hour
    later = min(spent.later, whole * site.schedule.backfill_share)
    return max(whole - spent.detail - later, whole * SCANS_AT_LEAST)


def scans_now(site: Site, spent: Spent) -> float:
    """Requests that may be spent on list pages at this moment; none where the last hour was over the budget."""
    whole = site.schedule.requests_per_hour
    return max(whole - spent.total, whole * SCANS_AT_LEAST - spent.scan, 0.0)


def later_now(site: Site, spent: Spent) -> float:
    """Requests that may be spent at this moment on what may wait: its share, as far as nothing new has taken it."""
    whole = site.schedule.requests_per_hour
    return max(min(whole * site.schedule.backfill_share - spent.later, whole - spent.total), 0.0)
