"""Compares the database of a fleet in containers with the demo's forum:

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
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from demo.truth import Coverage, compare
from forums.scheduling.rechecking import recheck
from forums.state.forum_states import FORUM_DETAIL
from forums.storage import Database
from redis_components.admin.inspector import snapshot
from redis_components.connection import connect

from .truth import scanned, unchecked

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


def ask(forum: str, path: str, body: object = None) -> Any:
    """Return the forum's JSON answer; with `body` from a POST request."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(forum + path, data=data)  # noqa: S310 - the operator's own variable
    with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
        return json.load(answer)


def followed_up(client: Any) -> bool:
    """Return True if every thread found by a scan was read and stored: nothing waits in the service that reads them."""
    crawl = snapshot(client, FORUM_DETAIL)
    return not (crawl.start_tasks or crawl.overflow or crawl.leased_tasks or crawl.ready or crawl.leased or crawl.items)


def settle(database: Database, client: Any, frozen: datetime, *, again: bool) -> int:
    """Wait until every thread has been read since then, or, not `again`, until what scans since then found is stored; return how
    many threads were not read, within the limit.
    """
    begun, asked, left = time.monotonic(), 0.0, -1
    while time.monotonic() - begun < LIMIT_S:
        # In this order: a thread found by a scan is a start task before the scan is stored, and a row only once it was read.
        followed = scanned(database, SITE, frozen) >= BOARDS and followed_up(client)
        left = unchecked(database, SITE, frozen) if again else int(not followed)
        if followed and not left:
            break
        if again and time.monotonic() - asked > ASK_AGAIN_S:
            recheck(client, database, SITE, force=True)
            asked = time.monotonic()
        time.sleep(1)
    return left


def look(forum: str, *, again: bool = True) -> Found:
    """Freeze the forum, wait, compare; let the forum go on as before."""
    rate = ask(forum, "/control")["rate"]
    ask(forum, "/control", {"rate": 0})
    try:
        begun, frozen = time.monotonic(), datetime.now(UTC)
        database = Database.from_url().open(upgrade=False)
        left = settle(database, connect(), frozen, again=again)
        tables = compare(database, ask(forum, "/truth"), SITE)
        return Found(unchecked=left, pages=ask(forum, "/stats")["total"], seconds=time.monotonic() - begun, tables=tables)
    finally:
        ask(forum, "/control", {"rate": rate})


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
            sys.stdout.write(
                f"{one.table}: {one.expected} shown, {100 * one.share:.1f} % stored as they are shown, {one.duplicates} twice\n"
            )
        sys.stdout.write(f"{found.unchecked} threads were not read again within {LIMIT_S:.0f} s\n" if found.unchecked else "")
    return 0 if found.complete else 1


if __name__ == "__main__":
    sys.exit(main())
