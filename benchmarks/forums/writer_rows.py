"""Rows per second that the writer stores, in comparison with a plain upsert of the same rows into the same tables.

    python -m benchmarks.forums.writer_rows [--rows 40000] [--rounds 5] [--only SQLite]

One row is a post with a body of 600 characters or a comment with one of 300, of words among 20,000, three comments for each
post, 1,000 rows in each transaction, in an order in which keys do not rise. Stored one after the other into an empty database:
fresh rows; the same rows unchanged, fetched a minute later, as most are in a crawl that comes back; every row edited, its
former text kept as a revision. A whole drain is fresh rows from Redis' item stream to the database: read, check, store,
settle. The plain upsert is what a script would do: the driver's executemany with INSERT … ON CONFLICT DO UPDATE of every
field, the same durability, no reading before, no hashes, no revisions, no removals. Each round runs every variant once, in
random order, each in a database of its own; rates are medians over the rounds, the ratio is taken within a round.
"""

from __future__ import annotations

import json
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import psycopg
import pymysql
from sqlalchemy import make_url

from benchmarks.support.report import BenchmarkFailed, Report, options
from benchmarks.support.rounds import Figures, Rounds
from forums.records.stored import Comment, Item, Post
from forums.storage import Database, parse
from forums.writer.store import Outcome, drain
from redis_components.items.stream import ItemStream
from redis_components.keys import CrawlKeys
from tests.support.mariadb_server import MariadbServer, server_program
from tests.support.postgres_server import PostgresServer, binaries
from tests.support.redis_server import RedisServer

BATCH = 1000
WANTED = 20_000
START = datetime(2026, 1, 1, tzinfo=UTC)
STATES = {"fresh": (0, "b"), "unchanged": (1, "b"), "edited": (2, "e")}  # minute at which it was fetched, letter of the text
KEY = ("site", "id")


