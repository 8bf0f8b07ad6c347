"""Implementation of the application interface of the fleet (`workers/application.py`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from forums import FORUM_DETAIL, FORUM_LIST, environment
from redis_components.errors import ConfigError
from redis_components.server.variables import variable
from workers.application import Check, Finding, KeyRules, Round

if TYPE_CHECKING:
    import redis
    from scrapy.http import Response

    from forum_reader.page.soft_block import BlockVerdict
    from redis_components.keys import CrawlKeys
    from workers.environment.declaration import Variables
    from workers.process.page_at_work import PageAtWork
    from workers.state.group_runs import EndedMember

    from .overview.model import ForumSitesReader

T = TypeVar("T")


def shared_files() -> Mapping[str, Path]:
    """Return the folder of the site files."""
    return {"site files": _sites_dir()}


def site_names() -> Sequence[str]:
    """Return the names of the site files."""
    from forums.sites import site_names  # loads all code that reads site files, which few callers need

    return site_names()


def site_names_place() -> str:
    """Return the folder of the site files."""
    return str(_sites_dir())


def lanes() -> Collection[str]:
    """Return the lanes of the site files that can be read."""
    from forums.sites import load_all

    return {one.politeness.lane for one in load_all()[0] if one.politeness.lane is not None}


def variables() -> Sequence[type[Variables]]:
    """Return the variables of `forums/environment.py`."""
    return environment.GROUPS


def feeds() -> Mapping[str, str]:
    """Return the list service, whose crawlers make start tasks for the detail service."""
    return {FORUM_LIST: FORUM_DETAIL}


def crawler_keys() -> Sequence[str]:
    """Return the keys of the errors of site files, and of the files that were checked by their first pages."""
    from forums.state.keys import ForumFleetKeys  # loads redis-py, which `trawl read` does without

    return ForumFleetKeys().wrong_sites(), ForumFleetKeys().checked_files()


def scrapy_settings() -> Mapping[str, object]:
    """Return the settings of Scrapy, over those of any spider in `workers/settings.py`."""
    return {"SPIDER_MODULES": ["forums.spiders"], "NEWSPIDER_MODULE": "forums.spiders"}


def check() -> None:
    """Check the folder of site files, and the database's URL. Raises ConfigError."""
    _sites_dir()
    if variable("TRAWL_DATABASE_URL"):  # loading SQLAlchemy takes 0.2 s
        from forums.storage.database import check_url

        check_url()


def commands() -> Mapping[str, str]:
    """Return the commands that read or write forums, their site files and what is stored."""
    return {
        "sites": "cli.commands.sites.app",
        "watch": "cli.commands.up.watch",
        "seed": "cli.commands.seed.seed",
        "forums": "cli.commands.forums.app",
        "why": "cli.commands.export.why",
        "search": "cli.commands.export.search_stored",
        "sql": "cli.commands.export.sql",
        "export": "cli.commands.export.export",
        "events": "cli.commands.events.app",
        "alert": "cli.commands.alert.alert",
        "read": "cli.commands.read.read",
        "db": "cli.commands.backup.db",
    }


def checks() -> Mapping[str, Callable[[], Iterable[Finding]]]:
    """Return the checks of the database and the site files."""
    return {"database": _database, "sites": _sites}


def _database() -> Iterator[Finding]:
    """Yield the state of the database. Raises StorageError."""
    from forums.storage.database import mismatch
    from forums.storage.read.read_sql import NoData, existing

    try:
        found = existing()
    except NoData:
        yield Finding("note", "there is none yet: the fleet makes it when it first stores items")
        return
    version = found.version()
    problem = None if version is None else mismatch(version)
    yield Finding("bad", f"{found.name}: {problem}") if problem else Finding("ok", f"{found.name} answers")


def _sites() -> Iterator[Finding]:
    """Yield the faults of the site files."""
    from forums.sites import load_all

    known, errors = load_all()
    for name, error in errors.items():
        for line in str(error).splitlines():
            yield Finding("bad", line, fix=f"trawl sites check {name}")
    if not known and not errors:
        yield Finding("note", f"no site file in {_sites_dir()}", fix="trawl sites new URL writes one")
    elif not errors:
        yield Finding("ok", f"right: {len(known):,} site file{'' if len(known) == 1 else 's'}")


def data_files() -> Sequence[Path]:
    """Return the files of the database on this machine."""
    from forums.storage import Database
    from forums.storage.engine import sqlite_file

    file = sqlite_file(Database.from_url().engine.url)
    return [Path(f"{file}{end}") for end in ("", "-wal", "-shm") if file]


def faults() -> Iterable[str]:
    """Yield the faults of the outputs of events, and of the site files."""
    from forums.events import rules
    from forums.sites import load_all

    try:
        rules.load()
    except ConfigError as error:
        yield from str(error).splitlines()
    yield from (" ".join(str(error).split()) for error in load_all()[1].values())


