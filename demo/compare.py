"""Compares a database with the record of the demo's forum; that of a fleet in containers with

    docker compose exec worker-control python -m demo.compare [--json] [--as-stored]

The forum is frozen meanwhile. Every thread is read once more, then both are compared; with --as-stored it is not, and what a
fault lost stays lost. Exit code 0: all is stored, once.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha1
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, func, not_, or_, select

from demo.forum.process import ask
from forums import FORUM_DETAIL
from forums.scheduling.rechecking import recheck
from forums.storage import Database, checks, comments, posts, scans
from redis_components.admin.inspector import snapshot
from redis_components.connection import connect

LIMIT_S = 300.0
ASK_AGAIN_S = 20.0
BOARDS = 4
SITE = "demo"


@dataclass(frozen=True, kw_only=True)
class Found:
    """Result of the comparison."""

    unchecked: int
    """Threads that were not read again within the limit."""
    pages: int
    """Pages that the forum has served since its start."""
    seconds: float
    tables: tuple[Coverage, ...]

    @property
    def complete(self) -> bool:
        return not self.unchecked and all(one.complete for one in self.tables)

    def as_json(self) -> dict[str, Any]:
        """Return the result as a dict for JSON."""
        tables = {
            one.table: {
                "expected": one.expected,
                "stored": one.stored,
                "missing": len(one.missing),
                "duplicates": one.duplicates,
                "faults": len(one.faults),
                "complete": one.complete,
                "unlike": {name: list(ids[:5]) for name, ids in one.unlike().items()},
            }
            for one in self.tables
        }
        return {"unchecked": self.unchecked, "pages": self.pages, "seconds": round(self.seconds), "tables": tables}


def followed_up(client: Any) -> bool:
    """Return True if every thread found by a scan was read and stored: nothing waits in the service that reads them."""
    crawl = snapshot(client, FORUM_DETAIL)
    return not (crawl.start_tasks or crawl.overflow or crawl.leased_tasks or crawl.ready or crawl.leased or crawl.items)


def settling(database: Database, client: Any, frozen: datetime, *, again: bool = True) -> Iterator[int]:
    """Yield how many threads were not read since then, at each look, until all were, or, not `again`, until what scans since then
    found is stored.
    """
    asked = 0.0
    while True:
        # In this order: a thread found by a scan is a start task before the scan is stored, and a row only once it was read.
        followed = scanned(database, SITE, frozen) >= BOARDS and followed_up(client)
        left = unchecked(database, SITE, frozen) if again else int(not followed)
        if followed and not left:
            return
        yield left
        if again and time.monotonic() - asked > ASK_AGAIN_S:
            recheck(client, database, SITE, force=True)
            asked = time.monotonic()


def look(forum: str, *, again: bool = True) -> Found:
    """Freeze the forum, wait, compare; let the forum go on as before."""
    rate = ask(forum, "/control")["rate"]
    ask(forum, "/control", {"rate": 0})
    try:
        begun, frozen = time.monotonic(), datetime.now(UTC)
        database = Database.from_url().open(upgrade=False)
        looks = settling(database, connect(), frozen, again=again)
        while (left := next(looks, None)) is not None and time.monotonic() - begun < LIMIT_S:
            time.sleep(1)
        tables = compare(database, ask(forum, "/truth"), SITE)
        return Found(unchecked=left or 0, pages=ask(forum, "/stats")["total"], seconds=time.monotonic() - begun, tables=tables)
    finally:
        ask(forum, "/control", {"rate": rate})


def scanned(database: Database, site: str, since: datetime) -> int:
    """Return the number of boards with a complete scan that began after this time."""
    query = select(func.count(func.distinct(scans.c.forum_id))).where(
        scans.c.site == site, scans.c.started_at > since, scans.c.outcome == "complete"
    )
    (number,) = next(database.stream(query))
    return int(number)


def unchecked(database: Database, site: str, since: datetime) -> int:
    """Return the number of threads that since then were not read whole, nor found unchanged by a check, nor found gone."""
    of_post: ColumnElement[bool] = and_(checks.c.site == posts.c.site, checks.c.post_id == posts.c.id)
    unchanged = and_(checks.c.mode == "check", checks.c.started_at >= since, checks.c.whole.is_(False), checks.c.reason.is_(None))
    query = (
        select(func.count())
        .select_from(posts.outerjoin(checks, of_post))
        .where(posts.c.site == site, posts.c.deleted_at.is_(None))
        .where(or_(checks.c.whole_at.is_(None), checks.c.whole_at < since), or_(checks.c.post_id.is_(None), not_(unchanged)))
    )
    (number,) = next(database.stream(query))
    return int(number)


class Piece(NamedTuple):
    """A post or comment as it is stored: `hash` is the forum's, made of the row, and empty where only a removed state was ever
    seen; `deleted` whether it has a tombstone.
    """

    id: str
    hash: str
    deleted: bool


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Comparison of one table with the truth. Tuples hold ids."""

    table: str
    expected: int  # pieces that the forum shows
    stored: int  # rows, right or wrong
    missing: tuple[str, ...]  # shown, not stored
    duplicates: int  # rows beyond the first of each id
    wrong: tuple[str, ...]  # shown, and stored with another content
    unknown: tuple[str, ...]  # never in the forum
    undeleted: tuple[str, ...] = ()  # deleted in the forum, the row has no tombstone
    buried: tuple[str, ...] = ()  # shown in the forum, the row has a tombstone
    spoilt: tuple[str, ...] = ()  # deleted in the forum, the stored content is none of its versions
    edited: int = 0  # pieces that the forum shows in another version than the first
    deleted: int = 0  # stored pieces that the forum deleted

    @property
    def complete(self) -> bool:
        return not (self.duplicates or self.faults)

    def unlike(self) -> dict[str, tuple[str, ...]]:
        """Return the ids by kind of fault, without empty kinds."""
        kinds = ("missing", "wrong", "unknown", "undeleted", "buried", "spoilt")
        return {name: ids for name in kinds if (ids := getattr(self, name))}

    @property
    def faults(self) -> frozenset[str]:
        """Every id with a fault."""
        return frozenset(one for ids in self.unlike().values() for one in ids)

    @property
    def share(self) -> float:
        """Share of the shown pieces that is stored correctly, 0 to 1."""
        wrong = {*self.missing, *self.wrong, *self.buried}
        return max(0.0, 1 - len(wrong) / self.expected) if self.expected else 1.0

    def sentence(self) -> str:
        """Return the result in a line; `100 %` only for all of it."""
        share = "100 %" if self.share >= 1 else f"{min(self.share * 100, 99.99):.2f} %"
        changed = f"{self.edited:,} edited, {self.deleted:,} deleted"
        return f"{self.table}: {self.expected:,} shown, {share} stored as they are shown, {self.duplicates:,} twice; {changed}"