def main() -> None:
    """Store, compare, and print the report."""
    parser = options(__doc__, rounds=5)
    parser.add_argument("--rows", type=int, default=40_000, help="(default: %(default)s)")
    parser.add_argument("--only", nargs="+", choices=("SQLite", "PostgreSQL", "MariaDB"), help="these databases only")
    chosen = parser.parse_args()
    report = Report(title="Rows per second of the writer", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    report.caveats.append("Wall time: a disk that is slow to sync, and neighbours on the machine, count.")
    with ExitStack() as stack:
        redis = stack.enter_context(RedisServer())
        report.served_by(redis.client())
        urls: dict[str, Callable[[], str]] = {"SQLite": partial(_sqlite, stack)}
        if "PostgreSQL" in (chosen.only or ["PostgreSQL"]) and (found := binaries()):
            server = stack.enter_context(PostgresServer(found))
            urls["PostgreSQL"] = server.new_database
            report.caveats.append(
                "PostgreSQL runs with fsync off, on a unix socket: it is the work that is measured, not its disk."
            )
        if "MariaDB" in (chosen.only or ["MariaDB"]) and (program := server_program()):
            urls["MariaDB"] = stack.enter_context(MariadbServer(program)).new_database
            report.caveats.append("MariaDB flushes its log once a second, and is reached on a unix socket.")
        urls = {kind: url for kind, url in urls.items() if kind in (chosen.only or urls)}
        states = {name: lines(chosen.rows, *state) for name, state in STATES.items()}
        subjects = {f"{writer.name}, {kind}": (writer, url) for kind, url in urls.items() for writer in (_Trawl(redis), _Plain())}
        rounds = Rounds.play(chosen.rounds, list(subjects), lambda name: _measure(*subjects[name], states))
    add_tables(report, rounds, list(urls))
    report.finish(chosen)


def add_tables(report: Report, rounds: Rounds, kinds: Sequence[str]) -> None:
    """Add a table for each kind of database."""
    for kind in kinds:
        trawl, plain = f"Trawl, {kind}", f"plain upsert, {kind}"
        rows = []
        for name in STATES:
            rate = rate_of(name)
            rows.append([name, rounds.median(trawl, rate), rounds.median(plain, rate), rounds.ratio(trawl, plain, rate)])
            if kind == "SQLite":
                reached = rounds.median(trawl, rate)
                report.target(f"{kind}, {name}: at least {WANTED:,} rows per second: {reached:,.0f}", reached >= WANTED)
        rows.append(["whole drain, fresh", rounds.median(trawl, rate_of("drain")), "", ""])
        report.table([kind, "Trawl, rows/s", "plain upsert, rows/s", "Trawl ÷ plain"], rows)


def rate_of(name: str) -> Callable[[Figures], float]:
    """Return a getter of the rate `name` of a run."""
    return lambda figures: float(figures[name])


def _sqlite(stack: ExitStack) -> str:
    return f"sqlite:///{Path(stack.enter_context(tempfile.TemporaryDirectory())) / 'trawl.sqlite'}"


def _measure(writer: _Trawl | _Plain, url: Callable[[], str], states: dict[str, list[bytes]]) -> Figures:
    figures: Figures = {}
    with writer.opened(url()) as write:
        for name, payloads in states.items():
            items = [parse(payload) for payload in payloads]
            begun = time.perf_counter()
            for start in range(0, len(items), BATCH):
                write(items[start : start + BATCH])
            figures[name] = len(items) / (time.perf_counter() - begun)
    if isinstance(writer, _Trawl):
        figures["drain"] = writer.drain(url(), states["fresh"])
    return figures


Write = Callable[[Sequence[Item]], object]


@dataclass(frozen=True)
class _Trawl:
    redis: RedisServer
    name: str = "Trawl"

    @contextmanager
    def opened(self, url: str) -> Iterator[Write]:
        with Database.from_url(url) as database:
            yield database.write

    def drain(self, url: str, payloads: Sequence[bytes]) -> float:
        client = self.redis.client()
        stream = ItemStream(client, CrawlKeys.for_spider("benchmark"))
        for start in range(0, len(payloads), BATCH):
            client.rpush(stream.keys.item_stream(), *payloads[start : start + BATCH])
        with Database.from_url(url) as database:
            begun = time.perf_counter()
            report = drain(stream, database, batch=BATCH, budget_s=600)
        moved = report.items
        if report.outcome is not Outcome.EMPTY or moved != len(payloads):
            raise BenchmarkFailed(f"the drain moved {moved} items and ended with {report.outcome}")
        return len(payloads) / (time.perf_counter() - begun)


class _Plain:
    name = "plain upsert"

    @contextmanager
    def opened(self, url: str) -> Iterator[Write]:
        Database.from_url(url).open().close()  # the same tables
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite":
            connection: Any = sqlite3.connect(parsed.database or "")
            connection.execute("PRAGMA synchronous = FULL")
        elif parsed.get_backend_name() == "mysql":
            where = {"unix_socket": str(parsed.query["unix_socket"]), "database": parsed.database}
            connection = pymysql.connect(user=parsed.username, password=parsed.password or "", **where)
        else:
            connection = psycopg.connect(parsed.set(drivername="postgresql").render_as_string(hide_password=False))
        try:
            yield lambda items: self._write(connection, items, "?" if isinstance(connection, sqlite3.Connection) else "%s")
        finally:
            connection.close()

    def _write(self, connection: Any, items: Sequence[Item], mark: str) -> None:
        cursor = connection.cursor()
        for kind, table in ((Post, "posts"), (Comment, "comments")):
            names = [name for name in kind.__struct_fields__ if name != "deleted"]
            values = attrgetter(*names, "fetched_at")
            rows = [values(item) for item in items if isinstance(item, kind)]
            if mark == "?":  # times as text
                rows = [tuple(one.isoformat() if isinstance(one, datetime) else one for one in row) for row in rows]
            others = [name for name in names if name not in KEY]
            conflict = "ON CONFLICT (site, id) DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in others)
            if isinstance(connection, pymysql.Connection):
                conflict = "ON DUPLICATE KEY UPDATE " + ", ".join(f"{name} = VALUES({name})" for name in others)
            cursor.executemany(
                f"INSERT INTO {table} ({', '.join(names)}, first_seen_at) VALUES ({', '.join([mark] * (len(names) + 1))})"  # noqa: S608 - names of this project
                f" {conflict}",
                rows,
            )
        connection.commit()


def lines(rows: int, minute: int, letter: str) -> list[bytes]:
    """Items as they are in the stream."""
    fetched = (START + timedelta(minutes=minute)).isoformat()
    made = [json.dumps(one(n, fetched, letter)).encode() for n in range(rows)]
    random.Random(1).shuffle(made)
    return made


def one(n: int, fetched: str, letter: str) -> dict[str, object]:
    """Item number `n`."""
    common = {"site": "demo", "author": f"user {n % 997}", "created_at": START.isoformat(), "fetched_at": fetched}
    thread = f"p{n // 4}"
    if n % 4:
        of_comment = {"kind": "comment", "id": f"c{n}", "post_id": thread, "parent_id": None, "body": _text(n, letter, 300)}
        return common | of_comment | {"url": f"http://127.0.0.1/comment/{thread}/1"}
    counts = {"views": n, "reply_count": 3, "last_reply_at": START.isoformat()}
    text = {"title": f"Title {n}", "body": _text(n, letter, 600), "url": f"http://127.0.0.1/post/{thread}"}
    return common | counts | text | {"kind": "post", "id": thread, "forum_id": f"f{n % 20}"}


def _text(n: int, letter: str, characters: int) -> str:
    """Return words, common ones more often: each costs the index of words."""
    chance = random.Random(f"{n}{letter}")
    words = (_word(int(20_000 * chance.random() ** 3)) for _ in range(characters // 4))
    return " ".join(words)[:characters]


def _word(number: int) -> str:
    return "".join(chr(97 + number // 26**place % 26) for place in range(4)) + "er"


if __name__ == "__main__":
    main()
