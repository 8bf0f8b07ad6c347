"""The site that the BBSCollector of tests/acceptance crawls, and a fleet with it as a declared service.

Lists `/list/{forum}/{page}`, posts `/post/{id}` and comments `/comment/{post}/{page}`, as JSON, 20 entries a page.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from tests.support.fleet import ToyFleet

PROJECT = Path(__file__).parents[1] / "acceptance" / "forum_collector_project"
SERVICE = "BBSCollector-scrapy-redis"
TASKS, ITEMS = "BBSCollector.taskqueue", f"{SERVICE}:items"
PER_PAGE = 20


@dataclass(frozen=True, kw_only=True)
class Forum:
    """Post 1 has `hot` comments, every third post `third`, the others none."""

    posts: int
    hot: int
    third: int = 1

    def comments(self, number: int) -> int:
        return self.hot if number == 1 else self.third * (number % 3 == 0)

    @property
    def items(self) -> int:
        """Posts and comments."""
        return self.posts + sum(self.comments(number) for number in range(1, self.posts + 1))


FORUMS = {"00001": Forum(posts=95, hot=83), "00002": Forum(posts=80, hot=84), "00003": Forum(posts=65, hot=84)}


def truth(forums: Mapping[str, Forum]) -> set[tuple[str, str]]:
    """Kind and id of each item that there is."""
    found = set()
    for name, forum in forums.items():
        for number in range(1, forum.posts + 1):
            found.add(("post", f"{name}-{number}"))
            found |= {("comment", f"{name}-{number}-{one}") for one in range(1, forum.comments(number) + 1)}
    return found


def _page(count: int, page: int) -> tuple[range, bool]:
    """The numbers on a page, and whether there is another one."""
    last = min(count, page * PER_PAGE)
    return range((page - 1) * PER_PAGE + 1, last + 1), last < count


def answer(forums: Mapping[str, Forum], path: str) -> object:
    """What the site answers. Raises KeyError or ValueError for an unknown page."""
    _, kind, *rest = path.split("/")
    if kind == "list":
        name, page = rest
        numbers, more = _page(forums[name].posts, int(page))
        return {"posts": [f"{name}-{number}" for number in numbers], "more": more}
    name, _, number = rest[0].partition("-")
    comments = forums[name].comments(int(number))
    if kind == "post":
        return {"id": rest[0], "title": f"Post {number}", "comments": comments}
    numbers, more = _page(comments, int(rest[1]))
    return {"comments": [{"id": f"{rest[0]}-{one}", "text": "a comment " * 10} for one in numbers], "more": more}


@contextmanager
def forums_site(forums: Mapping[str, Forum]) -> Iterator[str]:
    """The URL of the site, which ends with the block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            try:
                body = json.dumps(answer(forums, self.path)).encode()
            except (KeyError, ValueError):
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


class CollectorFleet(ToyFleet):
    """The project's spider as a service declared in `trawl.toml`; its Redis is the fleet's, named by REDIS_PARAMS."""

    def __init__(self, folder: Path, site: str, *, max_items: int) -> None:
        project = folder / "project"
        shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("__pycache__"))
        with (project / "trawl.toml").open("a") as file:
            file.write(f"settings = {{ REDIS_ITEMS_MAX_WAITING = {max_items} }}\n")
        super().__init__(folder, "", TRAWL_CONFIG=str(project / "trawl.toml"), PYTHONPATH=str(project), COLLECTOR_SITE=site)
        place = urlsplit(self.redis.url)
        self._more |= {
            "COLLECTOR_REDIS_HOST": place.hostname or "",
            "COLLECTOR_REDIS_PORT": str(place.port),
            "COLLECTOR_REDIS_PASSWORD": place.password or "",
        }

    def __enter__(self) -> Self:
        super().__enter__()
        del self.environment["TRAWL_FLEET"]  # the file declares what there is
        return self

    def crawl(self, forums: Mapping[str, Forum], max_page: int = 5) -> None:
        """A start task for each forum, as the listing pushes them."""
        tasks = [json.dumps({"forum_id": name, "max_page": max_page}) for name in forums]
        self.redis.client().rpush(TASKS, *tasks)

    def status(self) -> tuple[int, str]:
        """Exit code and text of `trawl status`."""
        said = self.run("from cli.main import main\ncode = main(['status'])\nprint(code)")
        text, _, code = said.rpartition("\n")
        return int(code), text


@contextmanager
def plain_consumers(fleet: CollectorFleet, number: int) -> Iterator[list[bytes]]:
    """What so many consumers get that know nothing but BLPOP and the list's name."""
    taken: list[bytes] = []
    stop = threading.Event()

    def take() -> None:
        client = fleet.redis.client()
        while not stop.is_set():
            if item := client.blpop([ITEMS], 1):
                taken.append(item[1])

    threads = [threading.Thread(target=take) for _ in range(number)]
    for thread in threads:
        thread.start()
    try:
        yield taken
    finally:
        stop.set()
        for thread in threads:
            thread.join()
