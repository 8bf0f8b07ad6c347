"""A forum whose pages are not always those that were requested: behind its threads' ends it shows their first pages, it merges
threads, leaves placeholders, gives two posts one id, and has later pages for members only.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SITE = """
base_url = "{url}"
forums = ["7"]
allow_private = true
[politeness]
rate = 0
obey_robots = false
[pages.list]
url = "/f/{{forum}}"
rows = "li"
[pages.list.fields]
id = {{ select = "a", regex = '/t/(\\d+)' }}
title = "a"
reply_count = "i"
[pages.comments]
url = "/t/{{thread}}?page={{page}}"
rows = "article"
per_page = 5
first_is_post = true
[pages.comments.post]
title = "h1"
[pages.comments.fields]
id = "./@id"
author = "b"
body = "p"
"""
PER_PAGE = 5


class OddForum:
    """Threads by id: posts as (id, author, text), the opening post first. `merged`: id -> the thread that has its posts now.
    `busy`: path -> what is done at its next request, which is refused with status 503.
    """

    def __init__(self) -> None:
        self.threads: dict[str, list[tuple[str, str, str]]] = {}
        self.merged: dict[str, str] = {}
        self.for_members: set[str] = set()
        self.asked: list[str] = []
        self.busy: dict[str, Callable[[], None]] = {}
        self.url = ""

    def thread(self, id_: str, posts: int) -> None:
        self.threads[id_] = [(f"p{id_}{number:02}", f"user{number}", f"text {number} of {id_}") for number in range(posts)]

    def page(self, path: str) -> tuple[int, str]:
        """The status, and the page or the address that it leads to."""
        if (act := self.busy.pop(path, None)) is not None:
            act()
            return 503, "busy"
        if path == "/login":
            return 200, "<title>Log in</title><form><input type=password></form>"
        if path == "/f/7":
            row = '<li><a href="/t/{0}">Thread {0}</a> <i>{1}</i></li>'
            return 200, "".join(row.format(one, len(posts) - 1) for one, posts in self.threads.items())
        found = re.fullmatch(r"/t/(\d+)\?page=(\d+)", path)
        if found is None or (found[1] not in self.threads and found[1] not in self.merged):
            return 404, "no such page"
        thread, number = found[1], int(found[2])
        if thread in self.merged:
            return 302, f"/t/{self.merged[thread]}?page=1"
        if number > 1 and thread in self.for_members:
            return 302, "/login"
        posts = self.threads[thread]
        begin = (number - 1) * PER_PAGE
        shown = posts[begin : begin + PER_PAGE] or posts[:PER_PAGE]
        rows = (f'<article id="{one}"><b>{author}</b><p>{text}</p></article>' for one, author, text in shown)
        return 200, f"<h1>Thread {thread}</h1>{''.join(rows)}"


@contextmanager
def odd_forum() -> Iterator[OddForum]:
    """Serve it on a free port."""
    forum = OddForum()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            forum.asked.append(self.path)
            status, text = forum.page(self.path)
            self.send_response(status)
            if status == 302:
                self.send_header("Location", text)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    forum.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield forum
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
