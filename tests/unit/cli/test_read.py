"""`trawl read`: a page shown, as JSON, in batches; and what cannot be read, said in a line."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cli.main import main
from tests.support import thread_pages

URL = "https://forum.example/t/1"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "thread.html"
    path.write_text(thread_pages.nested(thread_pages.posts("de"), "de"), "utf-8")
    return path


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = self.path.strip("/")
        if path == "robots.txt":
            self._answer(404, "text/plain", "")
        elif path.isdigit():
            self._answer(int(path), "text/html", "<p>no</p>")
        elif path == "busy":
            self._answer(429, "text/html", "<p>no</p>", {"Retry-After": "60"})
        elif path == "challenge":
            self._answer(403, "text/html", "<p>no</p>", {"cf-mitigated": "challenge"})
        elif path == "empty":
            self._answer(200, "text/html", " ")
        elif path == "json":
            self._answer(200, "application/json", "{}")
        elif path == "pdf":
            self._answer(200, "application/pdf", "%PDF-1.7")
        else:
            self._answer(200, "text/html; charset=utf-8", thread_pages.classes(thread_pages.posts(), "en"))

    def _answer(self, status: int, kind: str, text: str, headers: dict[str, str] | None = None) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


@pytest.fixture
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_saved_page_is_shown_with_each_post(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["read", str(saved), "--url", URL]) == 0
    out = capsys.readouterr().out
    assert out.startswith("thread  Radio hums\n")
    assert "6 posts, learned from the structure that they repeat" in out
    assert "#1 · walter · 2026-03-03 08:10 · id 48100" in out
    assert "answers 48107" in out


def test_json_has_all_that_was_found(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["read", str(saved), "--url", URL, "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert (page["kind"], page["reader"], page["language"], len(page["posts"])) == ("thread", "learned", "de", 6)
    assert page["posts"][2]["parent"] == "48107"
    assert page["posts"][0]["author_url"] == "https://forum.example/u/walter"


def test_the_page_of_an_address_is_fetched(site: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["read", f"{site}/thread", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["posts"]) == 6


def test_a_page_in_another_encoding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    markup = thread_pages.classes(thread_pages.posts("ru"), "ru").replace("<title>", '<meta charset="windows-1251"><title>')
    path = tmp_path / "thread.html"
    path.write_bytes(markup.encode("windows-1251"))
    assert main(["read", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["posts"][1]["author"] == "маша"


@pytest.mark.parametrize("encoding", ["gb18030", "windows-1251", "shift_jis", "euc_kr", "utf-16"])
def test_a_saved_page_that_names_no_encoding(encoding: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {
        "gb18030": "谢谢楼主分享，我也来说两句我的经验，冬天修剪比较好",
        "windows-1251": "Спасибо, очень полезно, буду пробовать на даче",
        "shift_jis": "ありがとうございます、とても参考になりました",
        "euc_kr": "감사합니다. 아주 유익한 글이네요. 겨울에 하는 것이 좋습니다.",
    }
    text = texts.get(encoding, "Thanks, that helped")
    posts = "".join(
        f'<div class="post" id="p{n}"><b class="author">ida{n}</b> <i>2026-03-0{n} 10:00</i><p class="text">{text} {n}</p></div>'
        for n in range(1, 6)
    )
    path = tmp_path / "page.html"
    path.write_bytes(f"<html><body><h1>7</h1>{posts}</body></html>".encode(encoding))
    assert main(["read", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["posts"][1]["text"] == f"{text} 2"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("403", "the site refuses it with status 403"),
        ("404", "answers with status 404, there is no such page"),
        ("500", "an error of the site: try again later"),
        ("busy", "(status 429): try again later (its Retry-After: '60')"),
        ("challenge", "a challenge of Cloudflare, which only a browser passes: save the page"),
        ("empty", "the page is empty"),
        ("json", "is application/json, not HTML"),
        ("pdf", "no text: application/pdf"),
    ],
)
def test_what_a_site_does_not_give_is_said(site: str, path: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["read", f"{site}/{path}"]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert f"{site}/{path}" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("markup", "said"),
    [
        ("<title>Log in</title><form><input type=password></form>", "asks for a login"),
        ("<title>Just a moment...</title><p>Enable JavaScript</p>", "a challenge"),
        ("<title>Forum</title><div id=root></div><script src=app.js></script>", "a script fills the page"),
        ('<?xml version="1.0"?>\n<rss version="2.0"><channel><title>x</title></channel></rss>', 'format = "xml"'),
        ("<!-- a - b --> <!----><rss version='2.0'><channel><title>x</title></channel></rss>", 'format = "xml"'),
        ("<title>About us</title><p>We are a club of gardeners.</p>", "give the address of a thread or of a board"),
        (f"{'<!---->' * 60}<title>About us</title><p>We are gardeners.</p>", "give the address of a thread or of a board"),
    ],
)
def test_why_nothing_was_found_is_said(markup: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "page.html"
    path.write_text(markup)
    assert main(["read", str(path)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "No posts and no list were found: " in out
    assert said in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give the URL of a page, or a file"),
        (["no-such-file.html"], "no-such-file.html: No such file or directory"),
        (["ftp://forum.example/x"], "is not the address of a web page"),
        (["https://"], "is not the address of a web page"),
        (["http://forum.example/x", "--url", URL], "--url cannot be combined with a URL to fetch"),
        (["--batch", "x.html"], "remove the URL or FILE"),
    ],
)
def test_wrong_use_is_one_line_with_the_fix(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["read", *arguments]) in (1, 2)
    assert said in capsys.readouterr().err


def test_a_file_that_is_no_page_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    assert main(["read", str(path)]) == 2
    assert f"{path} is not an HTML page" in capsys.readouterr().err


class _Input:
    def __init__(self, text: str) -> None:
        self.buffer = io.BytesIO(text.encode())


def test_a_wrong_line_takes_no_neighbour_with_it(
    saved: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        json.dumps({"url": URL, "path": str(saved)}),
        "no JSON",
        json.dumps({"html": "<p>"}),
        json.dumps({"url": "https://a.example/", "path": "/no/such/file"}),
        json.dumps({"url": "https://b.example/", "html": '{"not": "html"}'}),
        "[" * 100_000,
        json.dumps({"url": "https://d.example/\ud800", "html": "<p>\ud800</p>"}),
        json.dumps({"url": "https://c.example/", "html": saved.read_text("utf-8")}),
    ]
    monkeypatch.setattr("sys.stdin", _Input("\n".join(lines) + "\n\n"))
    assert main(["read", "--batch"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["url"] for row in rows] == [
        URL,
        None,
        None,
        "https://a.example/",
        "https://b.example/",
        None,
        "https://d.example/?",
        "https://c.example/",
    ]
    assert [len(row["posts"]) for row in rows] == [6, 0, 0, 0, 0, 0, 0, 6]
    assert [row["error"] is None for row in rows] == [True, False, False, False, False, False, True, True]
    first = rows[0]["posts"][0]
    assert [first[name] for name in ("id", "author_name", "author_url", "published", "edited", "parent")] == [
        "48100",
        "walter",
        "https://forum.example/u/walter",
        "2026-03-03T08:10:00+00:00",
        None,
        None,
    ]


def test_an_answer_is_one_line_for_every_program(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    posts = thread_pages.posts()
    markup = thread_pages.classes(posts, "en").replace("Thanks, that", "Thanks,\u2028that\x85\u2029")
    monkeypatch.setattr("sys.stdin", _Input(json.dumps({"url": URL, "html": markup})))
    assert main(["read", "--batch"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert "\u2028" in json.loads(line)["posts"][4]["text"]


def test_authors_with_their_addresses(saved: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", _Input(json.dumps({"url": URL, "path": str(saved)})))
    assert main(["read", "--batch"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["posts"][0]["author"] == "walter <https://forum.example/u/walter>"
    assert row["posts"][0]["author_name"] == "walter"
