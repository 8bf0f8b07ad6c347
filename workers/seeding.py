"""Seeding the forums that are due, and single posts: the bodies of the tasks `seed_forums` and `refresh_posts`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime

import redis

from redis_components import seeds
from redis_components.errors import ConfigError
from redis_components.keys import CrawlKeys
from redis_components.seeds import Seed, Seeding
from workers.holding import refuse_if_draining, why_not_seeded
from workers.sites import Site, load_site, load_sites
from workers.spiders.task_data import ForumTask, PostTask, encode


def max_pending() -> int:
    """Most forums that wait or are being scanned at one time (TRAWL_MAX_PENDING, default 1000): the bound of what a stuck
    fleet piles up.
    """
    text = os.environ.get("TRAWL_MAX_PENDING", "1000")
    if not text.isdigit() or text == "0":
        raise ConfigError(f"TRAWL_MAX_PENDING = {text!r}: must be a whole number from 1")
    return int(text)


def seed(
    client: redis.Redis, forums: Sequence[str] | None = None, site: str | None = None, force: bool = False
) -> dict[str, str]:
    """Seed forums: those named, or without names all that are due.

    `site` may be left out where only one site has the forums; `force` also seeds what is not due. A pending forum is never
    seeded twice, one that is paused, draining or stopped not before it is resumed. Returns "<site>/<forum>" -> what happened and
    why. Raises SiteError for an unknown site, ConfigError for bad arguments.
    """
    if isinstance(forums, str) or (forums is not None and not all(isinstance(forum, str) for forum in forums)):
        raise ConfigError(f'forums = {forums!r}: must be a list of names, as in ["f1", "f2"]')
    sites = [load_site(site)] if site else load_sites()
    report: dict[str, str] = {}
    wanted: list[tuple[Site, str]] = []
    if forums is None:
        wanted = [(one, forum) for one in sites for forum in one.forums]
    for forum in dict.fromkeys(forums or ()):
        homes = [one for one in sites if forum in one.forums]
        if len(homes) == 1:
            wanted.append((homes[0], forum))
        else:
            report[f"{site or '?'}/{forum}"] = _unclear(sites, homes)
    held = why_not_seeded(client, "forum_list", {one.name for one, _ in wanted})
    report |= {f"{one.name}/{forum}": str(held[one.name]) for one, forum in wanted if one.name in held}
    due = [
        Seed(id=f"{one.name}/{forum}", data=encode(ForumTask(site=one.name, forum=forum)), interval_s=one.interval_s)
        for one, forum in wanted
        if one.name not in held
    ]
    outcomes = (
        seeds.seed(client, CrawlKeys.for_spider("forum_list"), due, max_pending=max_pending(), force=force or forums is not None)
        if due
        else []
    )
    report.update({one.id: _sentence(outcome) for one, outcome in zip(due, outcomes, strict=True)})
    return report


def refresh(client: redis.Redis, posts: Sequence[str], site: str) -> int:
    """Fetch these posts and their comments again; the number of start tasks that wait then. Where the site or the service is
    paused they wait longer. Raises SiteError, ConfigError, and OnHold where it is being drained.
    """
    if isinstance(posts, str) or not posts or not all(isinstance(post, str) and post for post in posts):
        raise ConfigError(f'posts = {posts!r}: must be a list of post ids, as in ["p1", "p2"]')
    name = load_site(site).name
    refuse_if_draining(client, "forum_detail", name)
    return seeds.push(client, CrawlKeys.for_spider("forum_detail"), [encode(PostTask(site=name, post=post)) for post in posts])


def _unclear(sites: list[Site], homes: list[Site]) -> str:
    if homes:
        return f"several sites have it ({', '.join(one.name for one in homes)}): name the site"
    known = "; ".join(f"{one.name} has {', '.join(one.forums)}" for one in sites) or "there is no site file"
    return f"unknown forum: {known}"


def _sentence(outcome: Seeding) -> str:
    if outcome.outcome == "full":
        return f"over the limit of {outcome.at:.0f} pending forums"
    clock = datetime.fromtimestamp(outcome.at, UTC).strftime("%H:%M:%S UTC")
    return {"seeded": "seeded", "pending": f"pending since {clock}", "early": f"not due until {clock}"}[outcome.outcome]
