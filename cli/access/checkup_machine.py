"""What `trawl doctor` finds on this machine: database, disks, permissions, secrets, ports, site files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from cli.views.output import counted

from .checkup import Verdict

PORTS = {"Flower": 5555, "the exporter": 9410}


def _database() -> Iterator[Verdict]:
    from forums.storage.schema import mismatch

    from .database import NoData, existing

    try:
        database = existing()
    except NoData:
        yield Verdict(what="database", state="note", said="there is none yet: the fleet makes it when it first stores items")
        return
    version = database.version()
    problem = None if version is None else mismatch(version)
    if problem:
        yield Verdict(what="database", state="bad", said=f"{database.name}: {problem}")
    else:
        yield Verdict(what="database", state="ok", said=f"{database.name} answers")


def _disks() -> Iterator[Verdict]:
    from redis_components.embedded import data_dir
    from workers.node.machine import disk_problems

    found = list(disk_problems(data_dir()))
    for one in found:
        yield Verdict(what="disk", state="bad" if one.grave else "note", said=one.what, fix=one.fix)
    if not found:
        yield Verdict(what="disk", state="ok", said=f"there is room for {data_dir()}")


def _permissions() -> Iterator[Verdict]:
    """Folders and files that others on this machine may read: made by an older Trawl, or by hand."""
    from forums.storage import Database
    from forums.storage.engine import sqlite_file
    from redis_components.embedded import data_dir

    file = sqlite_file(Database.from_url().engine.url)
    names = [data_dir(), *(Path(f"{file}{end}") for end in ("", "-wal", "-shm") if file)]
    open_ones = [path for path in names if path.exists() and path.stat().st_mode & 0o077]
    if open_ones:
        said = f"other users of this machine may read {', '.join(map(str, open_ones))}"
        yield Verdict(what="permissions", state="note", said=said, fix=f"chmod go= {' '.join(map(str, open_ones))}")
    else:
        yield Verdict(what="permissions", state="ok", said="nobody else may read what is stored")


def _secrets() -> Iterator[Verdict]:
    from redis_components.server.known_passwords import example_secrets

    for name in example_secrets(os.environ):
        fix = "write a secret of your own, for example from: openssl rand -hex 24"
        yield Verdict(what="secrets", state="bad", said=f"{name} is the example's password, which everybody knows", fix=fix)


def _ports() -> Iterator[Verdict]:
    from redis_components.embedded.server import is_free

    taken = [f"{port} ({of})" for of, port in PORTS.items() if not is_free(port)]
    if taken:
        said = f"in use: {', '.join(taken)}: by a fleet that runs here, or by another program"
        yield Verdict(what="ports", state="note", said=said, fix="for a second fleet: trawl up --port-flower 0 --port-exporter 0")
    else:
        yield Verdict(what="ports", state="ok", said=f"{', '.join(map(str, PORTS.values()))} are free")


def _sites() -> Iterator[Verdict]:
    from forum_reader.definition.load import sites_dir
    from forums.sites import load_all

    known, errors = load_all()
    for name, error in errors.items():
        for line in str(error).splitlines():
            yield Verdict(what="sites", state="bad", said=line, fix=f"trawl sites check {name}")
    if not known and not errors:
        yield Verdict(what="sites", state="note", said=f"no site file in {sites_dir()}", fix="trawl sites new URL writes one")
    elif not errors:
        yield Verdict(what="sites", state="ok", said=f"right: {counted(len(known), 'site file')}")


def _versions() -> Iterator[Verdict]:
    """What runs here, and whether it is what Trawl was tested with."""
    import platform
    import sqlite3
    from importlib.metadata import version

    from redis_components import __version__

    names = ("Scrapy", "celery", "redis", "SQLAlchemy")
    said = ", ".join(f"{name} {version(name)}" for name in names)
    said = f"Trawl {__version__}, Python {platform.python_version()}, {said}, SQLite {sqlite3.sqlite_version}"
    yield Verdict(what="versions", state="ok", said=said)


CHECKS: tuple[tuple[str, Callable[[], Iterable[Verdict]]], ...] = (
    ("versions", _versions),
    ("database", _database),
    ("disk", _disks),
    ("permissions", _permissions),
    ("secrets", _secrets),
    ("ports", _ports),
    ("sites", _sites),
)
"""Name and check, in the order in which they are shown."""
