"""`trawl watch`: an address in an empty folder, and what it refuses."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from pathlib import Path

import pytest
import redis

from cli.access import addresses, is_address
from demo.forum.process import ForumProcess
from forums.sites import load_site
from redis_components.errors import ConfigError
from tests.integration.test_cli_up import get
from tests.integration.test_mcp import ask
from tests.support import warm_start
from tests.support.fleet import ROOT
from tests.support.processes import none_left, wait_until
from tests.support.trawl_command import Trawl, commands, one_line
from workers.state.nodes import NodeRecord, Nodes
from workers.state.registry import Registry

TRAWL = [sys.executable, "-m", "cli.main"]


@pytest.fixture
def trawl(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Trawl:
    return commands(redis_url, tmp_path, monkeypatch, capfd)


@pytest.fixture
def forum() -> Iterator[ForumProcess]:
    with ForumProcess(seed=36, forums=2, threads=3, comments=2) as forum:
        yield forum


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("forum.example.org", ["https://forum.example.org", "http://forum.example.org"]),
        (
            "Forum.example.org/board/?f=2#top",
            ["https://Forum.example.org/board/?f=2#top", "http://Forum.example.org/board/?f=2#top"],
        ),
        ("http://forum.example.org/x", ["http://forum.example.org/x"]),
        ("127.0.0.1:8765", ["http://127.0.0.1:8765", "https://127.0.0.1:8765"]),
        ("localhost:8765/x", ["http://localhost:8765/x", "https://localhost:8765/x"]),
        ("[::1]:80", ["http://[::1]:80", "https://[::1]:80"]),
    ],
)
def test_an_address_may_lack_its_scheme(trawl: Trawl, text: str, meant: list[str]) -> None:
    assert addresses(text) == meant


def test_a_site_file_decides_about_the_scheme_of_its_host(trawl: Trawl, tmp_path: Path) -> None:
    (tmp_path / "sites/old.toml").write_text('profile = "generic"\nbase_url = "http://old.example.org"\nforums = ["news"]\n')
    assert addresses("old.example.org/t/1") == ["http://old.example.org/t/1"]
    said = trawl("why", "old.example.org/t/1")
    assert said.out.startswith("http://old.example.org/t/1 (site old"), said


@pytest.mark.parametrize(
    "text", ["", "forum", "a b.example", "ftp://forum.example", "https://", "x" * 3000 + ".org", "a@b.example.org"]
)
def test_what_is_no_address_is_one_line(trawl: Trawl, text: str) -> None:
    with pytest.raises(ConfigError, match="is not the address of a web page"):
        addresses(text)
    one_line(trawl("watch", text), 2, "is not the address of a web page")


def test_a_saved_page_is_a_file_also_where_its_name_looks_like_a_host(
    trawl: Trawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page.html").write_text("<p>nothing</p>")
    assert is_address("page.html")
    assert "No posts" in trawl("read", "page.html").out


def test_without_a_terminal_it_asks_for_a_contact_before_it_visits_anyone(trawl: Trawl, tmp_path: Path) -> None:
    one_line(trawl("watch", "forum.example.org"), 2, "--contact you@example.org")
    one_line(trawl("watch", "forum.example.org", "--contact", "nobody"), 2, "neither an e-mail address nor a URL")
    assert [path.name for path in (tmp_path / "sites").iterdir()] == ["example.toml"]


def test_a_second_forum_joins_the_fleet_that_runs(trawl: Trawl, redis_client: redis.Redis, forum: ForumProcess) -> None:
    Nodes(redis_client).beat(NodeRecord(name=f"up-{os.getpid()}@{socket.gethostname()}", capacity=4))
    place = forum.url.removeprefix("http://")
    said = trawl("watch", place, "--name", "second")
    assert said.code == 0, said
    assert "the fleet runs here already" in said.out
    assert load_site("second").forums or load_site("second").discover
    again = trawl("watch", place)
    assert "site second is this forum: its file is used" in again.out
    assert "first date" not in again.out, "it is not learned again"


@pytest.mark.processes
def test_from_an_address_in_an_empty_folder_to_posts_on_the_page_and_back(
    tmp_path: Path, redis_url: str, redis_client: redis.Redis, forum: ForumProcess
) -> None:
    folder, opened = tmp_path / "empty", tmp_path / "opened"
    folder.mkdir()
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}\n')
    browser.chmod(0o755)
    environment = {name: text for name, text in os.environ.items() if not name.startswith("TRAWL_")}
    environment |= {"TRAWL_REDIS_URL": redis_url, "BROWSER": f"{browser} %s", "TRAWL_TEST_MARK": str(tmp_path)}
    environment["PYTHONPATH"] = str(ROOT)
    command, log = [*TRAWL, "watch", forum.url.removeprefix("http://")], tmp_path / "log"
    with none_left(("TRAWL_TEST_MARK", str(tmp_path)), timeout_s=60), log.open("wb") as file:
        running = warm_start.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )
        try:
            link = wait_until(lambda: opened.exists() and opened.read_text(), log.read_text, 60)
            address, _, token = link.partition("/login?token=")
            assert token, "it is logged in, so that its buttons act"
            wait_until(lambda: _titles(folder), log.read_text, 60)
            wait_until(lambda: any(one in _page(address) for one in _titles(folder)), lambda: f"a post is on {address}", 60)
            _answers_an_operators_eight_questions(forum, folder, environment)
            _asks_for_the_restart_that_a_changed_file_needs(folder, environment)
            _remove_while_it_is_crawled(forum, folder, environment, redis_client)
        finally:
            running.terminate()
            assert running.wait(60) == 0, log.read_text()
    assert "first author" in log.read_text(), "it shows what it found"


def _answers_an_operators_eight_questions(forum: ForumProcess, folder: Path, environment: dict[str, str]) -> None:
    """`trawl mcp`, of a crawl that is going on; the database and the forum's own record are the judges."""
    thread = next(iter(forum.truth()["posts"]))
    wait_until(lambda: len(_titles(folder)) == 6, lambda: f"all threads; {_titles(folder)}", 60)
    title, page = _titles(folder)[0], f"{forum.url}/html/t/{thread}"
    questions = {
        "is all well": ("status", {}),
        "what is stale": ("forums", {}),
        "is this page stored": ("why", {"url": page}),
        "why did crawlers end": ("history", {}),
        "who wrote of a word": ("search", {"text": title}),
        "what is on this page": ("read", {"url": page}),
        "what was given up": ("dead", {}),
        "who changed what": ("audit", {"limit": 50}),
    }
    asked = [(name, tool, given) for name, (tool, given) in questions.items()]
    answers = ask(asked, environment=environment, cwd=folder)
    said = {name: json.loads(answers[name]["text"]) for name in questions}
    assert json.loads(said["is all well"]["result"])["running"] is True
    assert {one["forum"] for one in json.loads(said["what is stale"]["result"])["forums"]} >= {"f1", "f2"}
    why = json.loads(said["is this page stored"]["from_pages"])
    assert (why["thread"], why["known"]) == (thread, True)
    assert {"forum_list", "forum_detail"} <= {one["spider"] for one in json.loads(said["why did crawlers end"]["result"])}
    assert title in said["who wrote of a word"]["from_pages"]
    assert json.loads(said["what is on this page"]["from_pages"])["posts"]
    assert said["what was given up"]["exit_code"] == 0
    assert "watch" in said["who changed what"]["result"] or "status" in said["who changed what"]["result"]


