"""Tasks that give the crawlers something to do."""

from __future__ import annotations

from redis_components.connection import connect
from workers.seeding import refresh, seed

from .app import app


@app.task(name="trawl.seed_forums", ignore_result=False)
def seed_forums(forums: list[str] | None = None, site: str | None = None, force: bool = False) -> dict[str, str]:
    """Seed forums to be scanned: those named, or without names all that are due, most overdue first, within `max_pending`.

    `site` may be left out when only one site has the forums; `force` also seeds what is not due. Returns what became of each
    forum, `{"demo/f1": "seeded"}`. Raises SiteError for an unknown site, ConfigError for bad arguments.
    """
    return seed(connect(), forums, site, force)


@app.task(name="trawl.refresh_posts", ignore_result=False)
def refresh_posts(post_ids: list[str], site: str) -> int:
    """Fetch these posts and their comments again; returns how many start tasks wait for the detail service then.

    Raises SiteError for an unknown site, ConfigError for bad arguments.
    """
    return refresh(connect(), post_ids, site)
