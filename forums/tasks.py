"""The forum crawl's Celery tasks. They import what they do in their functions: a client that only sends them needs none of it."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Any

from redis_components.connection import connect
from redis_components.errors import ConfigError
from tasks.app import SHORT, app
from workers.fleet.sizes import declared_fleet

__all__ = [  # noqa: RUF022 - in groups
    # sent by users
    "seed_forums",
    "rescan_forum",
    "refresh_posts",
    "backfill",
    # sent by beat
    "store_items",
    "publish_events",
    "notify_alarms",
    "prune_raw_pages",
    "recheck_threads",
]

task = partial(app.task, **SHORT)


@task(name="trawl.seed_forums", ignore_result=False)
def seed_forums(forums: list[str] | None = None, site: str | None = None, force: bool = False) -> dict[str, str]:
    """Queue scans of forums: the named ones, or without names all that are due and within their site's budget.

    `site` may be left out when only one site has the forums; `force` also seeds forums that are not due. Returns the outcome
    for each forum, `{"demo/f1": "seeded", "demo/f2": "not due until 12:00:05 UTC"}`. Raises SiteError for an unknown site,
    ConfigError for bad arguments.
    """
    from forums.scheduling import seeding

    return seeding.sentences(seeding.seed(connect(), forums, site, force))


@task(name="trawl.rescan_forum", ignore_result=False)
def rescan_forum(forum: str, site: str | None = None, depth: int | None = None) -> dict[str, str]:
    """Scan a forum now: `depth` list pages, new or not; without `depth` down to the threads that were seen before.

    Returns as `seed_forums`. Raises SiteError, ConfigError.
    """
    from forums.scheduling import seeding

    return seeding.sentences(seeding.rescan(connect(), [forum], site, depth))


@task(name="trawl.refresh_posts", ignore_result=False)
def refresh_posts(post_ids: list[str], site: str, only: Any = None) -> int:
    """Fetch these posts and their comments again, or `only` the "post" or the "comments"; returns how many start tasks wait for
    the detail service then.

    Raises SiteError for an unknown site, ConfigError for bad arguments.
    """
    from forums.scheduling import rechecking

    return rechecking.refresh(connect(), post_ids, site, only)


@task(name="trawl.backfill", ignore_result=False)
def backfill(site: str, since: str | None = None, forums: list[str] | None = None) -> dict[str, str]:
    """Fetch history: the threads of a site, or of some of its forums, with activity since then ("2026-01-31"; None: all).

    It uses at most the site's `schedule.backfill_share`, with a lower priority than everything new. Returns the outcome for each
    forum. Raises SiteError, ConfigError.
    """
    from forums.scheduling import rechecking, seeding

    return seeding.sentences(rechecking.backfill(connect(), site, _moment(since), forums))


@task(name="trawl.recheck_threads", ignore_result=False)
def recheck_threads(site: str | None = None, force: bool = False) -> dict[str, str]:
    """Look for edits and deletions in the threads whose check is due, and let history in; both within the site's share.

    `force` checks up to 1,000 threads of each site now. Returns what was sent for each site. Raises SiteError, StorageError.
    """
    from forums.scheduling import rechecking
    from forums.storage import StorageError
    from forums.storage.database import default_url
    from forums.writer.fleet_database import forget, opened

    url = default_url()
    try:
        client = connect()
        return rechecking.recheck(client, opened(client, url), site, force)
    except StorageError:
        forget(url)
        raise


@task(name="trawl.store_items")
def store_items() -> dict[str, dict[str, Any]]:
    """Move the items of services whose consumer is the forum writer into the database; returns what was written, by service.

    One at a time: a second one finds it busy.
    """
    from forums.writer.store import store

    client = connect()
    return {service: asdict(report) for service, report in store(client, declared_fleet(client)).items()}


@task(name="trawl.prune_raw_pages")
def prune_raw_pages() -> list[str]:
    """Delete raw pages on this node that are too old, or of a removed site. Returns the deleted folders."""
    from forums.raw_pages import prune_here

    from .state.database_state import removed_sites

    return [str(place) for place in prune_here(removed_sites(connect()))]


@task(name="trawl.publish_events")
def publish_events() -> dict[str, str]:
    """Send the events of posts and comments to the outputs of `trawl.toml` and to those of alerts; return the result of each.

    One at a time: a second one does nothing. Raises ConfigError where the file is wrong, and notes it for `trawl status`.
    """
    from forums.events.alerts import rules_in_use

    from .state.keys import ForumFleetKeys
    from .state.site_faults import RULES_FILE, note_faults

    client = connect()
    rules, faults = rules_in_use(client)
    results = {}
    if rules.outputs:
        from forums.events.publish import publish
        from forums.storage.database import default_url
        from forums.writer.fleet_database import opened

        published = publish(opened(client, default_url()), client, rules, faults=faults)
        results = {name: result.value for name, result in published.items()}
    else:
        note_faults(client, ForumFleetKeys().output_troubles(), faults)
    if RULES_FILE in faults:
        raise ConfigError(faults[RULES_FILE])
    return results


@task(name="trawl.notify_alarms")
def notify_alarms() -> dict[str, str]:
    """Send the problems of `trawl status` to the outputs with `alarms = true`; return the result of each."""
    from forums.events.messages import NotifyOptions, send_alarms
    from forums.events.rules import load

    rules = load()
    if rules is None or not any(isinstance(one, NotifyOptions) and one.alarms for one in rules.outputs.values()):
        return {}
    from fleet_operations.overview.problems import problems
    from fleet_operations.overview.reader import OverviewReader

    client = connect()
    return send_alarms(client, rules, list(problems(OverviewReader(client).read())))


def _moment(text: str | None) -> datetime | None:
    from forums.records.tasks_and_items import moment_of

    try:
        return None if text is None else moment_of(text)
    except ValueError:
        raise ConfigError(f"since = {text!r}: must be a date such as 2026-01-31 or 2026-01-31T12:00:00Z") from None
