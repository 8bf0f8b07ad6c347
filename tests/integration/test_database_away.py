"""A TRAWL_DATABASE_URL that cannot become right starts nothing; a database that is away is one line in the log."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest
import redis

from tasks.base import is_worth_a_line
from tests.integration.test_cli_up import TRAWL, Up, environment
from tests.support import warm_start
from tests.support.contents import contents
from tests.support.fleet import ROOT
from tests.support.processes import wait_until
from workers.state.beats import Schedules, StoredEntry
from workers.state.registry import Registry

__all__ = ["environment"]
NONSENSE = [
    "blah",
    "oracle://x/y",
    "mysql+mysqldb://x/y",
    "postgresql+asyncpg://h/d",
    "postgresql+nope://h/d",
    "sqlite:/data.sqlite",
    "http://x",
]


@pytest.mark.parametrize("url", NONSENSE)
def test_nonsense_is_refused_before_anything_starts(url: str, environment: dict[str, str], redis_client: redis.Redis) -> None:
    environment["TRAWL_DATABASE_URL"] = url
    for command, code in (
        ([*TRAWL, "up", "--port-flower=0", "--port-exporter=0"], 2),
        ([sys.executable, "-m", "celery", "-A", "tasks", "beat"], 1),
    ):
        done = warm_start.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        assert "TRAWL_DATABASE_URL: database" in done.stderr
        assert "use sqlite:///data/trawl.sqlite, postgresql+psycopg://" in done.stderr or "write mysql+pymysql" in done.stderr
        assert "Traceback" not in done.stderr
    assert contents(redis_client) == {}, "nothing has run"


@pytest.mark.usefixtures("no_process_left")
def test_a_database_that_is_away_is_one_warning_and_the_fleet_goes_on(
    environment: dict[str, str], tmp_path: Path, redis_client: redis.Redis
) -> None:
    environment["TRAWL_DATABASE_URL"] = "postgresql+psycopg://nobody@127.0.0.1:1/trawl?connect_timeout=2"
    Schedules(redis_client).set("store_items", StoredEntry(every_s=1.0))
    Schedules(redis_client).set("recheck_threads", StoredEntry(enabled=False))  # it would say the same in the same instant
    up = Up(environment, tmp_path / "up.log", "--fleet", "forum_list=0,forum_detail=0")
    try:

        def failures() -> int:
            return max((one.times for one in Registry(redis_client).errors() if one.where == "trawl.store_items"), default=0)

        wait_until(lambda: failures() >= 4, lambda: f"the database was tried four times:\n{up.said()}", 60)

        def lines() -> list[str]:
            return [line for line in up.said().splitlines() if "trawl.store_items: " in line]

        (line, *more) = wait_until(lines, lambda: f"it is logged, after it is told:\n{up.said()}")
        assert not more, "\n".join(more)
        assert "WARNING" in line
        assert "check that the server runs" in line
    finally:
        assert up.end() == 0


def test_an_error_is_news_once_a_minute(redis_client: redis.Redis) -> None:
    registry = Registry(redis_client)
    assert registry.report_error("a", "away \ud800")
    [news] = redis_client.scan_iter("*:errors:news:*")
    redis_client.pexpire(news, 10_000)  # 50 s later
    assert not registry.report_error("a", "away \ud800")
    assert redis_client.pttl(news) > 50_000, "it goes on"
    assert not registry.report_error("b", "away \ud800"), "one database is away, two tasks need it"
    assert registry.report_error("b", "full")
    redis_client.delete(news)  # a minute later
    assert registry.report_error("a", "away \ud800")
    assert [(one.where, one.times) for one in registry.errors()] == [("a", 3), ("b", 1), ("b", 1)]


@pytest.mark.parametrize(
    ("data", "dropped"),
    [
        ({"description": "raised expected", "name": "trawl.store_items"}, True),
        ({"description": "raised unexpected", "name": "trawl.store_items"}, False),
        ({"description": "raised expected", "name": "shop.count"}, False),
        ("text", False),
    ],
)
def test_only_celerys_line_about_our_own_expected_failures_is_dropped(data: object, dropped: bool) -> None:
    record = logging.LogRecord("celery.app.trace", logging.INFO, __file__, 1, "said", None, None)
    assert is_worth_a_line(record)
    record.data = data
    assert is_worth_a_line(record) is not dropped
