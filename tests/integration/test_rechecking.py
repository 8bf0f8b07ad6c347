"""What may wait: checks of threads from the database, and history, within the share of the site's budget."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import redis
from sqlalchemy import update

from forums.scheduling.rechecking import WAITING_MOST, backfill, recheck
from forums.scheduling.seeding import seed, sentences
from forums.state.keys import Ledger, Purpose, Spending
from forums.storage import Database, parse
from forums.storage.schema.tables import posts
from redis_components.frontier.holds import HoldKind
from redis_components.keys import CrawlKeys
from tests.support.items import post
from workers.fleet.holds import HoldTarget, hold

DETAIL, LIST = CrawlKeys.for_spider("forum_detail"), CrawlKeys.for_spider("forum_list")
NOW = datetime.now(UTC)

SITE = 'profile = "generic"\nbase_url = "http://127.0.0.1:1"\nforums = ["a", "b"]\n[schedule]\nchecks_per_request = 1000\n'


@pytest.fixture(autouse=True)
def _sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, redis_client: redis.Redis) -> None:
    """Two sites, on each of which two list pages were read."""
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    for site in ("one", "two"):
        (tmp_path / f"{site}.toml").write_text(SITE)
        spend(redis_client, site, Purpose.SCAN, 2)


def spend(client: redis.Redis, site: str, purpose: Purpose, requests: int) -> None:
    Ledger(client).add(
        [Spending(site=site, name=f"{purpose} {requests}", purpose=purpose, ended_at=time.time(), requests=requests)]
    )


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """With three threads of site one: two are due, the second one longer, and one is not."""
    with Database.from_url(f"sqlite:///{tmp_path}/trawl.sqlite") as opened:
        opened.write(
            [parse(json.dumps(post(f"p{n}", site="one", forum_id="a", url=f"http://x/{n}")).encode()) for n in (1, 2, 3)]
        )
        with opened.engine.begin() as connection:
            for number, due_in_h in ((1, -1), (2, -5), (3, 5)):
                due = NOW + timedelta(hours=due_in_h)
                connection.execute(update(posts).where(posts.c.id == f"p{number}").values(next_check_at=due, checked_at=due))
        yield opened


def waiting(client: redis.Redis) -> list[dict[str, str]]:
    return [json.loads(task) for task in client.lrange(DETAIL.later_tasks(), 0, -1)]


def test_threads_that_are_due_are_checked_once_the_most_overdue_first(redis_client: redis.Redis, database: Database) -> None:
    assert recheck(redis_client, database) == {"one": "2 checks", "two": "0 checks"}
    assert waiting(redis_client) == [
        {"site": "one", "post": post, "forum": "a", "mode": "check", "url": f"http://x/{post[1]}"} for post in ("p2", "p1")
    ]
    assert recheck(redis_client, database) == {"one": "0 checks", "two": "0 checks"}


def test_by_force_every_thread_is_checked(redis_client: redis.Redis, database: Database) -> None:
    assert recheck(redis_client, database, "one", force=True) == {"one": "3 checks"}


def test_a_round_takes_no_more_than_the_share_grants(redis_client: redis.Redis, database: Database, tmp_path: Path) -> None:
    with (tmp_path / "one.toml").open("a") as file:
        file.write("scan_budget_per_hour = 60\n")
    assert recheck(redis_client, database, "one") == {"one": "1 checks"}
    spend(redis_client, "one", Purpose.CHECK, 36)
    said = "over budget: 38 of 60 requests in the last hour, 36 of at most 35 for what may wait"
    assert recheck(redis_client, database, "one") == {"one": said}


def test_checks_get_a_part_of_what_finds_new_posts_and_at_least_a_five_hundredth_of_the_budget(
    redis_client: redis.Redis, database: Database, tmp_path: Path
) -> None:
    (tmp_path / "one.toml").write_text(SITE.replace("1000", "0.5"))
    spend(redis_client, "one", Purpose.CHECK, 12)
    said = "of at most {} requests for checks in the last hour (schedule.checks_per_request)"
    assert recheck(redis_client, database, "one") == {"one": f"12 {said.format(2)}"}
    spend(redis_client, "one", Purpose.DETAIL, 38)
    assert recheck(redis_client, database, "one") == {"one": "1 checks"}, "20 of them"
    spend(redis_client, "one", Purpose.CHECK, 28)
    assert recheck(redis_client, database, "one") == {"one": f"40 {said.format(20)}"}


def test_nothing_is_added_to_a_lane_that_nobody_works_off_or_for_a_site_that_is_held(
    redis_client: redis.Redis, database: Database
) -> None:
    hold(redis_client, HoldTarget(site="two", whole=True), HoldKind.PAUSE, by="ops@host", reason="a quarrel")
    redis_client.rpush(DETAIL.later_tasks(), *["{}"] * WAITING_MOST)
    assert recheck(redis_client, database) == {
        "one": f"{WAITING_MOST} tasks wait in the lane already",
        "two": "paused by ops@host: a quarrel",
    }


def test_history_is_let_in_behind_the_checks_each_site_by_its_share(redis_client: redis.Redis, database: Database) -> None:
    tasks = [json.dumps({"site": site, "post": f"h{n}", "mode": "backfill"}) for n in range(5) for site in ("one", "two", "gone")]
    redis_client.rpush(DETAIL.backlog(), *tasks)
    report = recheck(redis_client, database)
    assert report == {"one": "2 checks, 4 threads of history", "two": "0 checks, 5 threads of history"}
    assert [task["post"] for task in waiting(redis_client)] == ["p2", "p1", "h0", "h0", "h1", "h1", "h2", "h2", "h3", "h3", "h4"]
    assert redis_client.llen(DETAIL.backlog()) == 6
    assert "history" in recheck(redis_client, database)["one"]


def test_a_backfill_runs_beside_the_scans_of_its_forums(redis_client: redis.Redis) -> None:
    report = sentences(backfill(redis_client, "one", datetime(2026, 1, 31, tzinfo=UTC), ["a", "nope"]))
    assert report == {"one/nope": "unknown forum: one has a, b", "one/a": "seeded"}
    task = {"site": "one", "forum": "a", "mode": "backfill", "since": "2026-01-31T00:00:00+00:00"}
    assert [json.loads(one) for one in redis_client.lrange(LIST.start_tasks(), 0, -1)] == [task]
    assert sentences(backfill(redis_client, "one", forums=["a"]))["one/a"].startswith("pending since")
    assert sentences(seed(redis_client, ["a"], "one")) == {"one/a": "seeded"}
