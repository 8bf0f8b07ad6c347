"""Two sites that one fleet crawls, the first with a login, and real crawls of them."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from scrapy import Request
from scrapy.http import TextResponse

from forums.records.stored import ForumTask, PostTask
from forums.records.tasks_and_items import encode
from forums.sites import Site
from forums.sites.http.fetch import Visitor
from forums.spiders.forum_detail import ForumDetailSpider
from redis_components.keys import CrawlKeys
from redis_components.queue import PriorityQueue
from tests.support import warm_start
from tests.support.scrapy_command import crawl_command
from tests.support.watched_site import Page, WatchedSite

ROOT = Path(__file__).parents[2]
SECRET = "MARKED-SECRET-7d1f"
STOLEN = "STOLEN-TEXT-OF-THE-OTHER-SITE"
LOGIN = """
[headers]
Authorization = "Bearer ${ATTACKED_TOKEN}"
X-Api-Key = "${ATTACKED_TOKEN}"
[cookies]
session = "${ATTACKED_TOKEN}"
"""
SITE_FILE = """
base_url = "{base}"
forums = ["f"]
{top}
[politeness]
rate = 0
[breaker]
{breaker}
attempts = 2
[pages.list]
url = "/list/{{forum}}"
format = "json"
rows = "threads"
next = "next"
[pages.list.fields]
id = "id"
title = "title"
url = "url"
reply_count = "replies"
[pages.thread]
url = "{{url}}"
format = "json"
[pages.thread.fields]
title = "title"
body = "body"
reply_count = "replies"
[pages.comments]
url = "/comments/{{thread}}"
format = "json"
rows = "comments"
next = "next"
[pages.comments.fields]
id = "id"
body = "body"
{more}
"""


@dataclass(kw_only=True)
class TwoSites:
    """`mine` has a login and is crawled; `other` is another site of the same fleet, which must learn nothing of it."""

    mine: WatchedSite
    other: WatchedSite
    client: redis.Redis
    redis_url: str
    folder: Path

    def declare(self, *, top: str = "", login: str = LOGIN, base: str | None = None, in_a_row: int | None = None) -> None:
        """Write both site files; all but `in_a_row`, without which no breaker opens, is for that of `mine`."""
        for name, url, own, end in (
            ("mine", base or self.mine.url, top, login),
            ("other", self.other.url, "", ""),
        ):
            breaker = "enabled = false" if in_a_row is None else f"in_a_row = {in_a_row}"
            text = SITE_FILE.format(base=url, top=own, more=end, breaker=breaker)
            (self.folder / f"{name}.toml").write_text(text)
        for path in ("/stolen", "/stolen/list", "/stolen/comments"):
            rows = [{"id": f"{STOLEN}-row", "title": STOLEN, "body": STOLEN, "url": "/x", "replies": 1}]
            self.other.pages[path] = Page({"title": STOLEN, "body": STOLEN, "replies": 0, "threads": rows, "comments": rows})

    def post(self, path: str, **more: Any) -> None:
        """A post of `mine` at `path`, without comments unless `more` says so."""
        self.mine.pages[path] = Page({"title": "own title", "body": f"own text of {path}", "replies": 0} | more)

    def task(self, post: str, url: str) -> None:
        """Seed the reading of a thread of `mine` that is at `url`."""
        self.client.rpush(self._keys("forum_detail").start_tasks(), encode(PostTask(site="mine", post=post, url=url)))

    def scan(self) -> None:
        """Seed a scan of the forum of `mine`."""
        self.client.rpush(self._keys("forum_list").start_tasks(), encode(ForumTask(site="mine", forum="f")))

    def store(self, url: str, **meta: Any) -> None:
        """Write a request into the queue, as whoever can write to Redis does."""
        spider = ForumDetailSpider()
        page = {"kind": "thread", "forum": "f", "thread": "t", "number": 1}
        reading = {"started_at": "2026-11-22T00:00:00.000+00:00", "mode": "new", "thread": "t", "forum": "f", "url": url}
        request = Request(
            url,
            callback=spider.parse_thread,
            errback=spider.page_failed,
            cb_kwargs={"reading": reading},
            meta={"site": "mine", "page": page, **meta},
            dont_filter=True,
        )
        PriorityQueue(self.client, spider, "%(spider)s:requests").push(request)

    def crawl(self, spider: str = "forum_detail", **settings: object) -> str:
        """Run a crawler of the fleet until nothing is left to do; its log."""
        done = warm_start.run(
            _command(spider, {"MAX_IDLE_TIME_BEFORE_CLOSE": 1, **settings}),
            cwd=ROOT,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert SECRET not in done.stderr
        return done.stderr

    @contextmanager
    def crawler(self, **settings: object) -> Iterator[Callable[[], str]]:
        """A crawler of threads that waits for work until the block ends; gives a function for what it said."""
        log = self.folder / "crawler.log"
        with log.open("wb") as out:
            process = warm_start.Popen(_command("forum_detail", settings), cwd=ROOT, env=self._environment(), stderr=out)
        try:
            yield log.read_text
        finally:
            process.terminate()
            process.wait(60)

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "TRAWL_REDIS_URL": self.redis_url}

    def items(self, spider: str = "forum_detail") -> list[dict[str, Any]]:
        """What is to be stored."""
        return [json.loads(item) for item in self.client.lrange(self._keys(spider).item_stream(), 0, 10_000)]

    def texts(self) -> list[str]:
        """The bodies of what is to be stored."""
        return [item["body"] for item in self.items() if item["kind"] in ("post", "comment")]

    def dead(self, spider: str = "forum_detail") -> list[str]:
        """Why requests were given up."""
        entries = self.client.lrange(self._keys(spider).dead(), 0, 10_000)
        return sorted(json.loads(entry.split(b"\n")[0])["reason"] for entry in entries)

    def in_redis(self) -> str:
        """All that is in Redis, as text."""
        found = []
        for key in self.client.scan_iter(count=1000):
            kind = self.client.type(key)
            read = {
                b"string": lambda key: self.client.get(key),
                b"list": lambda key: self.client.lrange(key, 0, -1),
                b"hash": lambda key: self.client.hgetall(key),
                b"set": lambda key: self.client.smembers(key),
                b"zset": lambda key: self.client.zrange(key, 0, -1),
                b"stream": lambda key: self.client.xrange(key),
            }[kind]
            found.append(f"{key!r}: {read(key)!r}")
        return "\n".join(found)

    @staticmethod
    def _keys(spider: str) -> CrawlKeys:
        return CrawlKeys.for_spider(spider)


def fetch(url: str, *, site: Site | None = None) -> TextResponse:
    """One page, of any status, as a command of an operator fetches it. Raises FetchFailed."""

    async def one() -> TextResponse:
        async with Visitor(site) as visitor:
            return await visitor.get(url)

    return asyncio.run(one())


def _command(spider: str, settings: Mapping[str, object]) -> list[str]:
    options = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    return crawl_command(spider, *options)
