"""`trawl sites remove`: a site with everything that is stored of it; `trawl sites forget-rows`: what is stored alone."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import redis
import typer

from cli.access.names import check_site
from cli.access.redis import redis_client
from cli.views.output import complain, counted, echo, print_json
from forums.records import FORUM_WRITER
from forums.sites import sites_dir
from forums.sites.load import is_site_name
from forums.state.removed_sites import alerts_of, forget_site, mark_removed, readmit, waiting
from forums.storage import Database
from forums.storage.write.remove_site import remove_rows, rows_of_site
from forums.writer.store import check_claim, store
from redis_components.admin.crawl_records import CrawlRecords
from redis_components.errors import ConfigError, TrawlError
from redis_components.items.stream import ItemStream, Lock, new_token
from workers.consumers.item_consumers import streams_of
from workers.fleet.holds import who
from workers.fleet.sizes import declared_fleet
from workers.raw_pages import raw_dir
from workers.raw_pages.store import size_of
from workers.state.registry import Registry

WRITERS_END_S = 60.0
"""Longest wait for the writer that stores a batch now."""
HELD_WITHIN_S = 2.0
"""Time in which each crawler obeys a hold, by its next exchange."""
_LOOK_S = 0.1
_WORDS = {"posts": "post", "comments": "comment", "revisions": "earlier text", "events": "event", "forums": "forum"}


def remove_site(name: str, *, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Show what there is of a site, ask, and remove it; return the exit code. Raises ConfigError for an unknown site."""
    if not is_site_name(name):
        raise ConfigError(f"{name!r:.100} is not the name of a site: trawl sites list shows the names")
    with redis_client() as client, Database.from_url() as database:
        check_claim(client, database)
        check_site(name, stored=database, client=client)
        files = _files(name)
        numbers = _numbers(client, database, name)
        if dry_run:
            _report(name, files, numbers, as_json, done=False)
            return 0
        _ask(name, files, numbers, yes=yes)
        mark_removed(client, name, who())
        _take_out(client, database, name, numbers, crawled_only=False)
        for file in files:  # last: a crawler that still asks the site would report it as missing
            file.unlink(missing_ok=True)
        shutil.rmtree(raw_dir() / name, ignore_errors=True)
    _report(name, files, numbers, as_json, done=True)
    return 0


def forget_rows(name: str, *, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Show what is stored of a site, ask, and take it out, so that it is read again; return the exit code. Raises ConfigError for
    an unknown site.
    """
    with redis_client() as client, Database.from_url() as database:
        check_claim(client, database)
        check_site(name, stored=database, client=client)
        numbers = _numbers(client, database, name, crawled_only=True)
        if dry_run:
            _report(name, [], numbers, as_json, done=False)
            return 0
        _ask(name, [], numbers, yes=yes)
        before = mark_removed(client, name, who())  # meanwhile nothing is asked of it, and what was under way is dropped
        _take_out(client, database, name, numbers, crawled_only=True)
        store(client, declared_fleet(client))
        readmit(client, name, before)
    _report(name, [], numbers, as_json, done=True)
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


def _numbers(client: redis.Redis, database: Database, name: str, *, crawled_only: bool = False) -> dict[str, int]:
    found = rows_of_site(database, name)
    others = {"waiting": waiting(client, name)}
    others |= (
        {}
        if crawled_only
        else {
            "alerts": len(alerts_of(client, name)),
            "raw_bytes": size_of(raw_dir(), name),
        }
    )
    return found | {key: number for key, number in others.items() if number}


def _ask(name: str, files: list[Path], numbers: dict[str, int], *, yes: bool) -> None:
    """Return after a yes. Raises ConfigError without a terminal, Abort after a no."""
    if yes:
        return
    sentence = f"{name} will be removed for good: {_listed(files, numbers)}"
    if not sys.stdin.isatty():
        raise ConfigError(f"{sentence}: add --yes")
    typer.confirm(f"{sentence}. Go on?", abort=True, err=True)


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


def _report(name: str, files: list[Path], numbers: dict[str, int], as_json: bool, *, done: bool) -> None:
    if as_json:
        print_json({"site": name, "files": [str(file) for file in files], "removed": done, "numbers": numbers})
        return
    echo(f"{name}: {'removed' if done else 'would be removed'}: {_listed(files, numbers)}")
    if done and files and not any(sites_dir().glob("*.toml")):
        complain("no site file is left: nothing is crawled until `trawl sites new ADDRESS` has written one")


def _listed(files: list[Path], numbers: dict[str, int]) -> str:
    parts = [counted(numbers[key], word) for key, word in _WORDS.items() if key in numbers]
    rest = sum(number for key, number in numbers.items() if key in ("scans", "checks", "gaps", "board_months"))
    parts += [counted(rest, "report")] if rest else []
    parts += [f"{counted(numbers['waiting'], 'request')} and start tasks in Redis"] if "waiting" in numbers else []
    parts += [counted(numbers["alerts"], "alert")] if "alerts" in numbers else []
    parts += [f"{numbers['raw_bytes'] / 1e6:,.1f} MB of kept pages"] if "raw_bytes" in numbers else []
    return ", ".join([*map(str, files), *parts]) or "nothing is stored of it"
