"""`trawl sites new` as a command, at a forum that is served."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forums.sites import load_all as sites_of_fleet
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


@pytest.mark.parametrize(
    ("lang", "footer", "form", "language", "time_zone"),
    [
        ("de", "Alle Zeiten sind GMT +1", "%d.%m.%Y, %H:%M", "de", "Etc/GMT-1"),
        ("en", "All times are GMT", "%d-%m-%Y, %I:%M %p", "en-GB", "UTC"),
        ("en", "All times are GMT -5", "%m-%d-%Y, %I:%M %p", "en", "Etc/GMT+5"),
    ],
)
def test_the_file_says_how_a_site_writes_dates_where_its_software_was_delivered_otherwise(
    new: Callable[[str], dict], lang: str, footer: str, form: str, language: str, time_zone: str
) -> None:
    """vBulletin 3 as delivered is English, with the month first."""
    days = [datetime(2023, 3, day, 21, 14, tzinfo=UTC) for day in (5, 8, 9, 10, 11)]
    link = '<a name="post{n}"></a>{day}</td></tr><tr><td><a class="bigusername" href="member.php?u={n}">ida{n}</a></td>'
    posts = "".join(
        f'<table id="post{n}"><tr><td class="thead">{link.format(n=n, day=day.strftime(form))}'
        f'<td id="td_post_{n}"><div id="post_message_{n}">The pump stopped again, number {n}.</div></td></tr></table>'
        for n, day in enumerate(days, 41)
    )
    bodies = {
        "/": '<table><tr><td id="f2"><div><a href="forumdisplay.php?f=2"><strong>Garden</strong></a></div></td></tr></table>',
        "/forumdisplay.php": '<table id="threadbits_forum_2"><tr><td id="td_threadtitle_7">'
        '<a id="thread_title_7" href="showthread.php?t=7">Pumps</a></td></tr></table>',
        "/showthread.php": posts,
    }

    def answer(path: str) -> Page:
        body = bodies.get(path.partition("?")[0].replace("index.php", ""))
        head = f'<html lang="{lang}"><meta name="generator" content="vBulletin 3.8.7"><body>'
        return Page(f"{head}{body}<div>{footer}. It is now 10:12.</div>" if body else "no", 200 if body else 404)

    with WatchedSite() as site:
        site.answer = answer
        told = new(f"{site.url}/")
    made = load_site("made")
    assert (told["profile"], made.language, made.time_zone) == ("vbulletin3", language, time_zone)
    hour = 21 if form.endswith("%p") and time_zone == "UTC" else 20 if lang == "de" else 26
    assert told["threads"][0]["published"].startswith(f"{days[0] + timedelta(hours=hour - 21):%Y-%m-%dT%H:%M}")


def test_the_fleet_does_not_read_a_file_that_looks_wrong(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fetch, "STRANGER_DELAY_S", 0.0)
    trawl: Trawl = commands(redis_url, tmp_path, monkeypatch, capfd)
    forum = next(iter(FORUMS.values()))()
    monkeypatch.setattr("forum_reader.draft.draft_file.faults_of_thread", lambda *_: iter(["the texts are titles"]))
    with WatchedSite() as site:
        site.answer = lambda path: Page(page) if (page := forum.page(path)) else Page("no", 404)
        said = trawl("sites", "new", f"{site.url}/", "--name", "made", "--contact", "me@example.org")
        assert (said.code, "the texts are titles" in said.out) == (1, True)
        written = next(tmp_path.rglob("made.*"))
        assert written.name == "made.wrong"
        assert "rename it to made.toml" in " ".join(said.out.split())
        assert "made" not in [one.name for one in sites_of_fleet()[0]]
        assert trawl("sites", "check", str(written), "--live").code == 0  # the signs are not there
        assert trawl("sites", "new", f"{site.url}/", "--name", "made", "--contact", "me@example.org", "--force").code == 1
        assert "made" in [one.name for one in sites_of_fleet()[0]]
