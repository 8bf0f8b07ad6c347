"""The primary of PostgreSQL is lost while a fleet crawls a living forum, and its standby is promoted: all is stored, once."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from demo.forum.process import ForumProcess
from forums.storage import Database, comments
from tests.faults.test_chaos import say
from tests.support.forum_fleet import BOARDS, ForumFleet
from tests.support.postgres_server import PostgresServer, StandbyServer, binaries
from tests.support.processes import none_left, wait_until
from tests.support.watched_fleet import MARK

PILE = 40  # items that wait before somebody promotes the standby


@pytest.mark.timeout(400)
def test_a_standby_is_promoted_under_load_and_nothing_is_lost(tmp_path: Path) -> None:
    found = binaries()
    if found is None:
        pytest.skip("PostgreSQL is not installed")
    with none_left((MARK, str(tmp_path))), PostgresServer(found) as primary, StandbyServer(primary) as standby:
        standby.is_waited_for()
        url = standby.url_of_both("postgres")
        with (
            ForumProcess(seed=7, forums=BOARDS, threads=60, comments=5) as forum,
            ForumFleet(tmp_path, forum, sizes="forum_list=1,forum_detail=2", nodes="ab", beats=1, database_url=url) as fleet,
        ):
            forum.control(rate=5, edit_rate=0.1, delete_rate=0.1, move_rate=0.02)
            fleet.wait_whole_again()
            wait_until(lambda: rows(url) > 200, lambda: f"the fleet stores what it reads\n{fleet.said()}", 120, every_s=0.5)
            waits = fleet.frontier("forum_detail").items + PILE
            primary.crash()
            wait_until(lambda: fleet.frontier("forum_detail").items >= waits, lambda: f"items wait\n{fleet.said()}", 120)
            promoted = time.monotonic()
            standby.promote()
            before = rows(url)
            wait_until(lambda: rows(url) > before, lambda: f"rows come to the new primary\n{fleet.said()}", 120, every_s=0.1)
            say(f"\n{before} comments on the standby when it was promoted, {waits} items waited;")
            say(f"the next rows {time.monotonic() - promoted:.1f} s later")
            coverage = fleet.settle(120)
            say(f"{[(one.table, one.stored, one.expected, one.edited, one.deleted) for one in coverage]}")
            assert all(one.complete for one in coverage), (coverage, f"{fleet.given_up()} given up")
            assert fleet.given_up() == 0
            assert max(fleet.watch.most.values()) == 1, fleet.watch.crowds


def rows(url: str) -> int:
    """Comments that are stored."""
    with Database.from_url(url) as database:
        return sum(1 for _ in database.stream(comments.select()))
