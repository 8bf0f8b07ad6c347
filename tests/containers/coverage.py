"""Run inside worker-control: `docker exec -i CONTAINER python - < coverage.py`. Prints one JSON object.

Freezes the forum, waits until every thread has been read whole since then, and compares the database with the forum.
"""

import json
import os
import sys
import time
import urllib.request
from datetime import UTC, datetime

from demo.settled import scanned, unchecked
from demo.truth import compare
from forums.scheduling.rechecking import recheck
from forums.storage import Database
from redis_components.connection import connect

FORUM = os.environ.get("TRAWL_DEMO_URL", "http://forum:8765")
LIMIT_S = 300.0


def ask(path: str, body: object = None) -> dict:
    """What the forum answers."""
    request = urllib.request.Request(FORUM + path, data=None if body is None else json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def main() -> None:
    """Wait until the crawl has seen everything, and print how the two compare."""
    ask("/control", {"rate": 0})
    begun, frozen = time.monotonic(), datetime.now(UTC)
    database = Database.from_url().open(upgrade=False)
    client = connect(os.environ["TRAWL_REDIS_URL"])
    left, asked = -1, 0.0
    while time.monotonic() - begun < LIMIT_S:
        left = unchecked(database, "demo", frozen)
        if not left and scanned(database, "demo", frozen) >= 4:
            break
        if time.monotonic() - asked > 20:
            recheck(client, database, "demo", force=True)
            asked = time.monotonic()
        time.sleep(1)
    tables = compare(database, ask("/truth"), "demo")
    sys.stdout.write(
        json.dumps(
            {
                "unchecked": left,
                "pages": ask("/stats")["total"],
                "seconds": round(time.monotonic() - begun),
                "tables": {
                    one.table: {
                        "expected": one.expected,
                        "stored": one.stored,
                        "missing": len(one.missing),
                        "duplicates": one.duplicates,
                        "faults": len(one.faults),
                        "complete": one.complete,
                    }
                    for one in tables
                },
            }
        )
    )
    ask("/control", {"rate": 2})


main()
