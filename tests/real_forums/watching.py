"""Trawl's side of the comparison: a site file, real crawls of it, and the database in which they end."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import redis

from forums.records.stored import RECENT, ForumTask, PostTask
from forums.records.tasks_and_items import encode
from forums.sites import load_site
from forums.writer.store import store
from redis_components.keys import CrawlKeys
from tests.real_forums.software import Comment, Software, Topic, Truth

ROOT = Path(__file__).parents[2]
_CRAWLED = re.compile(r"Crawled \(\d+\) <(?:GET|POST) ([^>]+)>")
LISTS, DETAILS = (CrawlKeys.for_spider(spider) for spider in ("forum_list", "forum_detail"))


@dataclass(frozen=True, kw_only=True)
class Stored:
    """What the database holds of the site: `seen` as if it were the truth, and the ids of what is marked as gone."""

    seen: Truth
    gone_topics: frozenset[str]
    gone_comments: frozenset[str]


class Watch:
    """One forum, watched: `scan` and `check` crawl until nothing is left to do, and store what they found."""

    def __init__(self, forum: Software, folder: Path, redis_url: str, client: redis.Redis) -> None:
        self.site = forum.name
        self._client = client
        self._redis_url = redis_url
        self._folder = folder
        self._forum = forum
        self.database = folder / "stored.db"
        (folder / "sites").mkdir(parents=True, exist_ok=True)
        (folder / "sites" / f"{self.site}.toml").write_text(forum.site_file())

    @property
    def environment(self) -> dict[str, str]:
        """What tells a Trawl process where everything is."""
        return {
            "TRAWL_REDIS_URL": self._redis_url,
            "TRAWL_SITES_DIR": str(self._folder / "sites"),
            "TRAWL_DATABASE_URL": f"sqlite:///{self.database}",
        }

    def scan(self, *, deep: bool = False) -> None:
        """Every forum, and what the scan finds changed; `deep`: all list pages."""
        tasks = [ForumTask(site=self.site, forum=forum, mode="deep" if deep else "scan") for forum in self._forum.forums()]
        self._client.rpush(LISTS.start_tasks(), *map(encode, tasks))
        self._crawl("forum_list", "forum_detail")

    def look(self) -> bool:
        """At the newest messages of the site, and what they say has changed; False where its file has no page of them."""
        if load_site(self.site).pages.recent is None:
            return False
        self._client.rpush(LISTS.start_tasks(), encode(ForumTask(site=self.site, forum=RECENT, mode="recent")))
        self._crawl("forum_list", "forum_detail")
        return True

    def check(self) -> None:
        """Every topic that is stored, whole, as the re-check by age does it."""
        tasks = [PostTask(site=self.site, post=topic, forum=forum, mode="check", url=url) for topic, forum, url in self._topics()]
        self._client.rpush(DETAILS.start_tasks(), *map(encode, tasks))
        self._crawl("forum_detail")

    def dead(self) -> list[str]:
        """Why requests or start tasks were set aside."""
        entries = [entry for keys in (LISTS, DETAILS) for entry in cast(list[bytes], self._client.lrange(keys.dead(), 0, 50))]
        return [entry.split(b"\n")[0].decode() for entry in entries]

    def stored(self) -> Stored:
        """What the database holds now."""
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True) as database:
            topics = database.execute(
                "SELECT id, deleted_at, forum_id, title, body, author, reply_count, created_at FROM posts WHERE site = ?",
                (self.site,),
            ).fetchall()
            comments = database.execute(
                "SELECT id, deleted_at, post_id, body, author, parent_id, created_at FROM comments WHERE site = ?", (self.site,)
            ).fetchall()
        return Stored(
            seen=Truth(
                topics={
                    row[0]: Topic(forum_id=row[2], title=row[3], text=row[4], author=row[5], replies=row[6], at=_minute(row[7]))
                    for row in topics
                    if row[1] is None
                },
                comments={
                    row[0]: Comment(topic_id=row[2], text=row[3], author=row[4], parent=row[5], at=_minute(row[6]))
                    for row in comments
                    if row[1] is None
                },
            ),
            gone_topics=frozenset(row[0] for row in topics if row[1] is not None),
            gone_comments=frozenset(row[0] for row in comments if row[1] is not None),
        )

    def effort(self) -> dict[str, tuple[int, int]]:
        """By what they were read for (new, changed, check): threads whose newest reading it is, and requests of it."""
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True) as database:
            rows = database.execute("SELECT mode, count(*), sum(requests) FROM checks WHERE site = ? GROUP BY mode", (self.site,))
            return {mode: (threads, requests) for mode, threads, requests in rows}

    def asked_for(self) -> list[str]:
        """The address of each page that all crawls so far were answered with, robots.txt among them."""
        return _CRAWLED.findall((self._folder / "crawl.log").read_text(errors="replace"))

    def _log(self) -> str:
        return (self._folder / "crawl.log").read_text(errors="replace")[-5000:]

    def _topics(self) -> list[tuple[str, str, str | None]]:
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True) as database:
            return database.execute("SELECT id, forum_id, url FROM posts WHERE site = ?", (self.site,)).fetchall()

    def _crawl(self, *spiders: str) -> None:
        """One spider after the other: forum_detail would close as idle before a slow forum has answered forum_list."""
        command = [sys.executable, "-m", "scrapy", "crawl", "-s", "MAX_IDLE_TIME_BEFORE_CLOSE=3", "-L", "DEBUG"]
        environment = {**os.environ, **self.environment}
        for spider in spiders:
            with (self._folder / "crawl.log").open("ab") as log:
                done = subprocess.run([*command, spider], cwd=ROOT, env=environment, stderr=log, timeout=600, check=False)
            assert done.returncode == 0, self._log()
        store(self._client, ["forum_list", "forum_detail"], budget_s=120)


def differences(truth: Truth, seen: Truth, *, most: int = 10) -> list[str]:
    """What is missing, too much or different, at most `most` lines of it. Texts are compared word by word."""
    said: list[str] = []
    for kind, true, found in (("topic", truth.topics, seen.topics), ("comment", truth.comments, seen.comments)):
        said += [f"{kind} {name} is missing: {true[name]}" for name in sorted(true.keys() - found.keys())]
        said += [f"{kind} {name} is not there any more: {found[name]}" for name in sorted(found.keys() - true.keys())]
        for name in sorted(true.keys() & found.keys()):
            said += [f"{kind} {name}: {what}" for what in _differ(true[name], found[name])]
    kinds = Counter(line.split(":")[0].rstrip("0123456789 ") for line in said)
    return [*said[:most], f"... {len(said)} differences: {dict(kinds)}"] if len(said) > most else said


def _minute(stored: str | None) -> str | None:
    return stored[:16].replace("T", " ") if stored else None


def _differ(true: Topic | Comment, found: Topic | Comment) -> list[str]:
    said = []
    for name in true.__dataclass_fields__:
        expected, was = getattr(true, name), getattr(found, name)
        if name in {"text", "title"}:
            expected, was = " ".join(str(expected).split()), " ".join(str(was).split())
        if expected != was and not (name in {"parent", "replies", "at"} and expected is None):
            said.append(f"{name} is {was!r}, should be {expected!r}")
    return said
