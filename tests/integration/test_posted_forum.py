"""A forum that is asked with POST and leaves comments out of its pages: all of it is read, each page once."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
import redis
from sqlalchemy import select

from forums.records.stored import ForumTask
from forums.records.tasks_and_items import encode
from forums.scheduling.rechecking import recheck
from forums.storage import Database, comments, posts
from forums.writer.store import store
from redis_components.keys import CrawlKeys
from tests.support import warm_start
from tests.support.fleet import ROOT
from tests.support.posted_forum import SITE, PostedForum, posted_forum
from tests.support.scrapy_command import crawl_command

LISTS = CrawlKeys.for_spider("forum_list")


class Crawl:
    """What was stored, after one thing was done."""

    def __init__(self, url: str, client: redis.Redis, forum: PostedForum) -> None:
        self._url, self._client, self._forum = url, client, forum

    def run(self, *spiders: str) -> Counter[str]:
        """The requests that the site saw meanwhile."""
        self._forum.asked.clear()
        for spider in spiders:
            command = crawl_command(spider, "-s", "MAX_IDLE_TIME_BEFORE_CLOSE=1")
            environment = {**os.environ, "TRAWL_REDIS_URL": self._url}
            done = warm_start.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=90, check=False)
            assert done.returncode == 0, done.stderr
            store(self._client, ["forum_list", "forum_detail"])
        return Counter(self._forum.asked)

    def scan(self) -> Counter[str]:
        self._client.rpush(LISTS.start_tasks(), encode(ForumTask(site="site", forum="7")))
        return self.run("forum_list", "forum_detail")

    def stored(self) -> dict[str, str]:
        with Database.from_url() as database:
            alive = select(comments.c.id, comments.c.body).where(comments.c.deleted_at.is_(None))
            return {row.id: row.body for row in database.stream(alive)}


def test_all_that_a_thread_leaves_out_is_read_and_each_page_asked_for_once(
    tmp_path: Path, redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    monkeypatch.setenv("TRAWL_DATABASE_URL", f"sqlite:///{tmp_path / 'trawl.sqlite'}")
    with posted_forum() as forum:
        (tmp_path / "site.toml").write_text(SITE.format(url=forum.url))
        crawl = Crawl(redis_url, redis_client, forum)
        asked = crawl.scan()
        assert set(asked.values()) == {1}
        assert sum("POST /graphql" in line for line in asked) == 2, "the list has two pages"
        assert sum("/more?" in line for line in asked) == 2 + 3, "four replies and five answers, two on each page"
        assert crawl.stored() == forum.texts()
        with Database.from_url() as database:
            rows = {row.id: row for row in database.stream(select(comments.c.id, comments.c.parent_id, comments.c.position))}
            opened = {row.id: row.title for row in database.stream(select(posts.c.id, posts.c.title))}
        assert opened == {"b7.12": "Topic 12", "b7.13": "Topic 13"}
        assert rows["b7.12/20"].parent_id == "b7.12/2", "what is behind a comment answers it"
        assert [rows[f"b7.12/{number}"].position for number in (2, 4, 5, 8)] == [1, 3, 4, 7]

        thread = forum.threads["12"]
        thread.answers[25], thread.stamp = "an answer that the page does not show", 1
        del thread.replies[7]
        crawl.scan()
        assert forum.texts().items() <= crawl.stored().items(), "what is new among what is left out is found"
        del thread.answers[21]
        with Database.from_url() as database:
            recheck(redis_client, database, "site", force=True)
        crawl.run("forum_detail")
        assert crawl.stored() == forum.texts(), "and what is gone there"
