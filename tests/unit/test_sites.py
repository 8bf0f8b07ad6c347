"""Site files: what is right is read, what is wrong is one line with file, key, value and fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.sites import SiteError, load_site, load_sites


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    return tmp_path


GOOD = 'profile = "generic"\nbase_url = "http://forum.example/api/"\nforums = ["a", "b"]\n'


def test_a_site_builds_its_urls_from_the_templates(folder: Path) -> None:
    (folder / "books.toml").write_text(
        GOOD + '[pages.comments]\nurl = "/t/{thread}.json?page={page}"\nfirst_url = "/t/{thread}.json"\n'
    )
    site = load_site("books")
    assert site.list_url("a", 2) == "http://forum.example/api/forum/a?page=2"
    assert site.thread_url("1/../2?x") == "http://forum.example/api/t/1%2F..%2F2%3Fx.json"
    assert site.comments_url("p1", 3) == "http://forum.example/api/t/p1.json?page=3"
    assert [one.name for one in load_sites()] == ["books"]


def test_variables_come_from_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "books.toml").write_text(
        '# ${IN_A_COMMENT}\nprofile = "generic"\nbase_url = "${BOOKS_URL:-http://127.0.0.1:1}"\nforums = ["a"]\n'
    )
    assert str(load_site("books").base_url) == "http://127.0.0.1:1/"
    monkeypatch.setenv("BOOKS_URL", "http://127.0.0.1:2")
    assert str(load_site("books").base_url) == "http://127.0.0.1:2/"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("base_url = ", "cannot be read as TOML"),
        (GOOD + "limits.pages_per_scan = 0", "limits.pages_per_scan = 0: Input should be greater than or equal to 1"),
        (GOOD + 'forum = "a"', "forum = 'a': there is no such key: did you mean forums"),
        ('base_url = "ftp://x/"\nforums = ["a"]', "base_url = 'ftp://x/': URL scheme should be 'http' or 'https'"),
        ('base_url = "http://x/"\nforums = []', r"forums = \[\]: there is nothing to watch"),
        ('base_url = "http://x/"', "books.toml: pages is missing: write it, or name the software"),
        (GOOD + 'also_allowed = ["file:///etc"]', "also_allowed.0 = 'file:///etc': URL scheme should be 'http' or 'https'"),
        (GOOD + '[pages.list]\nurl = "/{thread}"', "pages.list.url = '/{thread}': .*may hold"),
        (GOOD.replace("http:", "${NOT_SET_ANYWHERE}"), "NOT_SET_ANYWHERE.* is not set"),
        (GOOD + 'name = "other"', "must be 'books', as the file is named"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_file_key_and_value(folder: Path, text: str, said: str) -> None:
    (folder / "books.toml").write_text(text)
    with pytest.raises(SiteError, match=said) as caught:
        load_site("books")
    assert "books.toml" in str(caught.value)
    assert all("books.toml" in line for line in str(caught.value).splitlines())


@pytest.mark.parametrize("name", ["nope", "../books", ""])
def test_an_unknown_site_is_answered_with_those_that_exist(folder: Path, name: str) -> None:
    (folder / "books.toml").write_text(GOOD)
    with pytest.raises(SiteError, match=r"unknown site .*are books; add"):
        load_site(name)
