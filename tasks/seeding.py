"""Tasks that give the crawlers something to do."""

from __future__ import annotations

from datetime import datetime

from redis_components.connection import connect
from redis_components.errors import ConfigError

from .app import app


@app.task(name="trawl.seed_forums", ignore_result=False)
def seed_forums(forums: list[str] | None = None, site: str | None = None, force: bool = False) -> dict[str, str]:
    """Seed forums to be scanned: those named, or without names all that are due by the policy and within their site's budget.

    `site` may be left out when only one site has the forums; `force` also seeds what is not due. Returns what became of each
    forum and why, `{"demo/f1": "seeded", "demo/f2": "not due until 12:00:05 UTC"}`. Raises SiteError for an unknown site,
    ConfigError for bad arguments.
    """
    from workers import seeding

    return seeding.seed(connect(), forums, site, force)


@app.task(name="trawl.rescan_forum", ignore_result=False)
def rescan_forum(forum: str, site: str | None = None, depth: int | None = None) -> dict[str, str]:
    """Scan a forum now and deep: `depth` list pages whatever they hold, else down to what was seen before.

    Returns as `seed_forums`. Raises SiteError, ConfigError.
    """
    from workers import seeding

    return seeding.rescan(connect(), [forum], site, depth)


@app.task(name="trawl.refresh_posts", ignore_result=False)
def refresh_posts(post_ids: list[str], site: str) -> int:
    """Fetch these posts and their comments again; returns how many start tasks wait for the detail service then.

    Raises SiteError for an unknown site, ConfigError for bad arguments.
    """
    from workers import seeding

    return seeding.refresh(connect(), post_ids, site)


@app.task(name="trawl.backfill", ignore_result=False)
def backfill(site: str, since: str | None = None, forums: list[str] | None = None) -> dict[str, str]:
    """Fetch history: the threads of a site, or of some of its forums, with activity since then ("2026-01-31"; None: all).

    It takes no more than the site's `schedule.backfill_share`, behind everything new. Returns what became of each forum. Raises
    SiteError, ConfigError.
    """
    from workers import rechecking

    return rechecking.backfill(connect(), site, _moment(since), forums)


@app.task(name="trawl.recheck_threads", ignore_result=False)
def recheck_threads(site: str | None = None, force: bool = False) -> dict[str, str]:
    """Look for edits and deletions in the threads whose check is due, and let history in; both within the site's share.

    `force` checks up to 1,000 threads of each site now. Returns what was sent for each site. Raises SiteError, StorageError.
    """
    from workers import rechecking
    from workers.storage import StorageError, default_url
    from workers.storing import forget, opened

    url = default_url()
    try:
        return rechecking.recheck(connect(), opened(url), site, force)
    except StorageError:
        forget(url)
        raise


def _moment(text: str | None) -> datetime | None:
    from workers.items import moment_of

    try:
        return None if text is None else moment_of(text)
    except ValueError:
        raise ConfigError(f"since = {text!r}: must be a date such as 2026-01-31 or 2026-01-31T12:00:00Z") from None
