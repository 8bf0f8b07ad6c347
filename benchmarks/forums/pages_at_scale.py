"""Cost of the pages and of a search at 10,000 stored rows and at a million.

    python -m benchmarks.forums.pages_at_scale [--rows 10000 1000000] [--rounds 5] [--database PostgreSQL]

One post and three comments make a thread; a text has 40 words of 20,000, common ones more often, and ten rows have a rare word.
CPU time of a page, the lowest of the rounds, and its statements: SQLite works in the process that is measured; with PostgreSQL
wall time, since its server is another process. Each page is made once before, which reads the log of events for the charts.
"""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

from sqlalchemy import Engine, event

from benchmarks.support.report import BenchmarkFailed, Report, options
from forums.storage import Database, parse
from monitoring.forums import pages, search
from monitoring.forums.data import ForumRows
from monitoring.pages import views
from monitoring.pages.views import Reading
from monitoring.source import Source
from tests.support.items import comment, post, wire
from tests.support.postgres_server import PostgresServer, binaries
from tests.support.redis_server import RedisServer
from tests.unit.monitoring.metrics.test_metrics import VIEW

BATCH, BOARDS, COMMENTS = 2000, 20, 3
RARE, RARE_ROWS = "zyzzyva", 10
MOST_TIMES_PAGE, MOST_TIMES_SEARCH = 2.0, 3.0
START = datetime(2026, 1, 1, tzinfo=UTC)
Pages = dict[str, Callable[[Reading], str]]
PAGES: Pages = {
    "overview": lambda reading: views.overview(reading, is_known=True),
    "site": lambda reading: pages.site(reading, "demo"),
    "thread": lambda reading: pages.thread(reading, "demo", "t5", 1),
    "events": pages.events,
    "history": views.history,
    "search": lambda reading: _search(reading, RARE),
    "search, author": lambda reading: _search(reading, f"{RARE} author:ada"),
}


def main() -> None:
    """Fill, measure, and print the report."""
    parser = options(__doc__, rounds=5)
    parser.add_argument("--rows", type=int, nargs=2, default=(10_000, 1_000_000), help="(default: %(default)s)")
    parser.add_argument("--database", choices=("SQLite", "PostgreSQL"), default="SQLite", help="(default: %(default)s)")
    chosen = parser.parse_args()
    report = Report(title="Pages at scale", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    with ExitStack() as stack:
        server = stack.enter_context(RedisServer())
        report.served_by(server.client())
        new_database, clock = _sqlite, time.process_time
        if chosen.database == "PostgreSQL":
            if (found := binaries()) is None:
                raise BenchmarkFailed("PostgreSQL is not installed")
            new_database, clock = stack.enter_context(PostgresServer(found)).new_database, time.perf_counter
        small, large = (_costs(server.url, new_database, clock, rows, chosen.rounds) for rows in chosen.rows)
    rows = []
    for name in PAGES:
        (before_ms, before), (after_ms, after) = small[name], large[name]
        most, times = MOST_TIMES_SEARCH if "search" in name else MOST_TIMES_PAGE, after_ms / before_ms
        rows.append([name, before_ms, after_ms, times, before, after])
        report.target(f"{name}: at most {most:g} times the CPU: {times:.1f}", times <= most)
        report.target(f"{name}: at most {most:g} times the statements: {before} and {after}", after <= most * before)
    few, many = (f"{rows:,}" for rows in chosen.rows)
    report.table(["page", f"ms at {few}", f"ms at {many}", "times", f"statements at {few}", f"at {many}"], rows)
    report.finish(chosen)


def _sqlite() -> str:
    return ""  # in the data folder


def _costs(
    redis_url: str, new_database: Callable[[], str], clock: Callable[[], float], rows: int, rounds: int
) -> dict[str, tuple[float, int]]:
    """Return time in ms and statements of each page with so many rows stored."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict("os.environ", _environment(folder, new_database())):
        with Database.from_url() as database:
            for items in _batches(rows):
                assert database.write([parse(wire(one)) for one in items]) == []
            if database.engine.dialect.name == "postgresql":  # what autovacuum does of a running server within minutes
                with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                    connection.exec_driver_sql("VACUUM ANALYZE")
        source, charts = Source(redis_url, {"forum_detail": 1}), ForumRows()
        view = replace(VIEW, now=source.look().now)

        def updated() -> ForumRows:
            charts.read()
            return charts

        reading = Reading(client=source.client, source="redis", view=view, rows=updated)
        return {name: _cost(lambda make=make: make(reading), clock, rounds) for name, make in PAGES.items()}  # type: ignore[misc]


def _environment(folder: str, url: str) -> dict[str, str]:
    return {"TRAWL_DATABASE_URL": url or f"sqlite:///{Path(folder) / 'trawl.sqlite'}", "TRAWL_DATA_DIR": folder}


def _batches(rows: int) -> Iterator[list[dict[str, Any]]]:
    chance = random.Random(36)
    for begin in range(0, rows, BATCH):
        items = []
        for number in range(begin, min(rows, begin + BATCH)):
            thread, part = divmod(number, COMMENTS + 1)
            words = [f"word{int(20_000 * chance.random() ** 3)}" for _ in range(40)]
            if number % (rows // RARE_ROWS) == 1:
                words.append(RARE)
            at = (START + timedelta(seconds=number)).isoformat()
            given = {"body": " ".join(words), "created_at": at, "fetched_at": at}
            if part:
                items.append(comment(f"c{number}", post_id=f"t{thread}", author="ada", **given))
            else:
                items.append(post(f"t{thread}", forum_id=f"f{thread % BOARDS}", author="bob", **given))
        yield items


def _search(reading: Reading, text: str) -> str:
    found = search.search(search.Asked(q=text), threading.Event())
    assert found.results.number > 0, found.trouble
    return search._page(reading, found)


def _cost(make: Callable[[], str], clock: Callable[[], float], rounds: int) -> tuple[float, int]:
    make()
    statements, times = [0], list[float]()

    def count(*_: object) -> None:
        statements[0] += 1

    for _ in range(rounds):
        statements[0] = 0
        event.listen(Engine, "before_cursor_execute", count)
        begun = clock()
        make()
        times.append(1000 * (clock() - begun))
        event.remove(Engine, "before_cursor_execute", count)
    return min(times), statements[0]


if __name__ == "__main__":
    main()
