"""Tasks that queue start tasks for the crawlers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from redis_components.connection import connect
from redis_components.errors import ConfigError

from .app import app


@app.task(name="trawl.seed_forums", ignore_result=False)
def seed_forums(forums: list[str] | None = None, site: str | None = None, force: bool = False) -> dict[str, str]:
    """Queue scans of forums: the named ones, or without names all that are due and within their site's budget.

    `site` may be left out when only one site has the forums; `force` also seeds forums that are not due. Returns the outcome
    for each forum, `{"demo/f1": "seeded", "demo/f2": "not due until 12:00:05 UTC"}`. Raises SiteError for an unknown site,
    ConfigError for bad arguments.
    """
    from forums.scheduling import seeding
    from forums.scheduling.outcomes import sentences

    return sentences(seeding.seed(connect(), forums, site, force))


@app.task(name="trawl.rescan_forum", ignore_result=False)
def rescan_forum(forum: str, site: str | None = None, depth: int | None = None) -> dict[str, str]:
    """Scan a forum now: `depth` list pages, new or not; without `depth` down to the threads that were seen before.

    Returns as `seed_forums`. Raises SiteError, ConfigError.
    """
    from forums.scheduling import seeding
    from forums.scheduling.outcomes import sentences

    return sentences(seeding.rescan(connect(), [forum], site, depth))


@app.task(name="trawl.refresh_posts", ignore_result=False)
def refresh_posts(post_ids: list[str], site: str) -> int:
    """Fetch these posts and their comments again; returns how many start tasks wait for the detail service then.

    Raises SiteError for an unknown site, ConfigError for bad arguments.
    """
    from forums.scheduling import seeding

    return seeding.refresh(connect(), post_ids, site)


@app.task(name="trawl.backfill", ignore_result=False)
def backfill(site: str, since: str | None = None, forums: list[str] | None = None) -> dict[str, str]:
    """Fetch history: the threads of a site, or of some of its forums, with activity since then ("2026-01-31"; None: all).

    It uses at most the site's `schedule.backfill_share`, with a lower priority than everything new. Returns the outcome for each
    forum. Raises SiteError, ConfigError.
    """
    from forums.scheduling import rechecking
    from forums.scheduling.outcomes import sentences

    return sentences(rechecking.backfill(connect(), site, _moment(since), forums))


@app.task(name="trawl.seed_urls", ignore_result=False)
def seed_urls(service: str, urls: Sequence[str | dict[str, Any]], unique: bool = False) -> dict[str, Any]:
    """Queue URLs for the crawlers of any service: `["https://…", {"url": "https://…", "meta": {"page": 1}}]`, in this order.

    The fields are those of a start task (docs/start-tasks.md). `unique`: fetch nothing that the crawl's dupefilter
    knows; it does not know what was queued without `unique`, and all are counted as queued. Returns
    `{"queued": 2, "waiting": 17, "refused": {"3": "it is neither a URL …"}}`, where positions begin at 1. Raises ConfigError
    for an unknown service and for `urls` that are not a list, OnHold where the service is being drained.
    """
    from workers.fleet import seed_urls as seeding

    if not isinstance(urls, (list, tuple)):
        raise ConfigError(f'urls = {urls!r:.100}: must be a list of URLs or objects, as in ["https://example.org/"]')
    queued, waiting, refused = 0, 0, {}
    for done in seeding.seed_urls(connect(), service, urls, unique=unique):
        queued, waiting, refused = done.queued, done.waiting, done.refused
    return {"queued": queued, "waiting": waiting, "refused": {str(place): reason for place, reason in refused.items()}}


@app.task(name="trawl.recheck_threads", ignore_result=False)
def recheck_threads(site: str | None = None, force: bool = False) -> dict[str, str]:
    """Look for edits and deletions in the threads whose check is due, and let history in; both within the site's share.

    `force` checks up to 1,000 threads of each site now. Returns what was sent for each site. Raises SiteError, StorageError.
    """
    from forums.scheduling import rechecking
    from forums.storage import StorageError, default_url
    from forums.writer.store import forget, opened

    url = default_url()
    try:
        client = connect()
        return rechecking.recheck(client, opened(client, url), site, force)
    except StorageError:
        forget(url)
        raise


def _moment(text: str | None) -> datetime | None:
    from forums.records.items import moment_of

    try:
        return None if text is None else moment_of(text)
    except ValueError:
        raise ConfigError(f"since = {text!r}: must be a date such as 2026-01-31 or 2026-01-31T12:00:00Z") from None
