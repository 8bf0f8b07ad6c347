"""Who may see the pages: tokens, sessions, and what strangers try."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import redis

from forums.storage import Database
from monitoring.api.access import Tokens
from monitoring.app import create_app
from monitoring.forums import data, search
from monitoring.pages.action_routes import is_own
from monitoring.source import Source

READ, ACT = "r" * 24, "a" * 24
ELSEWHERE = "192.0.2.9"


@dataclass(kw_only=True)
class Browser:
    """Asks the ASGI application without a socket, and keeps its cookie."""

    app: Any
    client: str = "127.0.0.1"
    cookie: str = ""
    goes: bool = False  # it does not wait for the answer
    headers: dict[str, str] = field(default_factory=dict)
    cookies_set: list[str] = field(default_factory=list)

    def ask(self, method: str, target: str, form: dict[str, str] | None = None, **more: str) -> tuple[int, str, dict[str, str]]:
        """Status, body and headers."""
        path, _, query = target.partition("?")
        headers = {"host": "localhost", "content-type": "application/x-www-form-urlencoded", **self.headers, **more}
        if self.cookie:
            headers["cookie"] = self.cookie
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": (self.client, 5),
            "server": ("localhost", 80),
            "scheme": "http",
            "root_path": "",
        }
        sent: list[dict[str, Any]] = []
        goes = iter([False, *([self.goes] * 10_000)])

        async def receive() -> dict[str, Any]:
            if next(goes):
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": urlencode(form or {}).encode(), "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        self.cookies_set += [value.decode() for name, value in sent[0]["headers"] if name == b"set-cookie"]
        answered = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        if "set-cookie" in answered:
            self.cookie = answered["set-cookie"].partition(";")[0]
        return sent[0]["status"], b"".join(one.get("body", b"") for one in sent[1:]).decode(), answered

    def log_in(self, token: str) -> int:
        return self.ask("POST", "/login", {"token": token})[0]


@pytest.fixture
def source(redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Source:
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    monkeypatch.setenv("TRAWL_FLEET", "books=1")
    monkeypatch.setenv("TRAWL_DATABASE_URL", f"sqlite:///{tmp_path}/none.db")
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    return Source(redis_url, {"books": 1})


INNER = (
    "/sites",
    "/site/x",
    "/service/books",
    "/crawler/books/0",
    "/dead",
    "/events",
    "/jobs",
    "/run/brands-1",
    "/search?q=x",
)


def test_without_tokens_this_machine_looks_and_others_see_the_overview_alone(source: Source) -> None:
    app = create_app(source)
    assert Browser(app=app).ask("GET", "/service/books")[0] == 200
    assert Browser(app=app, client=ELSEWHERE).ask("GET", "/")[0] == 200
    for path in INNER:
        assert Browser(app=app, client=ELSEWHERE).ask("GET", path)[0] == 403, path
        assert Browser(app=app, headers={"x-forwarded-for": ELSEWHERE}).ask("GET", path)[0] == 403, "a proxy passes it on"


def test_with_a_token_every_page_needs_a_session(source: Source) -> None:
    app = create_app(source, tokens=Tokens(read=READ, act=ACT))
    for path in ("/", *INNER):
        code, _, headers = Browser(app=app).ask("GET", path)
        assert (code, headers["location"]) == (303, f"/login?next={quote(path)}")
    for wrong in ("", "x" * 24, READ[:-1], "Basic !"):
        assert Browser(app=app).log_in(wrong) == 401
    for token in (READ, ACT):
        browser = Browser(app=app, client=ELSEWHERE)
        code, _, headers = browser.ask("POST", "/login", {"token": token, "next": "/service/books"})
        assert (code, headers["location"]) == (303, "/service/books")
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(headers["set-cookie"].split("; "))
        assert browser.ask("GET", "/service/books")[0] == 200
    assert Browser(app=app, cookie="trawl_session=made-up").ask("GET", "/sites")[0] == 303
    for probe in ("/livez", "/metrics"):
        assert Browser(app=app, client=ELSEWHERE).ask("GET", probe)[0] == 200, "machines ask without a session"


def test_the_link_of_up_logs_in_on_this_machine_alone(source: Source) -> None:
    app = create_app(source, tokens=Tokens(act=ACT))
    link = f"/login?token={ACT}"
    browser = Browser(app=app)
    code, _, headers = browser.ask("GET", link)
    assert (code, headers["location"]) == (303, "/"), "the token does not stay in the address"
    assert "You may act" in browser.ask("GET", "/")[1]
    for other in (
        Browser(app=app, client=ELSEWHERE),
        Browser(app=app, headers={"x-forwarded-for": ELSEWHERE}),
        Browser(app=app, headers={"sec-fetch-site": "cross-site"}),
    ):
        code, _, headers = other.ask("GET", link)
        assert code in (200, 403)
        assert "set-cookie" not in headers
    wrong = Browser(app=app)
    assert (wrong.ask("GET", "/login?token=" + "x" * 24)[0], wrong.cookie) == (401, "")


def test_logging_in_leads_nowhere_else_and_no_other_site_does_it(source: Source) -> None:
    app = create_app(source, tokens=Tokens(act=ACT))
    for onward in ("//evil.example", "https://evil.example", "/\\evil.example", "/\t/evil.example", ""):
        assert not is_own(onward)
        assert Browser(app=app).ask("POST", "/login", {"token": ACT, "next": onward})[2]["location"] == "/"
    for foreign in ({"sec-fetch-site": "cross-site"}, {"origin": "http://evil.example"}, {"origin": "null"}):
        assert Browser(app=app, headers=foreign).log_in(ACT) == 403


def test_logging_out_ends_the_session(source: Source) -> None:
    browser = Browser(app=create_app(source, tokens=Tokens(read=READ)))
    browser.log_in(READ)
    html, cookie = browser.ask("GET", "/login")[1], browser.cookie
    word = html.split('name="word" value="')[1].split('"')[0]
    assert browser.ask("POST", "/logout", {"word": "guessed"})[0] == 403
    assert browser.ask("GET", "/sites")[0] == 200
    assert browser.ask("POST", "/logout", {"word": word})[0] == 303
    assert Browser(app=browser.app, cookie=cookie).ask("GET", "/sites")[0] == 303


def test_search_reads_the_author_among_the_words_and_says_what_is_missing(source: Source) -> None:
    browser = Browser(app=create_app(source))
    assert "does not exist yet" in browser.ask("GET", "/search?q=word")[1]
    for asked in ("q=author:ada", "q=author:ada&author=", f"q={quote('author:ada')}"):
        assert 'name="author" value="ada"' in browser.ask("GET", f"/search?{asked}")[1], asked
    both = quote('redis author:"ada l"')
    assert 'name="author" value="ada l"' in browser.ask("GET", f"/search?q={both}")[1]
    assert "http://[" in browser.ask("GET", f"/search?q={quote('http://[')}")[1], "an address is words"


def test_a_search_ends_when_its_client_goes_and_gives_its_place_to_the_next(
    source: Source, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def endless(database: Database, *_: Any, **__: Any) -> list[Any]:
        with database.translated(), database.engine.connect() as connection:
            endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
            return list(connection.exec_driver_sql(endless))

    Database.from_url().open().close()
    monkeypatch.setattr(search, "find", endless)
    monkeypatch.setattr(search, "_LOOK_S", 0.02)  # meanwhile the database computes
    monkeypatch.setattr(data, "LONGEST_S", 3600.0)
    app = create_app(source)
    for _ in range(2 * search.MOST_AT_ONCE):
        assert "its client is gone" in Browser(app=app, goes=True).ask("GET", "/search?q=word")[1]
    monkeypatch.setattr(data, "LONGEST_S", 0.0)
    assert "it took the database more than 0 s" in Browser(app=app).ask("GET", "/search?q=word")[1]
    with ExitStack() as others:
        for _ in range(search.MOST_AT_ONCE):
            others.enter_context(search._turn())
        assert "others are searching" in Browser(app=app, goes=True).ask("GET", "/search?q=word")[1]


def test_a_page_that_is_as_it_was_is_not_sent_again_and_only_to_viewers(redis_url: str) -> None:
    viewer = Browser(app=create_app(Source(redis_url, {"books": 1}), tokens=Tokens(read=READ)), client=ELSEWHERE)
    bearer = f"Bearer {READ}"
    code, text, headers = viewer.ask("GET", "/history", authorization=bearer)
    assert (code, "History" in text) == (200, True)
    tag = {"if-none-match": headers["etag"]}
    assert viewer.ask("GET", "/dead", authorization=bearer, **tag)[0] == 200, "another page"
    same = viewer.ask(
        "GET", "/dead", authorization=bearer, **{"if-none-match": viewer.ask("GET", "/dead", authorization=bearer)[2]["etag"]}
    )
    assert same[:2] == (304, "")
    assert viewer.ask("GET", "/history", **tag)[0] == 303, "without a login"
