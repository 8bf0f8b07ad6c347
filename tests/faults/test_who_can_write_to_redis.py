"""The promise about who can write to Redis: no code runs, no local file is read, and only what a site file names is fetched."""

from __future__ import annotations

import json
import os
import pickle
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import redis
from scrapy import Request

from demo.forum.process import ForumProcess
from forums.records.stored import PostTask
from forums.records.tasks_and_items import encode
from forums.spiders.forum_detail import ForumDetailSpider
from redis_components.keys import CrawlKeys
from redis_components.queue import PriorityQueue
from tests.support import warm_start
from tests.support.scrapy_command import crawl_command

ROOT = Path(__file__).parents[2]
KEYS = CrawlKeys.for_spider("forum_detail")


class Private:
    """A server that nobody should reach; it notes who did."""

    def __init__(self) -> None:
        asked: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self.asked = asked
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def private() -> Iterator[Private]:
    server = Private()
    yield server
    server.server.shutdown()
    server.server.server_close()


def crawl(redis_url: str, forum: str) -> str:
    """Run the fleet's detail spider until the crawl is idle; returns its log."""
    done = warm_start.run(
        crawl_command("forum_detail", "-s", "MAX_IDLE_TIME_BEFORE_CLOSE=1"),
        cwd=ROOT,
        env={
            **os.environ,
            "TRAWL_REDIS_URL": redis_url,
            "TRAWL_DEMO_URL": forum,
            "TRAWL_SITES_DIR": str(ROOT / "demo" / "sites"),
        },
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def dead(client: redis.Redis) -> list[str]:
    return sorted(json.loads(entry.split(b"\n")[0])["reason"] for entry in client.lrange(KEYS.dead(), 0, 99))


class Bomb:
    """Unpickling it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.path,)


def test_a_writer_of_redis_runs_no_code_reads_no_file_and_reaches_no_private_address(
    private: Private, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    spider = ForumDetailSpider()
    queue = PriorityQueue(redis_client, spider, "%(spider)s:requests")
    secret = tmp_path / "secret"
    secret.write_text("secret")
    with ForumProcess(seed=3, forums=1, threads=2, comments=1, rate=0) as forum:
        for url in (
            f"{private.url}/plain",
            secret.as_uri(),
            f"{private.url.replace('127.0.0.1', 'localhost')}/named",
            "data:,text",
        ):
            queue.push(
                Request(
                    url, callback=spider.parse_thread, errback=spider.set_aside, dont_filter=True, meta={"allow_offsite": True}
                )
            )
        queue.push(Request(f"{private.url}/silent", callback=spider.parse_thread))
        for proxy in (private.url, private.url.removeprefix("http://")):
            meta = {"proxy": proxy}
            queue.push(Request(f"{forum.url}/post/1?{proxy}", callback=spider.parse_thread, errback=spider.set_aside, meta=meta))
        redis_client.zadd(KEYS.ready(), {b"\0" * 9 + pickle.dumps(Bomb(tmp_path / "exploded")): 0})
        redis_client.zadd(KEYS.ready(), {pickle.dumps(Bomb(tmp_path / "exploded")): 0})
        redis_client.rpush(KEYS.start_tasks(), f"{private.url}/task", b'{"site": "../../etc", "post": "passwd"}')
        redis_client.rpush(KEYS.start_tasks(), encode(PostTask(site="demo", post=min(forum.truth()["posts"]))))
        log = crawl(redis_url, forum.url)
    assert private.asked == []
    assert not (tmp_path / "exploded").exists()
    reasons = dead(redis_client)
    assert len(reasons) == 11, f"{reasons}\n{log}"
    assert sum("is at no site" in reason for reason in reasons) == 7
    assert b"secret" not in b"".join(redis_client.lrange(KEYS.item_stream(), 0, 99))
    kinds = [json.loads(item)["kind"] for item in redis_client.lrange(KEYS.item_stream(), 0, 99)]
    assert "post" in kinds, "the good task among them is crawled"


def test_another_place_that_the_site_file_allows_is_fetched(
    private: Private, redis_url: str, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "books.toml").write_text(
        f'profile = "generic"\nbase_url = "http://127.0.0.1:1"\nforums = ["a"]\nalso_allowed = ["{private.url}/images"]\n'
    )
    spider = ForumDetailSpider()
    queue = PriorityQueue(redis_client, spider, "%(spider)s:requests")
    queue.push(Request(f"{private.url}/allowed", callback=spider.parse_thread))
    warm_start.run(
        crawl_command("forum_detail", "-s", "MAX_IDLE_TIME_BEFORE_CLOSE=1"),
        cwd=ROOT,
        env={**os.environ, "TRAWL_REDIS_URL": redis_url, "TRAWL_SITES_DIR": str(tmp_path)},
        capture_output=True,
        timeout=90,
        check=True,
    )
    assert private.asked == ["/robots.txt", "/allowed"]
