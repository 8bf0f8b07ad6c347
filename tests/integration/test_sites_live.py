"""Site files against real servers: manners of a crawl, single pages, and `trawl sites`."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import redis
from scrapy.http import TextResponse

from cli.main import main
from demo.forum.process import ForumProcess
from forums.records.stored import PostTask
from forums.records.tasks_and_items import encode
from forums.sites import Site, load_site
from forums.sites.http import fetch as pages
from forums.sites.http.fetch import MAX_BYTES, FetchFailed, Visitor
from forums.sites.http.politeness import user_agent
from redis_components.keys import CrawlKeys
from tests.support import warm_start
from tests.support.scrapy_command import crawl_command
from tests.support.unknown_forums import FORUMS, UnknownForum

ROOT = Path(__file__).parents[2]
DETAILS = CrawlKeys.for_spider("forum_detail")
SECRET = "abc123-never-in-redis"


def fetch(url: str, *, site: Site | None = None) -> TextResponse:
    """One page, of any status."""

    async def one() -> TextResponse:
        async with Visitor(site) as visitor:
            return await visitor.get(url)

    return asyncio.run(one())


class Server:
    """Answers by path and notes what was asked: path, headers, time."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], float]] = []
        self.forum: UnknownForum | None = None
        self.pages: dict[str, tuple[int, dict[str, str], bytes]] = {
            "/robots.txt": (200, {}, b"User-agent: *\nDisallow: /thread/forbidden\n")
        }
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append((self.path, dict(self.headers.items()), time.monotonic()))
                status, headers, body = server.pages.get(self.path.partition("?")[0], (404, {}, b"nothing"))
                if server.forum is not None and (page := server.forum.page(self.path)) is not None:
                    status, headers, body = 200, {}, page.encode()
                self.send_response(status)
                for name, value in ({"Content-Type": "text/html; charset=utf-8"} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    yield one
    one.close()


@pytest.fixture
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    monkeypatch.setenv("BOOKS_TOKEN", SECRET)
    monkeypatch.setattr(pages, "STRANGER_DELAY_S", 0.0)  # the pauses between pages of a site without a file: 40 s of them
    return tmp_path


def books(server: Server, more: str = "") -> str:
    return (
        f'profile = "generic"\nbase_url = "{server.url}"\nforums = ["f"]\n[headers]\nAuthorization = "Bearer ${{BOOKS_TOKEN}}"\n'
        f'User-Agent = "books/1"\n[cookies]\nsession = "${{BOOKS_TOKEN}}"\n{more}'
    )


def test_a_crawl_keeps_the_pace_obeys_robots_and_writes_no_secret_into_redis(
    server: Server, sites: Path, redis_url: str, redis_client: redis.Redis
) -> None:
    (sites / "books.toml").write_text(books(server, "[politeness]\nrate = 5\nconcurrency = 1\n[breaker]\nenabled = false\n"))
    server.pages["/thread/broken"] = (500, {}, b"busy")
    server.pages["/thread/moved"] = (302, {"Location": "/thread/broken"}, b"")
    for post in ("broken", "moved", "forbidden", "forbidden-too"):
        redis_client.rpush(DETAILS.start_tasks(), encode(PostTask(site="books", post=post)))
    with redis.Redis.from_url(redis_url, socket_timeout=None) as patient, patient.monitor() as monitor:
        written: list[str] = []
        watch = threading.Thread(target=_listen, args=(monitor, written), daemon=True)
        watch.start()
        warm_start.run(
            crawl_command("forum_detail", "-s", "MAX_IDLE_TIME_BEFORE_CLOSE=1"),
            cwd=ROOT,
            env={**os.environ, "TRAWL_REDIS_URL": redis_url},
            capture_output=True,
            timeout=90,
            check=True,
        )
        redis_client.echo("that was all")
        watch.join(30)
    threads = [(headers, at) for path, headers, at in server.asked if path.startswith("/thread")]
    assert len(threads) >= 11, "each of the two pages five times, and the redirect"
    assert all(headers["Authorization"] == f"Bearer {SECRET}" for headers, _ in threads)
    assert all((headers["Cookie"], headers["User-Agent"]) == (f"session={SECRET}", "books/1") for headers, _ in threads)
    # Half of 0.2 s at least between any two, as they are sent; where one arrives late the next one seems too early.
    assert threads[-1][1] - threads[0][1] > 0.09 * (len(threads) - 1)
    assert len(written) > 20
    assert "thread/broken" in "".join(written)
    assert SECRET not in "".join(written)
    reasons = sorted(json.loads(entry.split(b"\n")[0])["reason"] for entry in redis_client.lrange(DETAILS.dead(), 0, 9))
    assert sum("robots.txt" in reason for reason in reasons) == 2, reasons
    assert not any(path.startswith("/thread/forbidden") for path, _, _ in server.asked)


def _listen(monitor: redis.client.Monitor, written: list[str]) -> None:
    for command in monitor.listen():
        if "that was all" in command["command"]:
            return
        written.append(command["command"])


def test_single_pages_are_fetched_as_politely(server: Server, sites: Path) -> None:
    (sites / "books.toml").write_text(books(server, "[politeness]\nrate = 0\n"))
    site = load_site("books")
    server.pages |= {
        "/a": (302, {"Location": "/b"}, b""),
        "/b": (410, {}, "fünf".encode()),
        "/away": (302, {"Location": "http://127.0.0.1:1/"}, b""),
        "/round": (302, {"Location": "/round"}, b""),
        "/large": (200, {}, b"x" * (MAX_BYTES + 1)),
        "/picture": (200, {"Content-Type": "image/png"}, b"\x89PNG\0"),
    }
    page = fetch(f"{server.url}/a", site=site)
    assert (page.url, page.status, page.text) == (f"{server.url}/b", 410, "fünf")
    assert server.asked[-1][1]["Authorization"] == f"Bearer {SECRET}"
    assert fetch(f"{server.url}/b").status == 410
    assert "Authorization" not in server.asked[-1][1]
    for path, said in (
        ("/thread/forbidden", "robots.txt forbids it: ask the site's owners"),
        ("/away", "redirects to http://127.0.0.1:1/, which is at no place of site 'books'"),
        ("/round", "more than 10 redirects"),
        ("/large", "larger than 8 MiB"),
        ("/picture", "no text: image/png"),
    ):
        with pytest.raises(FetchFailed, match=said):
            fetch(server.url + path, site=site)
    for address, said in (("http://127.0.0.1:1/", "at no place"), ("file:///etc/passwd", "is not the URL of a web page")):
        with pytest.raises(FetchFailed, match=said):
            fetch(address, site=site)


Trawl = Callable[..., tuple[int, str, str]]


@pytest.fixture
def trawl(sites: Path, capfd: pytest.CaptureFixture[str]) -> Trawl:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["sites", *arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return run


def test_a_new_site_of_known_software_is_written_listed_and_shown(
    server: Server, sites: Path, trawl: Trawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = (ROOT / "tests/fixtures/forums/phpbb/index.html").read_bytes()
    server.pages |= {"/board/": (200, {}, index), "/board/index.php": (200, {}, index)}
    code, out, err = trawl("new", f"{server.url}/board/", "--name", "garden", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert (told["profile"], told["base_url"]) == ("phpbb", f"{server.url}/board")
    assert told["forums"]
    assert load_site("garden").forums == tuple(told["forums"])
    code, _, err = trawl("new", f"{server.url}/board/", "--name", "garden")
    assert (code, "overwrite it with --force" in err) == (2, True)
    assert trawl("new", f"{server.url}/board/", "--name", "../x")[0] == 2
    assert trawl("new", f"{server.url}/nothing")[0] == 1
    code, out, err = trawl("new", f"{server.url}/board/", "--name", "strange", "--profile", "generic")
    assert (code, "follow its comments" in out) == (0, True)
    assert 'profile = "generic"' in (sites / "strange.toml").read_text()

    code, _, err = trawl("new", f"{server.url}/board/", "--name", "named", "--contact", "ops@example.org")
    assert (code, err) == (0, "")
    assert {headers["User-Agent"] for _, headers, _ in server.asked[-2:]} == {"trawl/0.1 (+ops@example.org)"}
    assert user_agent(load_site("named")) == "trawl/0.1 (+ops@example.org)"
    code, _, err = trawl("new", f"{server.url}/board/", "--name", "other", "--contact", 'me"\n[x]')
    assert (code, "is neither an e-mail address nor a URL" in err) == (2, True)
    monkeypatch.setattr("forum_reader.definition.page_requests.THIS_MACHINE", frozenset())
    code, _, err = trawl("new", f"{server.url}/board/", "--name", "unnamed")
    assert (code, err.startswith("Warning: "), "--contact" in err) == (0, True, True)
    monkeypatch.setattr("cli.commands.sites_new._asked_contact", lambda trial: "asked@example.org")
    code, _, err = trawl("new", f"{server.url}/board/", "--name", "asked")
    assert (code, err, user_agent(load_site("asked"))) == (0, "", "trawl/0.1 (+asked@example.org)")

    server.pages |= {
        "/rubbish": (200, {}, bytes(range(256)) * 40),
        "/away": (302, {"Location": f"{server.url.replace('127.0.0.1', 'localhost')}/board/"}, b""),
    }
    for path, said in (("/rubbish", "no forum was found at "), ("/away", "leads to another host, http://localhost:")):
        code, out, err = trawl("new", f"{server.url}{path}", "--name", "none")
        assert (code, out, err.startswith("trawl: "), said in err) == (1, "", True, True), err
    assert not (sites / "none.toml").exists()

    (sites / "books.toml").write_text(books(server))
    code, out, err = trawl("list")
    assert (code, "books" in out, "strange.toml: forums" in err) == (2, True, True), "a wrong file is shown, and the others"


def test_a_new_site_of_unknown_software_is_learned_and_shown(server: Server, sites: Path, trawl: Trawl) -> None:
    server.forum = FORUMS["definitions"]()
    code, out, err = trawl("new", f"{server.url}/talk/garden/", "--name", "yard", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert (told["learned"], told["missing"], told["problem"], len(told["threads"])) == (True, [], None, 5)
    assert all(thread["posts"] and not thread["problem"] and not thread["without"] for thread in told["threads"])
    asked = [path for path, _, _ in server.asked if path != "/robots.txt"]
    assert len(set(asked)) == len(asked), "no page twice"
    code, out, _ = trawl("new", f"{server.url}/", "--name", "yard", "--force")
    assert (code, "was learned from them" in out, "first author" in out) == (0, True, True)
    assert load_site("yard").forums == ("garden", "tools")
    code, out, _ = trawl("check", "yard", "--live")
    assert code == 0, out
    assert "12 threads of forum garden" in out


def test_a_site_is_checked_live(sites: Path, trawl: Trawl, monkeypatch: pytest.MonkeyPatch) -> None:
    (sites / "demo.toml").write_text((ROOT / "demo/sites/demo.toml").read_text())
    assert trawl("check", "demo")[0] == 0
    with ForumProcess(seed=3, forums=4, threads=5, comments=3, rate=0) as forum:
        monkeypatch.setenv("TRAWL_DEMO_URL", forum.url)
        code, out, _ = trawl("check", "demo", "--live")
        assert code == 0, out
        assert "5 threads of forum f1" in out
        wrong = (sites / "demo.toml").read_text().replace('body = "body"', 'body = "text"')
        (sites / "wrong.toml").write_text(wrong)
        code, out, _ = trawl("check", str(sites / "wrong.toml"), "--live", "--forum", "f2", "--json")
        pages = {page["kind"]: page for page in json.loads(out)["pages"]}
    assert code == 1
    assert pages["list"]["url"].startswith(f"{forum.url}/list/f2/")
    assert pages["thread"]["problem"] == pages["comments"]["problem"].replace("id and ", "") == "body empty everywhere"
    code, out, _ = trawl("check", "demo", "--live")
    assert (code, "wrong: " in out) == (1, True), "the forum is gone"
    assert trawl("check", "nothing.toml")[0] == 2
