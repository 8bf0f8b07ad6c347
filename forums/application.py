"""Implementation of the application interface of the fleet (`workers/application.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import forum_reader
from forums.sites.load import sites_dir
from redis_components.server.variables import variable
from workers.application import KeyRules, Round

if TYPE_CHECKING:
    import redis

    from redis_components.keys import CrawlKeys
    from workers.process.page_at_work import PageAtWork


def config_folders() -> Sequence[Path]:
    """Return the folders with Trawl's code for forums, with the reader's, and with the site files."""
    return (Path(__file__).parent, Path(forum_reader.__file__).parent, sites_dir())


def shared_files() -> Mapping[str, Path]:
    """Return the folder of the site files."""
    return {"site files": sites_dir()}


def site_names() -> Sequence[str]:
    """Return the names of the site files."""
    from forums.sites import site_names  # loads all code that reads site files, which few callers need

    return site_names()


def site_names_place() -> str:
    """Return the folder of the site files."""
    return str(sites_dir())


def scrapy_settings() -> Mapping[str, object]:
    """Return `forums/settings.py`."""
    from forums import settings

    return {name: value for name, value in vars(settings).items() if name.isupper()}


def check() -> None:
    """Check the database's URL. Raises ConfigError."""
    if variable("TRAWL_DATABASE_URL"):  # loading SQLAlchemy takes 0.2 s
        from forums.storage.database import check_url

        check_url()


def task_modules() -> Sequence[str]:
    """Return the module of the forum crawl's tasks."""
    return ("forums.tasks",)


def schedule() -> Mapping[str, Round]:
    """Return the tasks that beat sends; without `store_items` nothing is stored."""
    return {
        "seed_forums": Round(5.0),
        "recheck_threads": Round(30.0),
        "store_items": Round(1.0, bounds=(1.0, 30.0)),
        "probe_sites": Round(5.0),
        "publish_events": Round(2.0),
        "notify_alarms": Round(30.0),
        "sample_fleet": Round(60.0),
        "prune_raw_pages": Round(3600.0),
    }


def preload() -> Sequence[str]:
    """Return the modules that `forums/tasks.py` imports in its functions."""
    return (
        "forums.breaker.probe",
        "forums.raw_pages",
        "forums.scheduling.rechecking",
        "forums.scheduling.seeding",
        "forums.writer.store",
    )


def consumers() -> Mapping[str, Sequence[str]]:
    """Return the forum writer and the forum spiders."""
    from forums.records import FORUM_WRITER

    return {FORUM_WRITER: ("forum_list", "forum_detail")}


def key_rules(client: redis.Redis, crawls: Sequence[CrawlKeys], *, threads: bool) -> KeyRules:
    """Return the rules of the forum crawl's keys. Raises redis.RedisError."""
    from forums.state.key_rules import key_rules as rules

    return rules(client, crawls, threads=threads)


def on_deadly_page(page: PageAtWork, what: str) -> None:
    """Open the breaker of the page's site. Raises redis.RedisError."""
    from forums.breaker.deadly_pages import open_for_page

    open_for_page(page, what)
