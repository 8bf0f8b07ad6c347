"""Attack: the page that `trawl sites new` looks at says what a site file would take for a variable of the environment, or for
the end of a value: the site would be sent what stands there, or the operator would have a file that does something else.
"""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from forum_reader.draft.draft_file import Draft, text_of
from forum_reader.reading.page_records import ListedForum
from forums.sites import SiteError, load_site
from tests.support.watched_site import Page, WatchedSite

SECRET = "MARKED-SECRET-OF-THE-ENVIRONMENT"
TOPICS = [{"id": 1, "title": "t", "slug": "t", "posts_count": 1, "last_posted_at": "2026-01-01T00:00:00Z"}]
FRONT = '<html><head><meta name="generator" content="Discourse 3.4"></head><body></body></html>'
IDS = {
    "a variable": "${MARKED}",
    "with a default": "x${MARKED:-y}",
    "end of the value": 'x"]\n[headers]\nAuthorization = "${MARKED}',
    "half a character": "a\ud800",
    "control characters": "a\x1b[2J",
    "blanks": "a b",
    "too long": "x" * 201,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("MARKED", SECRET)
    return tmp_path


@pytest.mark.parametrize("forum", IDS.values(), ids=IDS)
def test_no_forum_of_a_hostile_index_brings_a_secret_to_the_site_or_spoils_the_file(
    folder: Path, forum: str, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = [{"id": id_, "name": f"named {id_}", "slug": "s", "topic_count": 1} for id_ in (forum, 7)]

    def answer(path: str) -> Page:
        if path.startswith("/categories.json"):
            return Page({"category_list": {"categories": listed}})
        if ".json" in path:
            return Page({"topic_list": {"topics": TOPICS}})
        return Page(FRONT) if path == "/" else Page("nothing", 404)

    with WatchedSite() as evil:
        evil.answer = answer
        assert main(["sites", "new", evil.url, "--name", "evil", "--profile", "discourse"]) == 0, capsys.readouterr().err
        site = load_site("evil")
        assert "7" in site.forums
        assert any("/latest.json" in path for path in evil.paths()), f"a list of the draft is tried: {evil.paths()}"
        assert SECRET not in evil.said()
        assert SECRET not in str([site.list_url(one) for one in site.forums])
    assert site.headers == {}
    capsys.readouterr()


def drafted(**fields: Any) -> str:
    values = {"name": "evil", "profile": None, "software": "unknown software", "base_url": "http://127.0.0.1:1"} | fields
    return text_of(Draft(**values))


class Learned:
    language = time_zone = None
    missing = ()
    pages: dict[str, Any]

    def __init__(self, select: str) -> None:
        self.pages = {"list": {"url": "/l", "rows": select, "fields": {"id": {"select": "a", "attr": "href"}}}}


@pytest.mark.parametrize(
    "said",
    [
        {"wrapper": Learned("div.x ${MARKED}")},
        {"wrapper": Learned("'\"${MARKED}\"'")},
        {"base_url": "http://127.0.0.1:1/${MARKED}"},
        {"time_zone": "${MARKED}"},
    ],
    ids=["selector", "quoted selector", "address", "time zone"],
)
def test_nothing_that_was_learned_of_a_page_is_a_variable_of_the_file(said: dict[str, Any]) -> None:
    with pytest.raises(SiteError, match="would take for a variable"):
        drafted(**said)


def test_names_of_forums_are_text_of_one_value() -> None:
    names = ['"]\n[headers]\nA = "x', "'''", "a\\", "\ud800", "\x00\x1b[2J", "\u2028#", "${MARKED}"]
    table = tomllib.loads(drafted(forums=tuple(ListedForum(id=f"f{n}", name=name) for n, name in enumerate(names))))
    assert table["forums"] == [f"f{n}" for n in range(len(names))]
    assert "headers" not in table
    assert table["names"]["f0"] == '"] [headers] A = "x'
    assert "f6" not in table["names"]


@pytest.mark.parametrize("path", ["$(id)", ";id", "`id`", "a&id", "a|id", "'x'"])
def test_the_command_that_is_proposed_for_another_host_is_one_command(
    folder: Path, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with WatchedSite() as evil:
        evil.redirect("/", f"http://localhost:{evil.port}/{path}")
        evil.pages[f"/{path}"] = Page(FRONT)
        assert main(["sites", "new", evil.url, "--name", "evil"]) == 1
    command = capsys.readouterr().err.strip().partition("if that is the forum, ")[2]
    words = shlex.shlex(command, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    trawl, sites, new, *rest = words
    assert (trawl, sites, new, len(rest)) == ("trawl", "sites", "new", 1), command
    assert "$(" not in command.replace(f"'{rest[0]}'", "")
