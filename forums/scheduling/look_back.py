"""Scheduling of looks back through the newest messages of a site, from the budget of checks."""

from __future__ import annotations

import redis

from forums.records.start_tasks import RECENT, ForumTask
from forums.records.stored import scan_task
from forums.sites import Site
from forums.spiders.look_back import MOST_PAGES
from forums.state.services import FORUM_LIST
from forums.storage import Database
from forums.storage.recent_depth import depth_of
from redis_components.start_tasks.seeding import SeedOutcome
from workers.fleet.holds import why_not_seeded

from .seeding import seed_scans


def look_back(client: redis.Redis, database: Database, site: Site, pages: int) -> int:
    """Seed one look back at `pages` pages at most; return their number. 0 without such a page, and while a look runs."""
    if pages < 1:
        return 0
    depth = depth_of(database, site.name, site.limits.deep_pages)
    if depth < 2 or why_not_seeded(client, FORUM_LIST, {site.name}):
        return 0
    number = min(pages, depth - 1, MOST_PAGES)
    task = ForumTask(site=site.name, forum=RECENT, mode="back", pages=number, depth=depth)
    (end,) = seed_scans(client, [(scan_task(site.name, RECENT, "back"), task, 0.0)]).values()
    return number if end.outcome is SeedOutcome.SEEDED else 0
