"""`trawl sites new`: which software made a page, and the file that is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from scrapy.http import HtmlResponse

from forum_reader.definition.load import profile_names, profile_table
from forum_reader.draft.draft_file import Draft, name_of, text_of
from forum_reader.reading.page_records import ListedForum
from forum_reader.recognise.page_marks import Recognise
from forum_reader.recognise.recognise import SURE, guesses, recognise
from forums.sites import load_site

FORUMS = Path(__file__).parents[3] / "fixtures/forums"
BOARD = "http://garden.example/board/"
PARTS = {("misago", "index"), ("tieba", "more-1")}  # of a page
PAGES = [page for page in sorted(FORUMS.glob("*/*.html")) if (page.parent.name, page.stem) not in PARTS]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_a_page_is_known_by_its_marks(page: Path) -> None:
    found = guesses(HtmlResponse(f"http://garden.example/board/{page.name}", body=page.read_bytes()))
    assert page.parent.name in (found[0].profile, recognise(HtmlResponse(BOARD, body=page.read_bytes())).html_profile)
    assert found[0].base_url in ("http://garden.example", "http://garden.example/board")


MADE = {
    "class": '<p class="{}">x</p>', "id": '<p id="{}">x</p>', "data": '<p {}="1">x</p>', "field": '<input name="{}">',
    "credit": '<a href="https://www.{}/">x</a>',
}  # fmt: skip
PLAIN = {
    name: plain
    for name in profile_names()
    for marks in [Recognise.model_validate(profile_table(name).get("recognise", {}))]
    if (
        plain := [
            mark
            for mark in (*marks.signatures, *marks.hints)
            if mark.split()[0] in MADE and not set(mark.partition(" ")[2]) & set("\\()[]|?*+^$")
        ]
    )
}


def page(body: str, url: str = "https://f.example/t/1", **headers: str) -> HtmlResponse:
    return HtmlResponse(url, body=f"<html><body>{body}</body></html>".encode(), headers=headers)


@pytest.mark.parametrize("profile", PLAIN)
def test_one_mark_decides_nothing(profile: str) -> None:
    for mark in PLAIN[profile]:
        kind, _, value = mark.partition(" ")
        found = recognise(page(MADE[kind].format(value.replace("#", "1"))))
        assert (found.software, found.profile) == (None, None), mark
        assert mark in found.marks or profile_table(profile)["recognise"].get("requires"), f"{mark} itself is seen"
        assert found.score < SURE, mark


@pytest.mark.parametrize(
    "body",
    [
        """<script src="/b.js" data-cf-beacon='{"version":"2024.11.0","token":"x"}'></script><div class="post">hello</div>""",
        "<div class=post>I moved from MyBB to phpBB: forumdisplay.php?fid=2 and my_post_key, Powered by MyBB</div>",
        "<pre>&lt;html id=&quot;XF&quot; data-xf-init&gt; &lt;div class=&quot;structItem p-body message&quot;&gt;</pre>",
        '<div class=post><a href="https://other.example/viewtopic.php?t=1">a</a> <a href="https://www.phpbb.com/">phpBB</a></div>',
        "<div class=post>meta name=generator content=vBulletin 4.2.5</div>",
        "<div class=topic_content><p>mine</p></div><div class=reply_content><p>yours</p></div>",
        '<table class=forumline><tr class=row1><td class=gensmall><a class=genmed href="/posts/list/1.page">another</a></table>',
        '<!-- wordpress --><div id="content" class="message post body"><a href="/topic/1">a</a><a href="/forum/2">b</a></div>',
        "",
    ],
)
def test_what_people_wrote_names_no_software(body: str) -> None:
    assert recognise(page(body)).software is None
    assert guesses(page(body)) == []


def test_a_page_that_two_softwares_may_have_made_is_of_neither() -> None:
    phpbb = '<div id="phpbb" class="topiclist forumtitle topictitle"></div>'
    xenforo = '<div data-xf-init="x" class="structItem p-body"><input name="_xfToken"></div>'
    assert recognise(page(phpbb)).software == "phpBB"
    assert recognise(page(xenforo)).software == "XenForo"
    both = recognise(page(phpbb + xenforo))
    assert (both.software, both.html_profile) == (None, None)


@pytest.mark.parametrize(
    "body",
    [
        "<script>var to = {douban: 'http://share.example/to', weibo: ''}</script><li data-cid=7><div class=olt>x</div>",
        "<link rel=stylesheet href=/wp-content/plugins/bbpress/a.css><link rel=stylesheet href=/wp-includes/b.css>",
        "<script src=/django-mailman3/a.js></script><script src=/hyperkitty/a.js></script>",
        "<script src=https://cdn.sstatic.net/a.js></script><div class=post-layout></div><a href=https://stackoverflow.com/>x</a>",
    ],
    ids=["buttons to share a page", "an add-on of a blog", "assets alone", "the blog of the same people"],
)
def test_what_others_have_too_names_no_software(body: str) -> None:
    assert recognise(page(body)).software is None


def test_how_sure_it_is() -> None:
    little = recognise(page('<div id="phpbb"></div><p class="forumtitle"></p>'))
    much = recognise(
        page('<div id="phpbb" class="forumtitle topictitle postprofile"></div><a href="https://www.phpbb.com">p</a>')
    )
    assert SURE <= little.score < much.score < 1
    assert little.marks == ("id phpbb", "class forumtitle")


def test_the_version_is_read_where_the_page_names_it() -> None:
    html = '<html id="vbulletin_html"><head><meta name="generator" content="vBulletin 4.2.5"></head><body></body></html>'
    found = recognise(HtmlResponse("https://f.example/", body=html.encode()))
    assert (found.software, found.version, found.profile) == ("vBulletin", "4.2.5", "vbulletin4")


@pytest.mark.parametrize("body", [b"", b"\x00\xff", b"<", b"<html>" + b"<b>" * 3000, b'<a href="http://[">x</a>'])
def test_a_broken_page_has_no_marks(body: bytes) -> None:
    assert recognise(HtmlResponse("https://f.example/", body=body)).software is None


@pytest.mark.parametrize("mark", ["structItem", "colour red", "class", "class ("])
def test_a_mark_that_cannot_be_looked_for_is_refused(mark: str) -> None:
    with pytest.raises(ValueError, match=r"must be a kind and a regular expression|is not a regular expression"):
        Recognise(hints=(mark,))


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
                  obey_robots=False)  # fmt: skip
    (tmp_path / "s.toml").write_text(text_of(draft))
    site = load_site("s")
    assert site.forums == ("7", "8")
    assert site.profile == (profile or "generic")
    assert site.politeness.obey_robots is False


@pytest.mark.parametrize(
    ("written", "base"),
    [
        ("/board", "https://books.example/board"),
        ("http://books.example/board", "https://books.example/board"),
        ("http://169.254.169.254/latest", "https://books.example"),
        ("//other.example/board", "https://books.example"),
        ("https://books.example@other.example/", "https://books.example"),
    ],
)
def test_a_page_chooses_no_other_host_for_its_site(written: str, base: str) -> None:
    page = f'<meta name="generator" content="Discourse 3.2"><meta name="discourse-base-uri" content="{written}">'
    response = HtmlResponse("https://books.example/", body=page.encode(), encoding="utf-8")
    (guess,) = [one for one in guesses(response) if one.profile == "discourse"]
    assert guess.base_url == base
