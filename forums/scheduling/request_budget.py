"""Division of a site's request budget: new threads first, then scans; work that may wait has a separate share. Pure."""

from __future__ import annotations

from forums.sites import Site
from forums.state.request_ledger import Spent

SCANS_AT_LEAST = 0.1
"""Share of the budget for scans, however many threads wait to be fetched."""
SPARED = 2.0
"""Factor of the budget of checks on sites with looks back, which cost part of the requests that the newest messages save."""
CHECKS_AT_LEAST = 0.002
"""Share of the budget for checks on sites with little activity."""


def over(site: Site, spent: Spent) -> str:
    """Return why nothing more is sent, for people."""
    whole, left = site.scan_budget_per_hour, _kept(site, spent) - spent.later
    kept = f", {left:.0f} are kept for checks and history" if left > 0 and spent.total < whole else ""
    return f"{spent.compared(whole)}{kept}"


def for_scans(site: Site, spent: Spent) -> float:
    """Return the requests an hour for list pages: the rest after the threads of the last hour and the share of waiting work."""
    whole = site.scan_budget_per_hour
    return max(whole - spent.detail - _kept(site, spent), whole * SCANS_AT_LEAST)


def scans_now(site: Site, spent: Spent) -> float:
    """Return the requests that may be spent on list pages now; 0 if the last hour was over the budget."""
    whole = site.scan_budget_per_hour
    room = whole - spent.total - max(_kept(site, spent) - spent.later, 0.0)
    return max(room, whole * SCANS_AT_LEAST - spent.scan, 0.0)


def for_later(site: Site, spent: Spent) -> float:
    """Return the requests an hour for waiting work: its share, and half of the unused rest."""
    share = _share(site)
    return share + max(site.scan_budget_per_hour - share - spent.live, 0.0) / 2


def later_now(site: Site, spent: Spent) -> float:
    """Return the requests that may be spent on waiting work now."""
    return max(min(for_later(site, spent) - spent.later, site.scan_budget_per_hour - spent.total), 0.0)


def for_checks(site: Site, spent: Spent) -> float:
    """Return the requests an hour for checks, in proportion to the requests that find new posts, however large the budget is."""
    of_live = site.schedule.checks_per_request * spent.live * (SPARED if site.pages.can_look_back else 1.0)
    return min(for_later(site, spent), max(of_live, site.scan_budget_per_hour * CHECKS_AT_LEAST))


def checks_now(site: Site, spent: Spent) -> float:
    """Return the requests that may be spent on checks now."""
    return max(min(for_checks(site, spent) - spent.check, later_now(site, spent)), 0.0)


def history_now(site: Site, spent: Spent) -> float:
    """Return the requests that may be spent on history now, which never gets more than the share."""
    return min(max(_share(site) - spent.backfill, 0.0), later_now(site, spent))


def _share(site: Site) -> float:
    return site.scan_budget_per_hour * site.schedule.backfill_share


def _kept(site: Site, spent: Spent) -> float:
    """Return the requests an hour that scans leave to waiting work. Without this a site with more forums than its budget has
    scans for would never check a thread.
    """
    return _share(site) if site.schedule.recheck_days or spent.later else 0.0