def check_node(client: redis.Redis) -> None:
    """Compare this machine's database with the fleet's. Raises AnotherDatabase; writers report one that is away, and wait."""
    from forums.storage import Database, StorageError
    from forums.writer.fleet_database import AnotherDatabase, check_claim

    try:
        with closing(Database.from_url()) as database:
            check_claim(client, database)
    except AnotherDatabase:
        raise
    except StorageError:
        pass


def start_warnings(services: Collection[str]) -> Sequence[str]:
    """Return a warning where there is no site file: the fleet would run for nothing."""
    if FORUM_LIST not in services or any(_sites_dir().glob("*.toml")):
        return ()
    return (f"no site file in {_sites_dir()}: nothing will be crawled until `trawl sites new URL` has written one",)


def first_command(services: Collection[str]) -> str:
    """Return the commands for the forums that are watched, or the one that watches the first."""
    if FORUM_LIST not in services:
        return ""
    return "trawl forums, trawl alert WORDS --to ADDRESS" if any(_sites_dir().glob("*.toml")) else "trawl watch ADDRESS"


def task_modules() -> Sequence[str]:
    """Return the module of the forum crawl's tasks."""
    return ("forums.tasks",)


def schedule() -> Mapping[str, Round]:
    """Return the tasks that beat sends; without `store_items` nothing is stored."""
    return {
        "seed_forums": Round(5.0),
        "recheck_threads": Round(30.0),
        "store_items": Round(1.0, bounds=(1.0, 30.0)),
        "publish_events": Round(2.0),
        "notify_alarms": Round(30.0),
        "prune_raw_pages": Round(3600.0),
    }


def preload() -> Sequence[str]:
    """Return the modules that `forums/tasks.py` imports in its functions."""
    return (
        "forums.breaker.probe",
        "forums.events.alerts",
        "forums.events.publish",
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
    """Return the types of the forum crawl's keys and the checks of their fields, with `threads` also those of the records of
    threads. Raises redis.RedisError.
    """
    from forums.state import alerts, database_state
    from forums.state.keys import MOST_REQUESTS, ForumCrawlKeys, ForumFleetKeys, ForumState, spent_of
    from redis_components.server.untrusted_values import as_text, decoded, number
    from workers.state.quarantine import HASH, MOST_FIELDS, STRING

    fleet = ForumFleetKeys()
    checks: dict[str, Check] = {
        fleet.budgets(): lambda _, raw: number(raw, 0.0, MOST_REQUESTS),
        fleet.delays(): database_state.delay_of,
        fleet.alerts(): alerts.alert_of,
    }
    others = [fleet.database(), fleet.wrong_sites(), fleet.output_troubles()]
    for keys in crawls:
        forums = ForumCrawlKeys(keys)
        checks[forums.forum_states()] = lambda _, raw: decoded(raw, ForumState)
        checks[forums.forum_dues()] = lambda _, raw: number(raw)
        others.append(forums.marks())
    types = {**dict.fromkeys((*checks, *others), HASH), fleet.probing(): STRING}
    if as_text(client.type(fleet.budgets())) == "hash":
        sites = islice(client.hkeys(fleet.budgets()), MOST_FIELDS)
        checks |= {fleet.spent(as_text(site)): spent_of for site in sites}
    if threads:
        checks |= {keys.threads(): database_state.record_of for keys in crawls}
    return KeyRules(types, checks)


def verdict(response: Response) -> BlockVerdict | None:
    """Return the fault of a response by the marks of challenges, logins and refusals."""
    from forum_reader.page import soft_block

    return soft_block.verdict(response)


def probe_sites(client: redis.Redis) -> Mapping[str, str]:
    """Probe sites with a file whose breaker is due; see `forums/breaker/probe.py`."""
    from forums.breaker.probe import probe_sites as probed

    return probed(client)


def sites_reader(client: redis.Redis) -> ForumSitesReader:
    """Return the reader of boards and files."""
    from .overview.model import ForumSitesReader

    return ForumSitesReader(client)


def stored_members(spider: str, group: str | None, limit: int, *, longest_s: float | None = None) -> list[EndedMember] | None:
    """Return the latest rows of a spider in the table `run_members`. Raises StorageError."""
    from forums.storage.history import RunHistory

    from .storage.read.read_sql import NoData, stored_data

    try:
        with stored_data(longest_s=longest_s) as database:
            return RunHistory(database).members(spider, group, limit)
    except NoData:
        return None


def monitoring() -> str:
    """Return the pages of sites, boards, events and the search, and their metrics."""
    return "monitoring.forums"


def on_deadly_page(page: PageAtWork, what: str) -> None:
    """Open the breaker of the page's site. Raises redis.RedisError."""
    from .breaker.state import open_for_page

    open_for_page(page, what)


def _sites_dir() -> Path:
    return environment.Sites.read().sites_dir
