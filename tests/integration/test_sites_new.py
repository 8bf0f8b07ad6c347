"""`trawl sites new` as a command, at a forum that is served."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from forums.sites import load_site
from forums.sites.http import fetch
from tests.support.trawl_command import Trawl, commands
from tests.support.unknown_forums import FORUMS
from tests.support.watched_site import Page, WatchedSite

FIXTURES = Path(__file__).parents[1] / "fixtures/forums"
MARKS_OF_FOSSIL = '<body class="forum rpage-forum"><p class="forumPosts"><a class="forumTime" href="/forumthread/1">?</a></p>'


@pytest.fixture
def new(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[[str], dict]:
    monkeypatch.setattr(fetch, "STRANGER_DELAY_S", 0.0)
    trawl: Trawl = commands(redis_url, tmp_path, monkeypatch, capfd)

    def told(url: str) -> dict:
        said = trawl("sites", "new", url, "--name", "made", "--contact", "me@example.org", "--json")
        assert said.code == 0, said.err
        return dict(json.loads(said.out))

    return told


def test_a_recognised_forum_whose_pages_its_profile_does_not_read_is_learned(new: Callable[[str], dict]) -> None:
    forum = next(iter(FORUMS.values()))()

    def answer(path: str) -> Page:
        page = forum.page(path)
        return Page(page.replace("<body>", MARKS_OF_FOSSIL), headers={"Content-Type": "text/html"}) if page else Page("no", 404)

    with WatchedSite() as site:
        site.answer = answer
        told = new(f"{site.url}/")
    assert (told["profile"], told["learned"]) == ("generic", True)
    assert [thread for thread in told["threads"] if not thread["posts"] or not thread["author"]] == []


def test_an_archive_without_an_index_is_found_from_its_list_and_from_a_message(new: Callable[[str], dict]) -> None:
    folder = FIXTURES / "public-inbox"

    def answer(path: str) -> Page:
        name = {"/garden/": "list.html", "/robots.txt": ""}.get(path.partition("?")[0], "comments-1.html")
        return Page((folder / name).read_text() if name else "no", 200 if name else 404, {"Content-Type": "text/html"})

    with WatchedSite() as site:
        site.answer = answer
        told = new(f"{site.url}/garden/")
    assert (told["profile"], told["base_url"], told["forums"]) == ("public-inbox", site.url, ["garden"])
    assert told["threads"]
    assert load_site("made").list_url("garden") == f"{site.url}/garden/"
