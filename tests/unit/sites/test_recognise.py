"""`trawl sites new`: which software made a page, and the file that is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from scrapy.http import HtmlResponse

from workers.sites import load_site
from workers.sites.draft import Draft, name_of, text_of
from workers.sites.reading import ListedForum
from workers.sites.recognise import guesses, link_shapes

FORUMS = Path(__file__).parents[2] / "fixtures/forums"
PAGES = [page for page in sorted(FORUMS.glob("*/*.html")) if page.parent.name != "misago"]  # that one is a part of a page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_a_page_is_known_by_its_marks(page: Path) -> None:
    found = guesses(HtmlResponse(f"http://garden.example/board/{page.name}", body=page.read_bytes()))
    assert found[0].profile == page.parent.name
    assert found[0].base_url in ("http://garden.example", "http://garden.example/board")


def test_a_page_without_marks_shows_how_its_links_are_made() -> None:
    html = "".join(f'<a href="/b/{n}-some-title{n}/?x=1#y">t</a><a href="/u/ann">a</a>' for n in range(3))
    response = HtmlResponse("http://f.example/", body=html.encode())
    assert guesses(response) == []
    assert link_shapes(response) == [("/b/{n}-…/?x={n}", 3, "/b/0-some-title0/?x=1")]


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://www.forum.example/x", "forum.example"),
        ("http://127.0.0.1:8080", "127.0.0.1-8080"),
        ("http://bücher.example", "b-cher.example"),
    ],
)
def test_a_name_from_an_address(url: str, name: str) -> None:
    assert name_of(url) == name


@pytest.mark.parametrize("profile", ["phpbb", None])
def test_the_file_is_right_once_it_has_forums(profile: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    forums = (ListedForum(id="7", name='The "big" #1\n forum', threads=3), ListedForum(id="8", name="8"))
    draft = Draft(name="s", profile=profile, software="x", base_url="http://f.example/b", forums=forums, can_discover=True,
                  obey_robots=False, shapes=[("/b/{n}", 3, "/b/1")])  # fmt: skip
    (tmp_path / "s.toml").write_text(text_of(draft))
    site = load_site("s")
    assert site.forums == ("7", "8")
    assert site.profile == (profile or "generic")
    assert site.politeness.obey_robots is False
