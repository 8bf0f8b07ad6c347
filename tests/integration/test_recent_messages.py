"""The page of the newest messages against the demo's forum: one request tells what all boards have, and the lists prove it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import redis

from demo.compare import compare
from demo.forum.process import ForumProcess
from forums.records.stored import RECENT, ForumTask
from forums.records.tasks_and_items import encode
from forums.scheduling.rechecking import recheck
from forums.state import database_state
from forums.state.keys import ForumStates
from forums.storage import Database
from forums.writer.store import store
from redis_components.keys import CrawlKeys
from tests.support import warm_start
from tests.support.demo_sites import RECENT_PAGE, declare
from tests.support.fleet import ROOT
from tests.support.processes import wait_until
from tests.support.scrapy_command import crawl_command
from workers.state.holds import Breakers

LISTS, DETAILS = (CrawlKeys.for_spider(spider) for spider in ("forum_list", "forum_detail"))
LOOK = ForumTask(site="site", forum=RECENT, mode="recent")
SCANS = [ForumTask(site="site", forum=f"f{number}") for number in range(1, 5)]


class Crawl:
    """A forum, and a fleet that does one thing after the other."""

    def __init__(self, url: str, client: redis.Redis, forum: ForumProcess) -> None:
        self.url, self.client, self.forum = url, client, forum

    def run(self, *tasks: ForumTask, spiders: tuple[str, ...] = ("forum_list", "forum_detail")) -> dict[str, int]:
        """The pages that the forum served meanwhile, by kind."""
        before = self.served()
        if tasks:
            self.client.rpush(LISTS.start_tasks(), *map(encode, tasks))
        environment = {**os.environ, "TRAWL_REDIS_URL": self.url}
        for spider in spiders:  # one after the other: nothing that a list sees is being read meanwhile
            command = crawl_command(spider, "-s", "MAX_IDLE_TIME_BEFORE_CLOSE=1")
            done = warm_start.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=90, check=False)
            assert done.returncode == 0, done.stderr
            store(self.client, ["forum_list", "forum_detail"])
        return {kind: number for kind, all_of_it in self.served().items() if (number := all_of_it - before.get(kind, 0))}

    def check(self, database: Database) -> None:
        """Check every thread."""
        recheck(self.client, database, "site", force=True)
        self.run(spiders=("forum_detail",))

    def served(self) -> dict[str, int]:
        return {kind: sum(statuses.values()) for kind, statuses in self.forum.stats()["served"].items()}

    def live(self, events: int, **behaviour: float) -> None:
        until = self.forum.stats()["revision"] + events
        self.forum.control(rate=10, **behaviour)  # a look that is late by a second finds ten more, which the page still shows
        wait_until(lambda: self.forum.stats()["revision"] >= until, "the forum lives")
        self.forum.control(rate=0, **dict.fromkeys(behaviour, 0.0))


def test_one_request_tells_what_all_boards_have_and_the_lists_find_nothing_more(
    tmp_path: Path, redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    monkeypatch.setenv("TRAWL_DATABASE_URL", f"sqlite:///{tmp_path / 'trawl.sqlite'}")
    with ForumProcess(seed=4, forums=4, threads=8, comments=4, rate=0) as forum:
        path = declare(tmp_path, "site", forum.url, RECENT_PAGE)
        fleet = Crawl(redis_url, redis_client, forum)
        fleet.run(*SCANS)
        assert fleet.run(LOOK, spiders=("forum_list",)) == {"recent": 1}, "all of it is stored already"

        fleet.live(25)
        new_threads = len(forum.truth()["posts"]) - 32
        assert fleet.run(LOOK, spiders=("forum_list",)) == {"recent": 1}
        assert redis_client.llen(DETAILS.start_tasks()) == new_threads, "replies are stored from the page"
        fleet.run(spiders=("forum_detail",))
        truth = forum.truth()
        assert new_threads > 0
        read = fleet.run(*SCANS)
        assert read == {"list": 4}, "the lists say what is stored"
        with Database.from_url() as database:
            assert [one.faults for one in compare(database, forum.truth(), "site")] == [frozenset(), frozenset()]
        records = database_state.look_up(redis_client, DETAILS, [f"site/{post}" for post in truth["posts"]])
        assert [one for one in records.values() if one is None or one.told_at is not None] == [], (
            "their tokens are the lists' now"
        )

        fleet.live(12, edit_rate=0.5, delete_rate=0.4)
        fleet.run(LOOK, *SCANS)
        fleet.run(LOOK)
        with Database.from_url() as database:
            posts, comments = compare(database, forum.truth(), "site")
        assert (posts.missing, comments.missing) == ((), ())
        assert comments.edited + comments.deleted > 0
        assert len(comments.wrong) + len(comments.undeleted) < comments.edited + comments.deleted, (
            "edits and removals are noticed"
        )

        with Database.from_url() as database:
            fleet.live(6, edit_rate=1)
            fleet.check(database)
            assert [one.faults for one in compare(database, forum.truth(), "site")] == [frozenset(), frozenset()]

        path.write_text(path.read_text().replace('"/recent/{page}"', '"/nothing/{page}"'))
        fleet.run(LOOK, spiders=("forum_list",))
        assert ForumStates(redis_client).read([f"site/{RECENT}"])[f"site/{RECENT}"].errors == 1
        assert Breakers(redis_client).open_ones() == {}, "the site can be watched without it"
