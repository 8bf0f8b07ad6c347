"""The two forum services against the demo's forum: everything it knows arrives, in the vertical split."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis

from demo.forum.process import ForumProcess
from forums.records.stored import INDEX, ForumTask, Marks, PostTask
from forums.records.tasks_and_items import encode
from forums.scheduling.rechecking import refresh
from forums.scheduling.seeding import seed, sentences
from forums.state.keys import ForumCrawlKeys
from forums.writer.store import store
from redis_components.admin.inspector import snapshot
from redis_components.keys import CrawlKeys
from tests.support import warm_start
from tests.support.processes import wait_until
from tests.support.scrapy_command import crawl_command

ROOT = Path(__file__).parents[2]
LISTS, DETAILS = (CrawlKeys.for_spider(spider) for spider in ("forum_list", "forum_detail"))


def crawl(redis_url: str, forum: ForumProcess, *spiders: str, **more: str) -> None:
    """Run the spiders, one after the other, each until it is idle; `more` environment."""
    environment = {
        **os.environ,
        **more,
        "TRAWL_REDIS_URL": redis_url,
        "TRAWL_DEMO_URL": forum.url,
        "TRAWL_SITES_DIR": str(ROOT / "demo" / "sites"),
    }
    for spider in spiders:  # one after the other: one that starts before there is work for it is idle, and ends
        command = crawl_command(spider, "-s", "MAX_IDLE_TIME_BEFORE_CLOSE=1")
        done = warm_start.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=180, check=False)
        assert done.returncode == 0, done.stderr


def stored(client: redis.Redis, keys: CrawlKeys) -> list[dict[str, Any]]:
    return [json.loads(item) for item in client.lrange(keys.item_stream(), 0, 100_000)]


@pytest.fixture
def _demo_site(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(ROOT / "demo" / "sites"))


@pytest.mark.usefixtures("_demo_site")
def test_every_post_and_comment_arrives_though_the_site_stumbles(redis_url: str, redis_client: redis.Redis) -> None:
    with ForumProcess(seed=3, forums=4, threads=25, comments=5) as forum:
        forum.control(error_rate=0.05, throttle_rate=0.02, reset_rate=0.01)
        assert set(sentences(seed(redis_client, site="demo")).values()) == {"seeded"}
        crawl(redis_url, forum, "forum_list", "forum_detail")
        truth = forum.truth()
    items = stored(redis_client, DETAILS)
    for kind in ("post", "comment"):
        assert {item["id"] for item in items if item["kind"] == kind} == set(truth[f"{kind}s"])
    scans = stored(redis_client, LISTS)
    assert [(scan["outcome"], scan["threads"]) for scan in scans] == [("complete", 25)] * 4
    figures = {name.decode() for name in redis_client.hkeys(LISTS.stats_hash()) if name.startswith(b"sites/demo/list/")}
    assert "sites/demo/list/read" in figures
    assert figures.isdisjoint({"sites/demo/list/pages", "sites/demo/list/rows"}), "a node of 49295b45 divides one by the other"


def lived(forum: ForumProcess, events: int, **behaviour: float) -> int:
    """Let at least so many things happen in the forum, then let it stand still. Returns the number that happened."""
    before = forum.stats()["revision"]
    forum.control(rate=100, **behaviour)
    wait_until(lambda: forum.stats()["revision"] >= before + events, "the forum lives")
    forum.control(rate=0)
    return int(forum.stats()["revision"] - before)


def rows(database: Path, table: str) -> set[str]:
    """Ids of what is stored and not removed."""
    with closing(sqlite3.connect(database)) as connection:
        return {row[0] for row in connection.execute(f"SELECT id FROM {table} WHERE deleted_at IS NULL")}


@pytest.mark.usefixtures("_demo_site")
def test_only_what_changed_is_read_again_and_a_check_finds_what_was_removed(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "trawl.sqlite"
    monkeypatch.setenv("TRAWL_DATABASE_URL", f"sqlite:///{database}")
    tasks = [encode(ForumTask(site="demo", forum=f"f{n}")) for n in range(1, 5)]

    def scan_and_store() -> int:
        """Requests that a scan of all forums takes."""
        before = forum.stats()["total"]
        redis_client.rpush(LISTS.start_tasks(), *tasks)
        crawl(redis_url, forum, "forum_list", "forum_detail")
        requests = forum.stats()["total"] - before
        store(redis_client, ["forum_list", "forum_detail"])
        return int(requests)

    with ForumProcess(seed=3, forums=4, threads=15, comments=12, rate=0) as forum:
        all_of_it = scan_and_store()
        assert redis_client.hlen(DETAILS.threads()) == 60
        assert redis_client.hlen(DETAILS.start_tokens()) == 0  # the records do their work from now on
        happened = lived(forum, 15, delete_rate=0.2, edit_rate=0.2)
        assert scan_and_store() < 8 + 2.5 * happened, f"a third of {all_of_it} where 15 things happened"
        truth = forum.truth()
        assert set(truth["posts"]) <= rows(database, "posts")
        assert set(truth["comments"]) <= rows(database, "comments")
        checks = [encode(PostTask(site="demo", post=post, mode="check")) for post in rows(database, "posts")]
        redis_client.rpush(DETAILS.later_tasks(), *checks)
        assert scan_and_store() >= len(checks)
        post = next(iter(truth["posts"]))
        redis_client.flushdb()  # each thread is stored: none is fetched again
        assert set(sentences(seed(redis_client, site="demo")).values()) == {"seeded"}
        crawl(redis_url, forum, "forum_list", "forum_detail")
        assert [item["threads"] for item in stored(redis_client, LISTS) if item["kind"] == "scan"]
        assert stored(redis_client, DETAILS) == []
        before = forum.stats()["total"]
        assert refresh(redis_client, [post], "demo", "post") == 1
        crawl(redis_url, forum, "forum_detail")
        assert [item["kind"] for item in stored(redis_client, DETAILS)] == ["post"]
        assert forum.stats()["total"] - before == 1
        assert [refresh(redis_client, [post], "demo", part) for part in ("comments", "comments", None)] == [1, 1, 2]
        crawl(redis_url, forum, "forum_detail")
        kinds = [item["kind"] for item in stored(redis_client, DETAILS)[1:]]
        assert (kinds.count("post"), kinds.count("check")) == (1, 2)
    assert rows(database, "posts") == set(truth["posts"])
    assert rows(database, "comments") == set(truth["comments"])
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT DISTINCT outcome FROM scans").fetchall() == [("complete",)]
        (last,) = connection.execute(
            "SELECT max(pages) FROM scans WHERE started_at = (SELECT max(started_at) FROM scans)"
        ).fetchone()
    assert last == 1


@pytest.mark.usefixtures("_demo_site")
@pytest.mark.parametrize("most", [10_000, 15])
def test_without_a_detail_crawler_each_changed_thread_waits_once_and_is_read_once(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    database = tmp_path / "trawl.sqlite"
    monkeypatch.setenv("TRAWL_DATABASE_URL", f"sqlite:///{database}")
    tasks = [encode(ForumTask(site="demo", forum=f"f{n}", mode="deep")) for n in range(1, 5)]
    with ForumProcess(seed=3, forums=4, threads=20, comments=3, rate=0) as forum:
        for _ in range(3):
            redis_client.rpush(LISTS.start_tasks(), *tasks)
            crawl(redis_url, forum, "forum_list", TRAWL_MAX_QUEUED_THREADS=str(most))
            store(redis_client, ["forum_list"])
            threads = len(forum.truth()["posts"])
            shot = snapshot(redis_client, "forum_detail")
            waiting = [json.loads(task)["post"] for task in redis_client.lrange(DETAILS.start_tasks(), 0, 999)]
            assert len(waiting) == len(set(waiting)) == shot.start_tasks == min(most, threads), "each thread once"
            assert shot.overflow == threads - shot.start_tasks
            lived(forum, 60)
        truth = forum.truth()
        crawl(redis_url, forum, "forum_detail", TRAWL_MAX_QUEUED_THREADS=str(most))
        assert forum.stats()["served"]["post"] == {"200": threads}
        store(redis_client, ["forum_detail"])
        assert len(rows(database, "posts")) == threads
        redis_client.rpush(LISTS.start_tasks(), *tasks)
        crawl(redis_url, forum, "forum_list", "forum_detail", TRAWL_MAX_QUEUED_THREADS=str(most))
        store(redis_client, ["forum_list", "forum_detail"])
    assert rows(database, "posts") == set(truth["posts"])
    assert rows(database, "comments") == set(truth["comments"])


@pytest.mark.usefixtures("_demo_site")
def test_bad_start_tasks_are_set_aside_while_others_scan_fill_in_and_list_the_forums(
    redis_url: str, redis_client: redis.Redis
) -> None:
    bad = {
        b"not json": "malformed",
        b'{"site": "demo"}': "missing required field `forum`",
        b'{"site": "demo", "forum": 7}': "Expected `str`, got `int`",
        b'{"site": "demo", "forum": "f1", "mode": "quick"}': "Invalid enum value 'quick'",
        b'{"site": "demo", "forum": "f1", "mode": "backfill", "since": "lately"}': "Invalid isoformat string: 'lately'",
        b'{"site": "no/pe", "forum": "f1"}': "unknown site 'no/pe'",
        b'{"site": "demo", "forum": "f99"}': "unknown forum 'f99'",
    }
    tasks = [
        ForumTask(site="demo", forum="f1", pages=1),
        ForumTask(site="demo", forum="f2", mode="backfill", since="2020-01-01"),
        ForumTask(site="demo", forum=INDEX, mode="index"),
    ]
    old = Marks(scanned_at=datetime(2020, 1, 1, tzinfo=UTC), newest=datetime(2020, 1, 1, tzinfo=UTC))
    redis_client.hset(ForumCrawlKeys(LISTS).marks(), "demo/f1", msgspec.json.encode(old))
    redis_client.rpush(LISTS.start_tasks(), *bad, *map(encode, tasks))
    with ForumProcess(seed=3, forums=4, threads=25, comments=1, rate=0) as forum:
        crawl(redis_url, forum, "forum_list")
    entries = [entry.split(b"\n", 1) for entry in redis_client.lrange(LISTS.dead(), 0, 9)]
    reasons = {task: json.loads(head)["reason"] for head, task in entries}
    assert reasons.keys() == bad.keys()
    for task, said in bad.items():
        assert said in reasons[task]
    items = stored(redis_client, LISTS)
    assert {item["id"] for item in items if item["kind"] == "forum"} == {"f1", "f2", "f3", "f4"}
    scans = {item["forum_id"]: item for item in items if item["kind"] == "scan"}
    assert {forum: (scan["mode"], scan["outcome"], scan["stopped"], scan["pages"]) for forum, scan in scans.items()} == {
        "f1": ("scan", "gap", "limit", 1),
        "f2": ("backfill", "complete", "end", 2),
        INDEX: ("index", "complete", "end", 1),
    }
    assert scans["f1"]["oldest_at"] < scans["f1"]["newest_at"]
    assert (redis_client.llen(DETAILS.start_tasks()), redis_client.llen(DETAILS.backlog())) == (20, 25)
    assert snapshot(redis_client, "forum_detail").backlog == 25


@pytest.mark.usefixtures("_demo_site")
def test_a_thread_that_is_gone_is_reported_so_and_what_fails_is_kept_with_the_reason(
    redis_url: str, redis_client: redis.Redis
) -> None:
    with ForumProcess(seed=3, forums=4, threads=5, comments=1) as forum:
        redis_client.rpush(DETAILS.start_tasks(), encode(PostTask(site="demo", post="p99999")))
        crawl(redis_url, forum, "forum_detail")
        forum.control(error_rate=1.0)
        redis_client.rpush(DETAILS.start_tasks(), encode(PostTask(site="demo", post="p1")))
        crawl(redis_url, forum, "forum_detail")
    checks = [(check["id"], check["gone"], check["whole"], check["reason"]) for check in stored(redis_client, DETAILS)]
    assert checks == [("p99999", True, False, "HTTP 404"), ("p1", False, False, "HTTP 500")]
    assert snapshot(redis_client, "forum_detail").dead == 1
    assert b"HTTP 500" in redis_client.lrange(DETAILS.dead(), 0, 0)[0]
