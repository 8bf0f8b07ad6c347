"""Every profile reads the pages of its software as a person would.

The pages in `tests/fixtures/forums/<profile>/` are of our own making, after the public markup or API, with its traps.
`expected.json` beside them says per page (the file's name without its ending) what it is and what is to be read:
`kind`, `forum` or `thread`, `number`, `url`; `rows` (of each row the fields that are named), `next`, `pages`, `total`, `post`;
`now`, the moment that relative dates refer to; `unreadable`, part of the reason why a page is refused; `left_out`, what leads to
comments that are not on it, with the comment that they answer (of a page "more" itself: `more` and `comment`).
"""

from __future__ import annotations

import json
from datetime import datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from scrapy.http import HtmlResponse, TextResponse

from forum_reader.definition.load import PROFILES
from forum_reader.errors import UnreadablePage
from forum_reader.reading.page_records import Asked
from forum_reader.reading.read_page import read_comments, read_index, read_list, read_more, read_recent, read_thread
from forum_reader.recognise.recognise import guesses
from forums.sites import Site, load_site

PAGES = Path(__file__).parents[2] / "fixtures" / "forums"
EXPECTED = {path.parent.name: json.loads(path.read_text()) for path in sorted(PAGES.glob("*/expected.json"))}
CASES = [(profile, stem) for profile, pages in EXPECTED.items() for stem in pages]
NOW = "2026-11-22T12:00:00+00:00"
ROWS = {"index": "forums", "list": "threads", "comments": "comments", "more": "comments", "recent": "messages"}
BASE = "https://forum.example"


@pytest.fixture
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    return tmp_path


def site_of(profile: str, folder: Path) -> Site:
    (folder / "forum.toml").write_text(f'profile = "{profile}"\nbase_url = "{BASE}"\nforums = ["1"]\n')
    return load_site("forum")


def read(site: Site, page: Path, told: dict[str, Any]) -> Any:
    """The page as it would be read after a crawl had fetched it."""
    kind, number = told["kind"], told.get("number", 1)
    made = datetime.fromisoformat(told.get("now", NOW))
    types = {".json": "application/json", ".xml": "text/xml"}
    headers = {"Content-Type": types.get(page.suffix, "text/html"), "Date": format_datetime(made)}
    place = {name: told.get(name, "") for name in ("forum", "thread", "comment", "more")}
    url = told.get("url") or site.url(kind, number=number, **place)
    response = (HtmlResponse if page.suffix == ".html" else TextResponse)(url, body=page.read_bytes(), headers=headers)
    if kind == "recent":
        return read_recent(site, response, number)
    if kind == "index":
        return read_index(site, response, number)
    if kind == "list":
        return read_list(site, response, told["forum"], number)
    if kind == "more":
        return read_more(site, response, Asked(kind="more", number=number, **place))
    if kind == "thread":
        return read_thread(site, response, told["thread"])
    return read_comments(site, response, told["thread"], number, forum=told.get("forum", ""))


@pytest.mark.parametrize("profile", sorted(path.stem for path in PROFILES.glob("*.toml")))
def test_a_site_file_needs_no_more_than_a_profile_an_address_and_forums(profile: str, sites: Path) -> None:
    site = site_of(profile, sites)
    assert site.url("list", forum="1").startswith(BASE)
    assert profile in ("generic", "articles") or profile in EXPECTED, f"make pages for it in {PAGES}"


@pytest.mark.parametrize(("profile", "stem"), CASES, ids=[f"{profile}-{stem}" for profile, stem in CASES])
def test_a_page_is_read_as_a_person_reads_it(profile: str, stem: str, sites: Path) -> None:
    told = EXPECTED[profile][stem]
    page = next(path for path in (PAGES / profile).iterdir() if path.stem == stem)
    site = site_of(profile, sites)
    if "unreadable" in told:
        with pytest.raises(UnreadablePage, match=told["unreadable"]):
            read(site, page, told)
        return
    found = msgspec.to_builtins(read(site, page, told), builtin_types=(datetime,))
    if "rows" in told:
        rows = found[ROWS[told["kind"]]]
        assert [row["id"] for row in rows] == [row["id"] for row in told["rows"]]
        for row, expected in zip(rows, told["rows"], strict=True):
            assert _part(row, expected) == expected
    for key in ("next", "pages", "total"):
        assert key not in told or found[key] == told[key], key
    if "left_out" in told:
        assert [[one["more"], one["comment"]] for one in found["left_out"]] == told["left_out"]
    if "post" in told:
        assert told["post"] == (None if found["post"] is None else _part(found["post"], told["post"]))


@pytest.mark.parametrize(
    ("profile", "source", "header"),
    [
        (
            "discourse",
            '<meta name="generator" content="Discourse 3.5.0 - https://github.com/discourse/discourse">',
            "X-Discourse-Route: a",
        ),
        ("flarum", '<div id="flarum-loading"></div><script id="flarum-json-payload" type="application/json">{}</script>', ""),
        ("hackernews", '<html lang="en" op="news"><link rel="stylesheet" type="text/css" href="news.css?x">', ""),
        (
            "lemmy",
            '<meta name="Description" content="Lemmy"><script>window.isoData = {"site":{"version":"0.19.11"}}</script>',
            "",
        ),
        (
            "lemmy-v4",
            '<meta name="Description" content="Lemmy"><script>window.isoData = {"site":{"version":"1.0.2"}}</script>',
            "",
        ),
        ("misago-pages", '<body class="misago-anonymous"><script src="/static/misago/js/misago.js"></script>', ""),
        (
            "nodebb",
            '<script>config = {"relative_path":"","categoryTopicSort":"recently_replied"}</script>',
            "X-Powered-By: NodeBB",
        ),
        (
            "nga",
            '<div id="m_posts"><p id="postcontent0" class="postcontent"></p></div><a href="/thread.php?fid=-7">x</a>',
            "",
        ),
        ("tieba", '<div id="j_p_postlist"><div class="l_post j_l_post"></div></div><a href="/f?kw=a">a</a>', ""),
        ("zhihu", '<h1 class="QuestionHeader-title">a</h1><div class="AnswerItem"></div><a href="/topic/1">t</a>', ""),
        (
            "nodebb-v2",
            '<script>config = {"relative_path":"","categoryTopicSort":"newest_to_oldest"}</script>',
            "X-Powered-By: NodeBB",
        ),
    ],
)
def test_the_software_is_known_from_its_page(profile: str, source: str, header: str) -> None:
    headers = dict([header.split(": ")]) if header else {}
    assert guesses(HtmlResponse(BASE, body=source.encode(), headers=headers))[0].profile == profile


def _part(row: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    return {name: _plain(row[name]) for name in expected}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
