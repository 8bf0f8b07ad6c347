"""Size of a million records and rows, and cost of a page in a browser.

    python -m benchmarks.forums.sizes [--threads 100000] [--rows 40000] [--pages 30] [--chromium /usr/bin/chromium]

Threads: records as the writer keeps them (a token of 20 characters, counts, the id of the last comment) in an empty server, by
used_memory. Rows: a post with a body of 600 characters or a comment with one of 300, three comments for each post, stored into an
empty database, by the size of its file (SQLite, after a checkpoint) or of the database (PostgreSQL). Browser: Chromium, headless,
opens the same HTML page of 86 KB again and again, each time in a new context as a download handler does, reads the document and
closes it; CPU of all its processes, and their memory (PSS) while a page is open. Pages of others run scripts and cost more.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import redis
from sqlalchemy import make_url, text

from benchmarks.forums.writer_rows import BATCH, START, lines
from benchmarks.support.chromium import pages_of
from benchmarks.support.report import Report, options
from forums.state.database_state import ThreadRecord, keep
from forums.storage import Database, parse
from redis_components.keys import CrawlKeys
from tests.support.postgres_server import PostgresServer, binaries
from tests.support.redis_server import RedisServer

MILLION = 1_000_000


def main() -> None:
    """Run the benchmark and print the report."""
    parser = options(__doc__)
    parser.add_argument("--threads", type=int, default=100_000, help="(default: %(default)s)")
    parser.add_argument("--rows", type=int, default=40_000, help="(default: %(default)s)")
    parser.add_argument("--pages", type=int, default=30, help="(default: %(default)s)")
    parser.add_argument("--chromium", default=shutil.which("chromium"), help="(default: %(default)s)")
    chosen = parser.parse_args()
    report = Report(title="Sizes", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    rows = []
    with RedisServer() as server:
        client = server.client()
        report.served_by(client)
        rows.append(["threads in Redis", chosen.threads, of_threads(client, chosen.threads)])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trawl.sqlite"
        rows.append(["rows in SQLite", chosen.rows, of_rows(f"sqlite:///{file}", chosen.rows)])
    if found := binaries():
        with PostgresServer(found) as database:
            rows.append(["rows in PostgreSQL", chosen.rows, of_rows(database.new_database(), chosen.rows)])
    shown = [[what, number, size / number, size / number * MILLION / 2**20] for what, number, size in rows]
    report.table(["what", "measured with", "B each", "MiB a million"], shown)
    if chosen.chromium:
        cpu_ms, memory_mib = pages_of(chosen.chromium, chosen.pages)
        report.table(["browser", "CPU of a page, ms", "memory with one page, MiB"], [["Chromium, headless", cpu_ms, memory_mib]])
    report.finish(chosen)


def of_threads(client: redis.Redis, threads: int) -> int:
    """Bytes that so many records take."""
    keys = CrawlKeys.for_spider("forum_detail")
    before = int(client.info("memory")["used_memory"])
    for begin in range(0, threads, BATCH):
        named = (n for n in range(begin, min(begin + BATCH, threads)))
        keep(client, keys, {f"demo/{n}": ThreadRecord(f"{n:020}", n % 40, 1, f"c{n}", None, 496_000, n % 40) for n in named})
    return int(client.info("memory")["used_memory"]) - before


def of_rows(url: str, rows: int) -> int:
    """Bytes that so many posts and comments take, with their indexes and the log of changes."""
    items = [parse(line) for line in lines(rows, START.minute, "b")]
    with Database.from_url(url) as database:
        empty = _bytes(database, url)
        for begin in range(0, rows, BATCH):
            database.write(items[begin : begin + BATCH])
        return _bytes(database, url) - empty


def _bytes(database: Database, url: str) -> int:
    if path := make_url(url).database if url.startswith("sqlite") else None:
        with database.engine.connect() as connection:
            connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))
        return Path(path).stat().st_size
    with database.engine.connect() as connection:
        return int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())


if __name__ == "__main__":
    main()
