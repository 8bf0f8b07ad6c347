"""How many rows per second the writer stores: `python benchmarks/writer_rows.py [--rows 40000] [--url URL] [--redis URL]`.

Four figures, each the median of five rounds on an empty database (a SQLite file in a temporary folder unless `--url` names
another, empty one): fresh rows; the same rows unchanged, fetched a minute later, as most are in a crawl that comes back; every
row edited, its former text kept as a revision; and, with `--redis`, whole drains of fresh rows from the item stream: read, check,
upsert, commit, settle. One row is a post with a body of 600 characters or a comment with one of 300.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import redis

from redis_components.items import ItemStream
from redis_components.keys import CrawlKeys
from workers.storage import Database, Item, metadata, parse
from workers.writer import Outcome, drain

ROUNDS = 5
BATCH = 1000
START = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=40_000)
    options.add_argument("--url", help="SQLAlchemy URL of an empty database")
    options.add_argument("--redis", help="URL of an empty Redis, for whole drains")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = given.url or f"sqlite:///{Path(folder) / 'benchmark.sqlite'}"
        with Database.from_url(url) as database:
            print(f"{given.rows} rows into {database.engine.dialect.name}, {BATCH} per transaction, median of {ROUNDS} rounds")
            measure_writes(database, given.rows)
            if given.redis:
                measure_drains(database, given.rows, given.redis)


def measure_writes(database: Database, rows: int) -> None:
    new, again, edited = (
        [parse(line) for line in items(rows, minute=minute, text=text)] for minute, text in ((0, "b"), (1, "b"), (2, "e"))
    )
    fresh, unchanged, edits = [], [], []
    for _ in range(ROUNDS):
        empty(database)
        fresh.append(seconds(lambda: write(database, new)))
        unchanged.append(seconds(lambda: write(database, again)))
        edits.append(seconds(lambda: write(database, edited)))
    report("fresh", rows, fresh)
    report("unchanged", rows, unchanged)
    report("edited", rows, edits)


def measure_drains(database: Database, rows: int, url: str) -> None:
    client = redis.Redis.from_url(url)
    stream = ItemStream(client, CrawlKeys.for_spider("benchmark"))
    if len(stream):
        raise SystemExit(f"{stream.keys.item_stream()} is not empty: name a Redis that is")
    lines = items(rows, minute=0)
    drains = []
    for _ in range(ROUNDS):
        empty(database)
        for start in range(0, rows, BATCH):
            client.rpush(stream.keys.item_stream(), *lines[start : start + BATCH])
        drains.append(seconds(lambda: drained(stream, database)))
    report("whole drains", rows, drains)
    client.close()


def items(rows: int, *, minute: int, text: str = "b") -> list[bytes]:
    """Three comments for each post, in an order in which keys do not rise."""
    fetched = (START + timedelta(minutes=minute)).isoformat()
    lines = [json.dumps(one(n, fetched, text)).encode() for n in range(rows)]
    random.Random(1).shuffle(lines)
    return lines


def one(n: int, fetched: str, letter: str) -> dict[str, object]:
    common = {"site": "demo", "author": f"user {n % 997}", "created_at": START.isoformat(), "fetched_at": fetched}
    if n % 4:
        url = f"http://127.0.0.1/comment/p{n // 4}/1"
        return common | {
            "kind": "comment",
            "id": f"c{n}",
            "post_id": f"p{n // 4}",
            "parent_id": None,
            "body": letter * 300,
            "url": url,
        }
    counts = {"views": n, "reply_count": 3, "last_reply_at": START.isoformat()}
    text = {"title": f"Title {n}", "body": letter * 600, "url": f"http://127.0.0.1/post/p{n}"}
    return common | counts | text | {"kind": "post", "id": f"p{n // 4}", "forum_id": f"f{n % 20}"}


def write(database: Database, rows: Sequence[Item]) -> None:
    for start in range(0, len(rows), BATCH):
        database.write(rows[start : start + BATCH])


def drained(stream: ItemStream, database: Database) -> None:
    outcome = drain(stream, database, batch=BATCH, budget_s=600).outcome
    if outcome is not Outcome.EMPTY:
        raise SystemExit(f"the drain ended with {outcome}")


def empty(database: Database) -> None:
    with database.engine.begin() as connection:
        for name in ("posts", "comments", "revisions", "forums", "sites"):
            connection.execute(metadata.tables[name].delete())


def seconds(act: Callable[[], None]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def report(name: str, rows: int, rounds: Sequence[float]) -> None:
    rates = sorted(rows / each for each in rounds)
    print(f"{name:13} {statistics.median(rates):8,.0f} rows/s   (from {rates[0]:,.0f} to {rates[-1]:,.0f})")


if __name__ == "__main__":
    main()
