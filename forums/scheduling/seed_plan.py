"""Plan of the next scan of each forum of a site, within its request budget; and the limits of site files, which are written to
Redis, where every crawler reads them.

The budget is divided: new threads come first, then scans; work that may wait has a separate share. A site that gets no contact
information from Trawl is on trial: it is limited to a number of requests a day, over all crawlers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import redis
from msgspec.structs import replace

from forums.freshness import DAY_S, IntervalBounds, intervals
from forums.records.stored import INDEX, NO_FORUMS, RECENT, ForumTask
from forums.sites import Site
from forums.sites.http.politeness import project_agent, user_agent
from forums.state.forum_states import TRIAL_PER_DAY, TRIAL_RATE, ForumState, Spent
from redis_components.keys import limits_key
from redis_components.politeness import limits
from redis_components.politeness.limits import BY_FILE, BY_TRIAL, DAY_MS, LaneLimits

SCANS_AT_LEAST = 0.1
"""Share of the budget for scans, however many threads wait to be fetched."""
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
    return min(
        for_later(site, spent), max(site.schedule.checks_per_request * spent.live, site.scan_budget_per_hour * CHECKS_AT_LEAST)
    )


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
    waits = intervals(forums, for_scans(site, spent), now=now, limits=limits, recent=recent)
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
