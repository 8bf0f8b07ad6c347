"""How a site's requests are shared out: what is new first, scans next; what may wait has a separate share. Pure."""

from __future__ import annotations

from forums.sites import Site
from forums.state.request_ledger import Spent

SCANS_AT_LEAST = 0.1
"""Of the budget: threads that are to be fetched never keep a site from being watched."""
SPARED = 2.0
"""Of the requests that the newest messages save when they tell of what is new, a part goes to looks back through them."""
CHECKS_AT_LEAST = 0.002
"""Of the budget: a site on which little happens is checked all the same."""


def over(site: Site, spent: Spent) -> str:
    """Why nothing more is sent, for people."""
    whole, left = site.schedule.requests_per_hour, _kept(site, spent) - spent.later
    kept = f", {left:.0f} are kept for checks and history" if left > 0 and spent.total < whole else ""
    return f"{spent.compared(whole)}{kept}"


def for_scans(site: Site, spent: Spent) -> float:
    """Requests an hour for list pages: what the threads of the last hour, and the share of what may wait, leave over."""
    whole = site.schedule.requests_per_hour
    return max(whole - spent.detail - _kept(site, spent), whole * SCANS_AT_LEAST)


def scans_now(site: Site, spent: Spent) -> float:
    """Requests that may be spent on list pages at this moment; none where the last hour was over the budget."""
    whole = site.schedule.requests_per_hour
    room = whole - spent.total - max(_kept(site, spent) - spent.later, 0.0)
    return max(room, whole * SCANS_AT_LEAST - spent.scan, 0.0)


def for_later(site: Site, spent: Spent) -> float:
    """Requests an hour for what may wait: its share, and half of what nothing else has asked for."""
    share = _share(site)
    return share + max(site.schedule.requests_per_hour - share - spent.live, 0.0) / 2


def later_now(site: Site, spent: Spent) -> float:
    """Requests that may be spent at this moment on what may wait."""
    return max(min(for_later(site, spent) - spent.later, site.schedule.requests_per_hour - spent.total), 0.0)


def for_checks(site: Site, spent: Spent) -> float:
    """Requests an hour for checks: however large the budget is, in proportion to what finds new posts and comments."""
    of_live = site.schedule.checks_per_request * spent.live * (SPARED if site.pages.can_look_back else 1.0)
    return min(for_later(site, spent), max(of_live, site.schedule.requests_per_hour * CHECKS_AT_LEAST))


def checks_now(site: Site, spent: Spent) -> float:
    """Requests that may be spent at this moment on checks."""
    return max(min(for_checks(site, spent) - spent.check, later_now(site, spent)), 0.0)


def history_now(site: Site, spent: Spent) -> float:
    """Of these, how many on history, which never gets more than the share."""
    return min(max(_share(site) - spent.backfill, 0.0), later_now(site, spent))


def _share(site: Site) -> float:
    return site.schedule.requests_per_hour * site.schedule.backfill_share


def _kept(site: Site, spent: Spent) -> float:
    """Requests an hour that scans leave to what may wait. Without this a site with more forums than its budget has scans for
    would never check a thread.
    """
    return _share(site) if site.schedule.recheck_days or spent.later else 0.0
