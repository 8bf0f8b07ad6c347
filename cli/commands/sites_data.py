"""What is stored of a site: `trawl sites reparse` reads kept pages again, `remove` and `forget-rows` take out rows."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Annotated

import redis
import typer

from cli.access import redis_client, running_url
from cli.names import check_site, parse_since
from cli.views.options import Since
from cli.views.output import complain, confirm, counted, echo, report
from fleet_operations.consumers.declared import streams_of
from forums.raw_pages.reparse import reparse as read_again
from forums.raw_pages.reparse import stored_days
from forums.records import FORUM_WRITER
from forums.sites import load_site, sites_dir
from forums.sites.load import is_site_name
from forums.state.removed_sites import alerts_of, forget_site, mark_removed, readmit, waiting
from forums.storage import Database
from forums.storage.write.remove_site import remove_rows, rows_of_site
from forums.writer.fleet_database import check_claim
from forums.writer.store import store
from redis_components.errors import ConfigError, TrawlError
from redis_components.items.stream import ItemStream, Lock, new_token
from redis_components.keys import CrawlRecords
from workers.fleet.holds import who
from workers.fleet.sizes import declared_fleet
from workers.raw_pages import raw_dir
from workers.raw_pages.store import size_of
from workers.state.registry import Registry


def reparse(site: Annotated[str, typer.Argument(metavar="SITE", help="Name of a site.")], since: Since = None) -> int:
    """Read the raw pages that are kept of a site again, and store the results. Nothing is fetched.

    Pages are kept when `[raw] keep_days` of the site file is set, on the disk of the node that fetched them: run this command on
    each node. A row keeps the time at which its page was fetched: it replaces wrong values, does not count as an edit by
    the author, and never overwrites a later fetch. The command is safe to repeat.

    If none of the first thousand rows has a text, the selector is probably wrong, and nothing is stored. Exit code 1: no pages
    were found, or some could not be read.

    **Example:**

        trawl sites reparse books --since 3d
    """
    declared = load_site(site)
    moment = parse_since(since) if since else None
    if not stored_days(raw_dir(), site, moment):
        keeps = declared.raw.keep_days
        why = f"it keeps them for {keeps} days" if keeps else "[raw] keep_days is 0, so none are kept"
        complain(f"no pages of {site} in {raw_dir() / site}{' since then' if since else ''}: {why}")
        return 1
    database = Database.from_url()
    if url := running_url():
        with redis_client(url) as client, closing(database):
            check_claim(client, database)
    with database:
        report = read_again(database, raw_dir(), declared, since=moment)
    echo(f"{report.pages:,} pages read, {report.items:,} items stored")
    for reason, times in report.faults.most_common():
        echo(f"{times:,} times: {reason}")
    return 1 if report.faults or not report.pages else 0


WRITERS_END_S = 60.0
"""Longest wait for the writer that stores a batch now."""
HELD_WITHIN_S = 2.0
"""Time in which each crawler obeys a hold, by its next exchange."""
_LOOK_S = 0.1
_WORDS = {"posts": "post", "comments": "comment", "revisions": "earlier text", "events": "event", "forums": "forum"}


def remove_site(name: str, *, crawled_only: bool, yes: bool, as_json: bool) -> int:
    """Show what there is of a site, ask, and remove it, or only what was crawled, so that it is read again; return the exit code.
    Raises ConfigError for an unknown site.
    """
    if not is_site_name(name):
        raise ConfigError(f"{name!r:.100} is not the name of a site: trawl sites list shows the names")
    with redis_client() as client, Database.from_url() as database:
        check_claim(client, database)
        check_site(name, stored=database, client=client)
        files = [] if crawled_only else _files(name)
        numbers = _numbers(client, database, name, crawled_only=crawled_only)
        if not yes:
            confirm(f"{name} will be removed for good: {_listed(files, numbers)}")
        before = mark_removed(client, name, who())  # meanwhile nothing is asked of it, and what was under way is dropped
        _take_out(client, database, name, numbers, crawled_only=crawled_only)
        if crawled_only:
            store(client, declared_fleet(client))
            readmit(client, name, before)
        else:
            for file in files:  # last: a crawler that still asks the site would report it as missing
                file.unlink(missing_ok=True)
            shutil.rmtree(raw_dir() / name, ignore_errors=True)
    outcome = {"site": name, "files": [str(file) for file in files], "removed": True, "numbers": numbers}
    report(as_json, outcome, f"{name}: removed: {_listed(files, numbers)}")
    if not as_json and files and not any(sites_dir().glob("*.toml")):
        complain("no site file is left: nothing is crawled until `trawl sites new ADDRESS` has written one")
    return 0


def _take_out(client: redis.Redis, database: Database, name: str, numbers: dict[str, int], *, crawled_only: bool) -> None:
    with _no_writer(client):
        numbers |= remove_rows(database, name)
        if any(one.alive(Registry(client).now()) for one in Registry(client).crawlers()):
            time.sleep(HELD_WITHIN_S)
        forget_site(client, name, crawled_only=crawled_only)


def _files(name: str) -> list[Path]:
    """Return the files of a site. Raises ConfigError where they cannot be deleted: its crawl would begin again."""
    folder = sites_dir()
    files = [path for ending in ("toml", "wrong") if (path := folder / f"{name}.{ending}").exists()]
    if files and not os.access(folder, os.W_OK):
        raise ConfigError(f"{files[0]} cannot be deleted from here: delete it where the folder can be written, then repeat this")
    return files


def _numbers(client: redis.Redis, database: Database, name: str, *, crawled_only: bool) -> dict[str, int]:
    found = rows_of_site(database, name) | {"waiting": waiting(client, name)}
    if not crawled_only:
        found |= {"alerts": len(alerts_of(client, name)), "raw_bytes": size_of(raw_dir(), name)}
    return {key: number for key, number in found.items() if number or key not in ("waiting", "alerts", "raw_bytes")}


@contextmanager
def _no_writer(client: redis.Redis) -> Iterator[None]:
    """Keep the writers of all crawls out meanwhile: what they learn of items follows their commit. Raises TrawlError."""
    crawls = streams_of(FORUM_WRITER, CrawlRecords(client).all(), declared_fleet(client))
    held = [(ItemStream(client, keys, lock_s=600.0), new_token()) for keys in crawls.values()]
    until = time.monotonic() + WRITERS_END_S
    try:
        for stream, token in held:
            while stream.lock(token) is Lock.BUSY:
                if time.monotonic() > until:
                    raise TrawlError("the writer does not end its batch: the site is paused; repeat this command")
                time.sleep(_LOOK_S)
        yield
    finally:
        for stream, token in held:
            with suppress(redis.RedisError):
                stream.unlock(token)


def _listed(files: list[Path], numbers: dict[str, int]) -> str:
    parts = [counted(numbers[key], word) for key, word in _WORDS.items() if key in numbers]
    rest = sum(number for key, number in numbers.items() if key in ("scans", "checks", "board_months"))
    parts += [counted(rest, "report")] if rest else []
    parts += [f"{counted(numbers['waiting'], 'request')} and start tasks in Redis"] if "waiting" in numbers else []
    parts += [counted(numbers["alerts"], "alert")] if "alerts" in numbers else []
    parts += [f"{numbers['raw_bytes'] / 1e6:,.1f} MB of kept pages"] if "raw_bytes" in numbers else []
    return ", ".join([*map(str, files), *parts]) or "nothing is stored of it"
