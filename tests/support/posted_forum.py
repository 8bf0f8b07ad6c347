"""A forum that is asked with POST, has ids of several parts, and shows a part of each thread until somebody asks for more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

SITE = """
base_url = "{url}"
forums = ["7"]
[politeness]
rate = 0
obey_robots = false
[schedule]
min_interval_s = 1

[pages.list]
url = "/graphql"
format = "json"
rows = "data.topics"
has_more = "data.more"
[pages.list.body.json]
query = "query($board: Int!) {{ topics(board: $board) {{ link replies }} }}"
[pages.list.body.json.variables]
board = "{{forum:int}}"
page = "{{page}}"
[pages.list.fields]
id = {{ select = "link", regex = '/board/(\\w+)/topic/(\\d+)', join = "." }}
title = "title"
reply_count = "replies"
token = "stamp"

[pages.comments]
url = "/show?board={{thread.1}}&topic={{thread.2}}"
rows = "div.post"
first_is_post = true
load_more = "button.load::attr(data-url)"
[pages.comments.fields]
id = {{ select = "./@data-number", prefix = "{{thread}}/" }}
body = "p"
author = "b"
load_more = "a.answers"
[pages.comments.post]
title = "h1"

[pages.more]
url = "{{more}}&page={{page}}"
html_at = "fragment"
has_more = "goes_on"
"""
SHOWN, PIECE = 3, 2  # posts on a thread's page, and on each page of more


@dataclass
class Topic:
    """A thread: its replies, and the answers to its second post, by number."""

    replies: dict[int, str]
    answers: dict[int, str] = field(default_factory=dict)
    stamp: int = 0


@dataclass
class PostedForum:
    """The forum; `asked` are its requests in their order."""

    url: str
    threads: dict[str, Topic]
    asked: list[str] = field(default_factory=list)

    def texts(self) -> dict[str, str]:
        """Each comment by its id, as the site file makes it."""
        return {
            f"b7.{name}/{number}": text
            for name, thread in self.threads.items()
            for number, text in (thread.replies | thread.answers).items()
        }

    def answer(self, path: str, body: bytes) -> tuple[str, str]:
        """The content type and the text of a page. Raises KeyError for what there is none of."""
        parts = urlsplit(path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        if parts.path == "/graphql":
            return "application/json", json.dumps(self._topics(json.loads(body)["variables"]))
        thread = self.threads[query["topic"]]
        if parts.path == "/show":
            return "text/html", self._page(query["topic"], thread)
        rows = thread.answers if query["of"] == "answers" else dict(list(thread.replies.items())[SHOWN:])
        at = (int(query["page"]) - 1) * PIECE
        some = "".join(_post(number, text) for number, text in list(rows.items())[at : at + PIECE])
        return "application/json", json.dumps({"fragment": some, "goes_on": at + PIECE < len(rows)})

    def _topics(self, variables: dict[str, Any]) -> dict[str, Any]:
        assert variables["board"] == 7, variables
        names = sorted(self.threads)
        at = variables["page"] - 1
        rows = [
            {
                "link": f"{self.url}/board/b7/topic/{name}?unread=1",
                "title": f"Topic {name}",
                "replies": len(self.threads[name].replies) + len(self.threads[name].answers),
                "stamp": str(self.threads[name].stamp),
            }
            for name in names[at : at + 1]
        ]
        return {"data": {"topics": rows, "more": at + 1 < len(names)}}

    def _page(self, name: str, thread: Topic) -> str:
        shown = list(thread.replies.items())[:SHOWN]
        more = f"/more?topic={name}&amp;of="
        answers = f'<a class="answers" href="{more}answers">answers</a>' if thread.answers else ""
        posts = "".join(_post(number, text, answers if number == 2 else "") for number, text in [(1, f"opens {name}"), *shown])
        button = f'<button class="load" data-url="{more}replies">more</button>' if len(thread.replies) > SHOWN else ""
        return f"<html><body><h1>Topic {name}</h1>{posts}{button}</body></html>"


def _post(number: int, text: str, after: str = "") -> str:
    return f'<div class="post" data-number="{number}"><b>ann</b><p>{text}</p>{after}</div>'


@contextmanager
def posted_forum() -> Iterator[PostedForum]:
    """Two threads: one of which more is left out in both ways, and one that is shown whole."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            forum.asked.append(f"{self.command} {self.path} {body.decode()}".strip())
            try:
                kind, text = forum.answer(self.path, body)
            except KeyError:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.end_headers()
            self.wfile.write(text.encode())

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        long = Topic(
            {number: f"reply {number}" for number in range(2, 9)}, {number: f"answer {number}" for number in range(20, 25)}
        )
        forum = PostedForum(f"http://127.0.0.1:{server.server_port}", {"12": long, "13": Topic({2: "only one"})})
        Thread(target=server.serve_forever, daemon=True).start()
        yield forum
        server.shutdown()
