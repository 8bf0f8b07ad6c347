"""Environment variables of the forum crawl; other variables, and how all are read: `workers/environment/`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from redis_components.embedded import project_dir
from workers.environment.declaration import EmptyIsNone, Secret, Variables, Whole, declare, parsed_by


def _default_sites() -> Path:
    return project_dir() / "sites"


class Sites(Variables):
    """Site files"""

    sites_dir: Annotated[Path, parsed_by(lambda text: text or _default_sites())] = declare(
        meaning="site files", shown="`sites` next to `scrapy.cfg`", derived=lambda _: _default_sites()
    )


class Storage(Variables):
    """Storage"""

    database_url: Annotated[Secret | None, EmptyIsNone] = declare(
        None,
        "SQLAlchemy URL: `postgresql+psycopg://…` needs the extra `postgres`, `mysql+pymysql://…` (MySQL 8, MariaDB 10.6) the"
        " extra `mysql`. Its tables: [database.md](database.md)",
        shown="`sqlite:///<data>/trawl.sqlite`",
    )
    reading_url: Annotated[Secret | None, EmptyIsNone] = declare(
        None,
        "the same database for `trawl sql`, by a user who can only read; PostgreSQL's superusers run no `trawl sql`:"
        " [database.md](database.md#reading-by-sql)",
        shown="`TRAWL_DATABASE_URL`",
    )


class Scheduling(Variables):
    """Scheduling of forums"""

    max_pending: Whole = declare(
        1000,
        "forums that may wait or be scanned at one time; more are seeded later ([freshness.md](../freshness.md))",
        rule="must be a whole number from 1",
        ge=1,
    )


class Records(Variables):
    """Thread records"""

    thread_records: Whole = declare(
        2_000_000,
        "threads whose stored state Redis remembers, about 100 bytes each; others are read whole when listed again",
        rule="must be a whole number from 1",
        ge=1,
    )


class Reading(Variables):
    """Reading of pages"""

    parse_timeout_s: Whole = declare(
        10,
        "CPU seconds for an unusually large page, which is parsed in a child process"
        " ([which](../guarantees.md#promises-about-crawlers-and-redis)), and rejected after that time",
        rule="the seconds for parsing a page in a child process are a number from 1 to 600",
        ge=1,
        le=600,
    )


class Events(Variables):
    """Events"""

    events_file: Annotated[Path | None, EmptyIsNone] = declare(
        None,
        "file with [rules] and [outputs] ([events.md](../events.md)), read for one release: they belong into `trawl.toml`",
        shown="`events.toml` next to `scrapy.cfg`, if there is one",
    )
    events_days: Whole = declare(
        7,
        "days for which events are kept: an output that is away for longer misses some",
        rule="must be a whole number of days from 1 to 365",
        ge=1,
        le=365,
    )


GROUPS: tuple[type[Variables], ...] = (Sites, Storage, Scheduling, Records, Reading, Events)
