"""Plan of the next scan of each forum of a site. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from forums.freshness import DAY_S, IntervalBounds, intervals
from forums.records.start_tasks import INDEX, NO_FORUMS, RECENT, ForumTask
from forums.sites import Site
from forums.state.forum_states import ForumState
from forums.state.request_ledger import Spent

from . import request_budget

INDEX_S = DAY_S / 4
"""Interval of the pages that list a site's forums."""
DEEP_S = DAY_S
DEEP_SHARE = 0.05
"""Minimum interval of deep scans, and their maximum share of the budget."""
GAP_SCANS = 4
"""Deep scans that try to close a gap; after them the forum is scanned as usual, and the gap stays reported."""


@dataclass(frozen=True, kw_only=True)
class Due:
    """The next scan of a forum."""

    forum: str
    task: ForumTask
    at: float  # epoch s
    interval_s: float
    cost: float  # list pages, by estimate

    def overdue(self, now: float) -> float:
        """Return how long it is due, in intervals; negative if it is not due."""
        return (now - self.at) / max(self.interval_s, 1e-3)


def watched(site: Site, found: Mapping[str, ForumState]) -> list[str]:
    """Return the forums of a site: those in its file, then those from its index that `discover` admits; with RECENT and INDEX if
    the site has these pages. `found` by forum.
    """
    rules = site.discover
    recent = [RECENT] if site.pages.recent is not None else []
    if rules is None:
        return [*recent, *site.forums]
    more = [forum for forum, state in found.items() if state.found_at is not None and forum not in site.forums]
    kept = [forum for forum in more if rules.lets_in(forum, found[forum].name)]
    return [INDEX, *recent, *site.forums, *sorted(kept)]


def plan(site: Site, states: Mapping[str, ForumState], spent: Spent, now: float) -> list[Due]:
    """Return the next scan of each forum of `states` (which may have INDEX and RECENT)."""
    limits = IntervalBounds(min_s=site.schedule.min_interval_s, max_s=site.schedule.max_interval_s)
    forums = {forum: state for forum, state in states.items() if forum not in NO_FORUMS}
    recent = {forum: state for forum, state in states.items() if forum == RECENT}
    waits = intervals(forums, request_budget.for_scans(site, spent), now=now, limits=limits, recent=recent)
    deep_s = max(DEEP_S, len(forums) * site.limits.pages_per_scan / (DEEP_SHARE * site.scan_budget_per_hour / 3600))
    dues = [_due(site, forum, state, waits[forum], deep_s, limits) for forum, state in forums.items()]
    for forum, state in recent.items():
        task, at = ForumTask(site=site.name, forum=forum, mode="recent"), (state.tried_at or 0.0) + waits[forum]
        dues.append(Due(forum=forum, task=task, at=at, interval_s=max(waits[forum], limits.min_s), cost=max(1.0, state.pages)))
    if INDEX in states:
        dues.append(_index(site, states[INDEX], limits))
    return dues


def _due(site: Site, forum: str, state: ForumState, wait_s: float, deep_s: float, limits: IntervalBounds) -> Due:
    task, cost = ForumTask(site=site.name, forum=forum), max(1.0, state.pages)
    if state.gap_at is not None and state.gap_scans <= GAP_SCANS:
        task, cost = (
            ForumTask(site=site.name, forum=forum, mode="deep"),
            float(min(site.limits.deep_pages, 2 * site.limits.pages_per_scan)),
        )
        wait_s = limits.clamp(limits.min_s if state.gap_scans <= 1 else wait_s * 2**state.gap_scans)
    elif state.deep_at is not None and (state.tried_at or 0.0) + wait_s > state.deep_at + max(deep_s, 4 * wait_s):
        task = ForumTask(site=site.name, forum=forum, mode="deep", pages=site.limits.pages_per_scan)
        cost = float(site.limits.pages_per_scan)
    return Due(forum=forum, task=task, at=(state.tried_at or 0.0) + wait_s, interval_s=max(wait_s, limits.min_s), cost=cost)


def _index(site: Site, state: ForumState, limits: IntervalBounds) -> Due:
    wait_s = min(limits.clamp(INDEX_S) * 2 ** min(state.errors, 30), limits.max_s)
    task = ForumTask(site=site.name, forum=INDEX, mode="index")
    return Due(forum=INDEX, task=task, at=(state.tried_at or 0.0) + wait_s, interval_s=wait_s, cost=1.0)
