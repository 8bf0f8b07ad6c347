"""Two sites on one queue: the one with a backlog that never answers has its places, and the other one all the rest."""

from __future__ import annotations

import http.server
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from forums.records.stored import PostTask
from forums.records.tasks_and_items import encode
from redis_components.admin.inspector import snapshot
from redis_components.keys import CrawlKeys
from tests.support import warm_start
from tests.support.demo_sites import declare
from tests.support.processes import wait_until
from tests.support.scrapy_command import crawl_command

ROOT = Path(__file__).parents[2]
KEYS = CrawlKeys.for_spider("forum_detail")


@contextmanager
def two_sites() -> Iterator[tuple[str, list[str]]]:
    """The URL of a server, and the paths that were asked for; those with `a` in them are not answered before the end."""
    asked: list[str] = []
    over = threading.Event()

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            if "a" in self.path:
                over.wait(60)
            body = (
                b'{"id": "b", "forum_id": "f1", "title": "t", "body": "b", "author": "x", "created_at": "2026-01-01T00:00:00Z",'
            )
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body + b'"views": 1, "reply_count": 0, "last_reply_at": "2026-01-01T00:00:00Z"}')

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        over.set()
        server.shutdown()
        server.server_close()


def test_a_site_that_never_answers_keeps_to_its_places_and_holds_back_no_other_site(
    tmp_path: Path, redis_url: str, redis_client: redis.Redis
) -> None:
    (tmp_path / "sites").mkdir()
    environment = {
        **os.environ,
        "TRAWL_REDIS_URL": redis_url,
        "TRAWL_SITES_DIR": str(tmp_path / "sites"),
        "TRAWL_DATA_DIR": str(tmp_path),
    }
    with two_sites() as (url, asked), (tmp_path / "log").open("wb") as log:
        for name in "ab":
            path = declare(tmp_path / "sites", name, url)
            path.write_text(path.read_text().replace("concurrency = 0", "concurrency = 4"))
        redis_client.rpush(KEYS.start_tasks(), *(encode(PostTask(site="a", post=f"a{number}")) for number in range(200)))
        command = crawl_command("forum_detail")
        with warm_start.Popen(command, cwd=ROOT, env=environment, stderr=log) as crawler:
            try:
                wait_until(lambda: len(asked) >= 4, lambda: f"the first site is asked: {(tmp_path / 'log').read_text()}", 60)
                redis_client.rpush(KEYS.start_tasks(), *(encode(PostTask(site="b", post=f"b{number}")) for number in range(20)))
                wait_until(
                    lambda: sum("b" in path for path in asked) >= 20,
                    lambda: f"the other is read while the first hangs: {(tmp_path / 'log').read_text()}",
                    60,
                )
                assert sum("a" in path for path in asked) == 4, "concurrency"
                shot = snapshot(redis_client, "forum_detail")
                assert shot.start_tasks + shot.ready + shot.leased + shot.leased_tasks >= 200, "and nothing of it is lost"
            finally:
                crawler.kill()
