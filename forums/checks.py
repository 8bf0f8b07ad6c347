"""Checks of this machine for `trawl doctor` and `trawl config check`: the database and the site files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from forums.events import rules
from forums.sites import load_all, sites_dir
from forums.storage import Database
from forums.storage.engine import sqlite_file
from forums.storage.read.read_sql import NoData, existing
from forums.storage.schema.version import mismatch
from redis_components.errors import ConfigError
from workers.application import Finding


def database() -> Iterator[Finding]:
    """Yield the state of the database. Raises StorageError."""
    try:
        found = existing()
    except NoData:
        yield Finding("note", "there is none yet: the fleet makes it when it first stores items")
        return
    version = found.version()
    problem = None if version is None else mismatch(version)
    yield Finding("bad", f"{found.name}: {problem}") if problem else Finding("ok", f"{found.name} answers")


def sites() -> Iterator[Finding]:
    """Yield the faults of the site files."""
    known, errors = load_all()
    for name, error in errors.items():
        for line in str(error).splitlines():
            yield Finding("bad", line, fix=f"trawl sites check {name}")
    if not known and not errors:
        yield Finding("note", f"no site file in {sites_dir()}", fix="trawl sites new URL writes one")
    elif not errors:
        yield Finding("ok", f"right: {len(known):,} site file{'' if len(known) == 1 else 's'}")


def data_files() -> list[Path]:
    """Return the files of the database on this machine."""
    file = sqlite_file(Database.from_url().engine.url)
    return [Path(f"{file}{end}") for end in ("", "-wal", "-shm") if file]


def faults() -> Iterator[str]:
    """Yield the faults of the outputs of events, and of the site files."""
    try:
        rules.load()
    except ConfigError as error:
        yield from str(error).splitlines()
    yield from (" ".join(str(error).split()) for error in load_all()[1].values())