def _asks_for_the_restart_that_a_changed_file_needs(folder: Path, environment: dict[str, str]) -> None:
    (folder / ".env").write_text("HOOK_SECRET=unspeakable\n")
    status = [*TRAWL, "status", "--json"]

    def said() -> str:
        return warm_start.run(status, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout

    found = wait_until(lambda: "HOOK_SECRET" in (text := said()) and text, said, 60)
    assert "not in use yet: HOOK_SECRET" in found
    assert "restart `trawl up`" in found
    assert "unspeakable" not in found
    (folder / ".env").unlink()  # that nothing is asked for any more is seen at the end


def _remove_while_it_is_crawled(forum: ForumProcess, folder: Path, environment: dict[str, str], client: redis.Redis) -> None:
    """The site's own log, the database and the errors are the judges."""
    forum.control(rate=20)
    (site,) = (path.stem for path in (folder / "sites").glob("*.toml"))
    trawl = [*TRAWL, "sites", "remove", site, "--yes"]
    removed = warm_start.run(trawl, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert removed.returncode == 0, removed.stderr
    assert " posts, " in removed.stdout
    asked = forum.stats()["total"]
    for _ in range(2):  # each crawler has exchanged messages with Redis in between
        before = {one.name: one.beat_at for one in Registry(client).crawlers()}
        assert before
        wait_until(lambda: all(one.beat_at != before.get(one.name) for one in Registry(client).crawlers()), "heartbeats", 30)  # noqa: B023
    assert forum.stats()["total"] == asked, "no page was asked for"
    assert _titles(folder) == []

    def status() -> str:
        command = [*TRAWL, "status", "--json"]
        return warm_start.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout

    wait_until(lambda: "HOOK_SECRET" not in status(), status, 60, every_s=0.5)
    found = json.loads(status())
    assert {one.get("name") for one in found["problems"]} <= {"no_aof"}, found["problems"]
    assert not [one for one in found["errors"] if site in json.dumps(one)], found["errors"]


def _page(address: str) -> str:
    return unescape(get(address.rstrip("/"), "/")[1])


def _titles(folder: Path) -> list[str]:
    """Titles of the stored threads."""
    path = folder / "data/trawl.sqlite"
    if not path.exists():
        return []
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        if not database.execute("select 1 from sqlite_master where name = 'posts'").fetchall():
            return []
        return [str(title) for (title,) in database.execute("select title from posts where title is not null")]