def compare(database: Database, truth: Mapping[str, Any], site: str) -> tuple[Coverage, Coverage]:
    """Compare posts and comments of `site`, each row's content hashed again, with the forum's `/truth`. Raises StorageError."""
    return judge("posts", stored_posts(database, site), truth), judge("comments", stored_comments(database, site), truth)


def stored_posts(database: Database, site: str, since: datetime | None = None) -> Iterable[Piece]:
    """Read the posts of a site, or only those fetched or found deleted since then."""
    c = posts.c
    query = select(c.id, c.forum_id, c.title, c.body, c.author, c.created_at, c.content_hash, c.deleted_at).where(c.site == site)
    return _pieces(database.stream(query.where(or_(c.fetched_at >= since, c.deleted_at >= since)) if since else query))


def stored_comments(database: Database, site: str, since: datetime | None = None) -> Iterable[Piece]:
    """Read the comments of a site, or only those fetched or found deleted since then."""
    c = comments.c
    query = select(c.id, c.post_id, c.parent_id, c.author, c.body, c.created_at, c.content_hash, c.deleted_at).where(
        c.site == site
    )
    return _pieces(database.stream(query.where(or_(c.fetched_at >= since, c.deleted_at >= since)) if since else query))


def _pieces(rows: Iterable[Any]) -> Iterable[Piece]:
    for *fields, stored_hash, deleted_at in rows:
        yield Piece(fields[0], content_hash(fields) if stored_hash != "" else "", deleted_at is not None)


def judge(table: str, pieces: Iterable[Piece], truth: Mapping[str, Any]) -> Coverage:
    """Compare the stored pieces of one table (`posts` or `comments`) with the forum's `/truth`."""
    found: dict[str, Piece] = {}
    count = 0
    for count, piece in enumerate(pieces, 1):  # noqa: B007 - the last one is the number of rows
        found[piece.id] = piece
    shown, edited, deleted = truth[table], truth["edited"][table], truth["deleted"][table]
    alive, gone = found.keys() & shown.keys(), found.keys() & deleted.keys()
    return Coverage(
        table=table,
        expected=len(shown),
        stored=count,
        missing=tuple(sorted(shown.keys() - found.keys())),
        duplicates=count - len(found),
        wrong=tuple(sorted(one for one in alive if found[one].hash != shown[one])),
        unknown=tuple(sorted(found.keys() - shown.keys() - deleted.keys())),
        undeleted=tuple(sorted(one for one in gone if not found[one].deleted)),
        buried=tuple(sorted(one for one in alive if found[one].deleted)),
        spoilt=tuple(sorted(one for one in gone if found[one].hash not in _versions(deleted[one], edited.get(one, ())))),
        edited=len(edited.keys() & shown.keys()),
        deleted=len(gone),
    )


def _versions(deleted: tuple[float, str, str], edits: Iterable[tuple[float | None, str]]) -> set[str]:
    """Return the hashes of every version of a deleted piece, and the empty one: it may have been gone before it was read."""
    return {"", deleted[2], *(version for _, version in edits)}


def content_hash(values: Iterable[str | datetime | None]) -> str:
    """Return the SHA-1 in hex as the forum publishes it: the fields joined by U+001F, "" for null, times to the second with a
    Z.
    """
    return sha1("\x1f".join(_text(value) for value in values).encode(), usedforsecurity=False).hexdigest()


def _text(value: str | datetime | None) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return value or ""


def main() -> int:
    """Parse the arguments, compare, print."""
    parser = argparse.ArgumentParser(prog="python -m demo.compare", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    parser.add_argument("--as-stored", action="store_true", help="do not read every thread again")
    options = parser.parse_args()
    found = look(os.environ.get("TRAWL_DEMO_URL", "http://forum:8765"), again=not options.as_stored)
    if options.json:
        sys.stdout.write(f"{json.dumps(found.as_json())}\n")
    else:
        for one in found.tables:
            sys.stdout.write(f"{one.sentence()}\n")
        sys.stdout.write(f"{found.unchecked} threads were not read again within {LIMIT_S:.0f} s\n" if found.unchecked else "")
    return 0 if found.complete else 1


if __name__ == "__main__":
    sys.exit(main())
