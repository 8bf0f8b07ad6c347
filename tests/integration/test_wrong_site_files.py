"""A site file that reads pages wrongly, mounted into a running fleet: reported, corrected, and what it stored taken out."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from sqlalchemy import select

from forums.records.stored import ForumTask
from forums.records.tasks_and_items import encode
from forums.sites.http.fetch import FetchFailed, Visitor
from forums.storage import Database, comments, posts
from redis_components.keys import CrawlKeys
from tests.support.odd_forum import SITE, OddForum, odd_forum
from tests.support.processes import none_left, wait_until
from tests.support.trawl_command import Trawl, commands
from workers.state.holds import FleetHolds
from workers.state.registry import Registry

from .test_cli_up import Up

LISTS = CrawlKeys.for_spider("forum_list")


def stored() -> dict[str, str | None]:
    """The texts of all threads and comments that are not gone, by id."""
    with Database.from_url() as database:
        tables = ((one.c.id, one.c.body, one.c.deleted_at) for one in (posts, comments))
        rows = [row for columns in tables for row in database.stream(select(*columns))]
    return {row.id: row.body for row in rows if row.deleted_at is None}


def expected(forum: OddForum) -> dict[str, str]:
    opening = {thread: rows[0][2] for thread, rows in forum.threads.items()}
    return opening | {one: text for rows in forum.threads.values() for one, _, text in rows[1:]}


@pytest.fixture
def trawl(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Trawl:
    run = commands(redis_url, tmp_path, monkeypatch, capfd)
    (tmp_path / "sites/example.toml").unlink()
    monkeypatch.setenv("TRAWL_DATABASE_URL", f"sqlite:///{tmp_path / 'trawl.sqlite'}")
    return run


def test_a_mounted_file_is_reported_forgotten_and_goes_on_while_a_check_cannot_reach_the_site(
    trawl: Trawl, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, file = Registry(redis_client), tmp_path / "sites/site.toml"
    with odd_forum() as forum, none_left(("TRAWL_DATA_DIR", os.environ["TRAWL_DATA_DIR"]), timeout_s=60):
        for number in range(1, 9):
            forum.thread(str(number), 4)
        right = SITE.format(url=forum.url)
        file.write_text(right.replace('body = "p"', 'body = "b"'))
        up = Up(dict(os.environ), tmp_path / "up.log", "--fleet", "forum_list=1,forum_detail=1")
        try:
            scan_until(lambda: len(stored()) == len(expected(forum)), up, redis_client)
            (error,) = wait_until(registry.errors, up.said, 30)
            assert (error.where, error.times) == ("site site", 1)
            assert "wrongly: 4 of 4 texts are the names of their authors" in error.what
            assert "site site" in trawl("status").out
            assert not stored().items() & expected(forum).items()

            file.write_text(right)
            assert trawl("sites", "forget-rows", "site", "--yes").code == 0
            scan_until(lambda: stored() == expected(forum), up, redis_client)

            with monkeypatch.context() as away:  # from here, not from the fleet
                away.setattr(Visitor, "get", refused)
                said = trawl("sites", "check", "site", "--live")
                assert (said.code, "connection refused" in said.out) == (1, True)
                assert trawl("sites", "new", f"{forum.url}/f/7", "--name", "site", "--force").code == 1
            assert (file.read_text(), FleetHolds(redis_client).fields()) == (right, {}), "a site that is crawled is left alone"
            forum.threads["5"].append(("p5new", "user", "written after the check"))
            scan_until(lambda: stored() == expected(forum), up, redis_client)
            assert len(registry.errors()) == 1, "the right file"
        finally:
            up.end()


async def refused(_: Visitor, asked: Any) -> Any:
    raise FetchFailed(f"{asked}: connection refused")


def scan_until(is_so: Callable[[], bool], up: Up, client: redis.Redis) -> None:
    client.rpush(LISTS.start_tasks(), encode(ForumTask(site="site", forum="7")))
    wait_until(lambda: (up.process.poll() is None or pytest.fail(up.said())) and is_so(), lambda: f"{stored()}\n{up.said()}", 60)
