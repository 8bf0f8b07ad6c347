"""Threads whose pages are not always those that were requested, crawled by real processes."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
import redis
from sqlalchemy import select

from forum_reader.reading.page_records import ReadComment
from forums.overview.boards import Boards, WatchedForum
from forums.records.stored import ForumTask, PostTask
from forums.records.tasks_and_items import comment_item, encode, utc_now
from forums.state.keys import ForumStates
from forums.storage import Database, comments, posts
from forums.writer.store import store
from redis_components.keys import CrawlKeys
from tests.support import warm_start
from tests.support.fleet import ROOT
from tests.support.odd_forum import SITE, OddForum, odd_forum
from tests.support.scrapy_command import crawl_command
from workers.state.registry import Registry

LISTS, DETAILS = (CrawlKeys.for_spider(spider) for spider in ("forum_list", "forum_detail"))


class Crawl:
    """Crawls until nothing is left to do, and stores what was found."""

    def __init__(self, url: str, client: redis.Redis, forum: OddForum) -> None:
        self._url, self._client, self._forum = url, client, forum
        self.log = ""

    def scan(self, *spiders: str) -> list[str]:
        """The requests that the site saw; `spiders`: of these alone."""
        self._client.rpush(LISTS.start_tasks(), encode(ForumTask(site="site", forum="7")))
        return self._run(*(spiders or ("forum_list", "forum_detail")))

    def check(self, *threads: str) -> list[str]:
        tasks = [PostTask(site="site", post=one, forum="7", mode="check") for one in threads]
        self._client.rpush(DETAILS.start_tasks(), *map(encode, tasks))
        return self._run("forum_detail")

    def _run(self, *spiders: str) -> list[str]:
        self._forum.asked.clear()
        for spider in spiders:
            command = crawl_command(spider, "-s", "MAX_IDLE_TIME_BEFORE_CLOSE=1")
            environment = {**os.environ, "TRAWL_REDIS_URL": self._url}
            done = warm_start.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=90, check=False)
            assert done.returncode == 0, done.stderr
            self.log += done.stderr
            store(self._client, ["forum_list", "forum_detail"])
        return list(self._forum.asked)

    def stored(self) -> tuple[set[str], dict[str, tuple[str, str]], set[str]]:
        """The threads that are there, the comments that are (thread and text), and the ids of what is gone."""
        with Database.from_url() as database:
            opened = list(database.stream(select(posts.c.id, posts.c.deleted_at)))
            columns = (comments.c.id, comments.c.post_id, comments.c.body, comments.c.deleted_at)
            answers = list(database.stream(select(*columns)))
        gone = {row.id for row in (*opened, *answers) if row.deleted_at is not None}
        alive = {row.id: (row.post_id, row.body) for row in answers if row.deleted_at is None}
        return {row.id for row in opened} - gone, alive, gone


def expected(forum: OddForum) -> dict[str, tuple[str, str]]:
    return {one: (thread, text) for thread, rows in forum.threads.items() for one, _, text in rows[1:]}


def test_threads_with_odd_pages_are_stored_as_they_are(
    tmp_path: Path, redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    monkeypatch.setenv("TRAWL_DATABASE_URL", f"sqlite:///{tmp_path / 'trawl.sqlite'}")
    with odd_forum() as forum:
        (tmp_path / "site.toml").write_text(SITE.format(url=forum.url))
        for id_, number in (("1", 12), ("2", 3), ("3", 4), ("4", 2), ("8", 1)):
            forum.thread(id_, number)
        forum.threads["4"].append(("p401", "another", "of another person, under an id that is taken"))
        crawl = Crawl(redis_url, redis_client, forum)
        asked = crawl.scan()
        threads, alive, gone = crawl.stored()
        want = expected(forum) | {"p401": ("4", "text 1 of 4"), "p401~2": ("4", "of another person, under an id that is taken")}
        assert (threads, alive, gone) == ({"1", "2", "3", "4", "8"}, want, set()), "an opening post is no comment"
        assert asked.count("/t/1?page=4") == 1, "the page behind the end ends the reading"
        assert "/t/1?page=5" not in asked
        forum.threads["1"].append(("p112", "user12", "text 12 of 1"))
        forum.threads["3"][1] = ("p301", "", "This post has been deleted by a moderator.")
        forum.threads["3"] += [("p399", "", "[removed]"), *forum.threads.pop("2")]
        forum.merged["2"] = "3"
        crawl.scan()
        crawl.check("2", "3")
        threads, alive, gone = crawl.stored()
        assert alive["p112"] == ("1", "text 12 of 1")
        assert threads == {"1", "3", "4", "8"}
        assert gone == {"2", "p301", "p399"}, "a placeholder is a deletion, also of a post that was not there before"
        assert {one: thread for one, (thread, _) in alive.items() if one.startswith("p2")} == dict.fromkeys(
            ("p200", "p201", "p202"), "3"
        ), "what was merged is in the thread that has it now"
        assert "p100" not in alive


@pytest.mark.parametrize("is_gone", [True, False], ids=["a thread that is gone", "a comment that is gone"])
def test_what_was_read_while_a_check_waited_for_its_turn_is_gone_where_the_check_does_not_find_it(
    tmp_path: Path, redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch, is_gone: bool
) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    monkeypatch.setenv("TRAWL_DATABASE_URL", f"sqlite:///{tmp_path / 'trawl.sqlite'}")
    with odd_forum() as forum:
        (tmp_path / "site.toml").write_text(SITE.format(url=forum.url))
        forum.thread("1", 7)
        forum.thread("2", 3)
        crawl = Crawl(redis_url, redis_client, forum)
        crawl.scan()

        def answered_and_removed() -> None:
            """Another reading of its last page finds an answer, which then is removed."""
            answer = ReadComment(id="p107", author="user", body="soon gone")
            item = comment_item(answer, site="site", thread="1", url=f"{forum.url}/t/1?page=2", fetched_at=utc_now())
            redis_client.rpush(DETAILS.item_stream(), msgspec.json.encode(item))
            if is_gone:
                del forum.threads["1"]

        forum.busy["/t/1?page=1"] = answered_and_removed
        asked = crawl.check("1", "2")
        assert asked.count("/t/1?page=1") >= 2, "the check has waited"
        threads, alive, gone = crawl.stored()
        assert gone == ({"1", *(f"p1{number:02}" for number in range(1, 8))} if is_gone else {"p107"})
        assert (threads, alive) == (set(forum.threads), expected(forum))


def test_later_pages_for_members_are_reported_and_not_asked_for_in_each_scan(
    tmp_path: Path, redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    monkeypatch.setenv("TRAWL_DATABASE_URL", f"sqlite:///{tmp_path / 'trawl.sqlite'}")
    with odd_forum() as forum:
        (tmp_path / "site.toml").write_text(SITE.format(url=forum.url))
        for number in range(1, 11):
            forum.thread(str(number), 8)
            forum.for_members.add(str(number))
        crawl = Crawl(redis_url, redis_client, forum)
        asked = crawl.scan()
        assert len([one for one in asked if "page=" in one]) == 20, "each page once"
        assert len(crawl.stored()[1]) == 40
        assert "the later pages of threads are not for guests" in crawl.log
        assert set(crawl.scan()) == {"/f/7"}, "a thread that has not changed is left alone"
        state = ForumStates(redis_client).read(["site/7"])["site/7"]
        (board,) = Boards([WatchedForum(site="site", forum="7", state=state, due_at=0.0)], 0.0)
        assert "guests see only the first pages of its threads: " in board.why
        forum.threads["5"].append(("p5new", "user", "an answer for members"))
        assert [one for one in crawl.scan() if "page=" in one] == ["/t/5?page=1", "/t/5?page=2"]
        forum.for_members.clear()
        crawl.check("5")
        assert crawl.stored()[1]["p5new"] == ("5", "an answer for members")


@pytest.mark.parametrize(
    ("wrong", "kind", "reason"),
    [('rows = "li"', "/f/7", "threads"), ('author = "b"', "/t/", "have no author")],
    ids=["a third of a list's rows", "few authors"],
)
def test_a_file_that_nobody_has_checked_is_checked_by_the_first_pages_that_are_read_by_it(
    tmp_path: Path, redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch, wrong: str, kind: str, reason: str
) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    monkeypatch.setenv("TRAWL_DATABASE_URL", f"sqlite:///{tmp_path / 'trawl.sqlite'}")
    with odd_forum() as forum:
        right = SITE.format(url=forum.url)
        (tmp_path / "site.toml").write_text(right)
        for number in range(1, 11):
            forum.thread(str(number), 4)
        crawl = Crawl(redis_url, redis_client, forum)
        spiders = ("forum_list",) if kind == "/f/7" else ("forum_list", "forum_detail")
        crawl.scan(*spiders)
        assert Registry(redis_client).errors() == [], "the right file"
        changed = {'rows = "li"': 'rows = "li:nth-child(3n)"', 'author = "b"': 'author = "b:contains(r1)"'}[wrong]
        (tmp_path / "site.toml").write_text(right.replace(wrong, changed))
        for _ in range(2):
            for rows in forum.threads.values():
                rows.append((f"{rows[0][0]}x{len(rows)}", "user", f"one more, the {len(rows)}th"))
            crawl.scan(*spiders)
        (error,) = Registry(redis_client).errors()
        assert (error.where, error.times) == ("site site", 1)
        assert f"its file reads {forum.url}{kind}" in error.what
        assert reason in error.what
        assert "`trawl sites check site --live`" in error.what
