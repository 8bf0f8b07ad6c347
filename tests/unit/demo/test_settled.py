"""What the demo waits for once the forum stands still."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from demo.compare import unchecked
from forums.storage import Database, parse
from tests.support.items import at, check, post, wire

STILL = datetime.fromisoformat(at(60))


def test_a_thread_is_checked_when_it_was_read_whole_or_found_unchanged_since(tmp_path: Path) -> None:
    after, before = at(61), at(59)
    checks = {
        "never": [],
        "whole": [check("whole", mode="check", started_at=after, finished_at=after)],
        "whole before": [check("whole before", mode="check", started_at=before, finished_at=before)],
        "unchanged": [check("unchanged", mode="check", started_at=after, finished_at=after, whole=False, consistent=False)],
        "unchanged before": [
            check("unchanged before", mode="check", started_at=before, finished_at=before, whole=False, consistent=False)
        ],
        "inconsistent": [check("inconsistent", mode="check", started_at=after, finished_at=after, consistent=False)],
        "failed": [
            check("failed", mode="check", started_at=after, finished_at=after, whole=False, consistent=False, reason="HTTP 500")
        ],
        "changed": [check("changed", mode="changed", started_at=after, finished_at=after, whole=False, consistent=False)],
    }
    with Database.from_url(f"sqlite:///{tmp_path / 'trawl.sqlite'}") as database:
        items = [one for name, told in checks.items() for one in (post(name), *told)]
        assert database.write([parse(wire(one)) for one in items]) == []
        assert unchecked(database, "demo", STILL) == len(checks) - len(("whole", "unchanged"))
