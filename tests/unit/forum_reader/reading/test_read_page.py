"""Pages with the traps of real forums, read as a site file says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from scrapy.http import HtmlResponse, Response, TextResponse

from forum_reader.reading.read_page import read_comments, read_index, read_list, read_thread
from forums.sites import Site, UnreadablePage, load_site

MakeSite = Callable[[str], Site]
BASE = "http://forum.example"


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeSite:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))

    def site(text: str) -> Site:
        (tmp_path / "s.toml").write_text(f'base_url = "{BASE}"\nforums = ["f"]\n{text}')
        return load_site("s")

    return site


def api(value: object, url: str = f"{BASE}/x", **headers: str) -> TextResponse:
    return TextResponse(url, body=json.dumps(value).encode(), headers=headers)


def page(html: str, url: str = f"{BASE}/x", **headers: str) -> HtmlResponse:
    return HtmlResponse(url, body=html.encode(), encoding="utf-8", headers=headers)


JSON = """
[pages.list]
url = "/l/{forum}?page={page}"
format = "json"
rows = "threads"
fields = { id = "id", reply_count = "replies", last_activity = "last", title = "title" }
[pages.comments]
url = "/c/{thread}?page={page}"
format = "json"
rows = "posts"
per_page = 2
fields = { id = "id", body = "text" }
"""
HTML = """
[pages.list]
url = "/l/{forum}?page={page}"
rows = "li.thread"
[pages.list.fields]
id = { select = "a::attr(href)", regex = '/t/(\\d+)' }
title = "a"
sticky = "./self::li[contains(@class, 'pinned')]"
[pages.comments]
url = "/t/{thread}?page={page}"
rows = ".post"
first_is_post = true
[pages.comments.fields]
id = "./@id"
body = ".body"
"""


def test_numbers_as_strings_missing_values_and_repeated_rows_are_read(make: MakeSite) -> None:
    rows = [
        {"id": 7, "replies": "1,234", "last": 1795338000, "title": "  A\n title "},
        {"id": 7, "replies": 0},
        {"id": None},
        {"advertisement": True},
        {"id": "8", "replies": None, "last": None},
    ]
    found = read_list(make(JSON), api({"threads": rows}), "f")
    assert [(row.id, row.reply_count, row.title) for row in found.threads] == [("7", 1234, "A title"), ("8", None, None)]
    assert found.threads[0].token == "1234@2026-11-22T09:00:00+00:00"
    assert (found.fields["title"].rows, found.fields["title"].empty) == (5, 4)


def test_a_relative_date_is_no_token_where_a_number_is(make: MakeSite) -> None:
    at_noon = {"Date": "Sun, 22 Nov 2026 12:00:00 GMT"}
    rows = [{"id": 1, "replies": 3, "last": "2 hours ago"}, {"id": 2, "last": "2 hours ago"}]
    one, other = read_list(make(JSON), api({"threads": rows}, **at_noon), "f").threads
    assert (one.token, other.token) == ("3@", "None@2026-11-22T10:00:00+00:00"), "a page that is read again later says the same"


@pytest.mark.parametrize(
    ("keys", "body", "number", "following"),
    [
        ("", {"threads": [{"id": 1}]}, 1, 2),
        ("", {"threads": []}, 2, None),
        ('pages = "n"', {"threads": [{"id": 1}], "n": "3"}, 2, 3),
        ('pages = "n"', {"threads": [{"id": 1}], "n": 3}, 3, None),
        ('pages = "n"', {"threads": [{"id": 1}]}, 1, None),
        ('total = "n"\nper_page = 2', {"threads": [{"id": 1}, {"id": 2}], "n": 3}, 1, 2),
        ('total = "n"\nper_page = 2', {"threads": [{"id": 3}], "n": 3}, 2, None),
        ('ends = "short"\nper_page = 2', {"threads": [{"id": 1}]}, 1, None),
        ('ends = "short"\nper_page = 2', {"threads": [{"id": 1}, {"id": 2}]}, 1, 2),
        ('has_more = "more"', {"threads": [{"id": 1}], "more": "true"}, 1, 2),
        ('has_more = "more"', {"threads": [{"id": 1}], "more": 0}, 1, None),
        ('current = "page"', {"threads": [{"id": 1}], "page": 4}, 5, None),
    ],
)
def test_the_next_page_by_number(make: MakeSite, keys: str, body: object, number: int, following: int | None) -> None:
    site = make(JSON.replace('rows = "threads"', f'rows = "threads"\n{keys}'))
    found = read_list(site, api(body), "f", number)
    assert found.next == (f"{BASE}/l/f?page={following}" if following else None)
    assert "current" not in keys or not found.threads


def test_the_next_page_by_cursor_and_by_offset(make: MakeSite) -> None:
    site = make(JSON.replace("?page={page}", "?after={cursor}", 1).replace('rows = "threads"', 'rows = "threads"\ncursor = "c"'))
    assert read_list(site, api({"threads": [{"id": 1}], "c": "a/b="}), "f").next == f"{BASE}/l/f?after=a%2Fb%3D"
    assert read_list(site, api({"threads": [{"id": 1}], "c": None}), "f").next is None
    assert read_list(site, api({"threads": [], "c": "x"}), "f").next is None
    site = make(
        JSON.replace("?page={page}", "?from={offset}&n={per_page}").replace("[pages.comments]", "per_page = 30\n[pages.comments]")
    )
    assert read_list(site, api({"threads": [{"id": 1}]}), "f", 2).next == f"{BASE}/l/f?from=60&n=30"
    assert site.list_url("f") == f"{BASE}/l/f?from=0&n=30"


@pytest.mark.parametrize(
    ("keys", "more", "rows", "goes_on"),
    [
        ('ends = "short"\nper_page = 2', None, 1, False),
        ('ends = "short"\nper_page = 2', None, 2, True),
        ('has_more = "more"', False, 2, False),
        ('has_more = "more"', True, 1, True),
        ("", None, 1, True),
    ],
)
def test_a_cursor_of_a_last_page_is_not_followed(make: MakeSite, keys: str, more: bool | None, rows: int, goes_on: bool) -> None:
    """Services with a cursor on each page would cost a request more for each thread."""
    by_cursor = JSON.replace("?page={page}", "?after={cursor}", 1)
    site = make(by_cursor.replace('rows = "threads"', f'rows = "threads"\ncursor = "c"\n{keys}'))
    found = read_list(site, api({"threads": [{"id": n} for n in range(rows)], "c": "x", "more": more}), "f")
    assert (found.next is not None) is goes_on


@pytest.mark.parametrize(
    ("link", "following"),
    [
        ('<a class="n" href="?page=2">', f"{BASE}/l/f?page=2"),
        ('<a class="n" href="?page=2#top">', f"{BASE}/l/f?page=2"),
        ('<a class="n" href="#">', None),
        ('<a class="n" href="javascript:;">', None),
        ('<a class="n" href="/l/f?page=1#x">', None),
        ('<base href="http://cdn.example/b/"><a class="n" href="p2">', "http://cdn.example/b/p2"),
        ("", None),
    ],
)
def test_the_next_page_by_link(make: MakeSite, link: str, following: str | None) -> None:
    site = make(HTML.replace('rows = "li.thread"', 'rows = "li.thread"\nnext = "a.n"'))
    assert read_list(site, page(link + '<li class="thread"><a href="/t/1">x</a>', f"{BASE}/l/f?page=1"), "f").next == following


def test_pinned_threads_and_titles_with_markup(make: MakeSite) -> None:
    html = '<ul><li class="thread pinned"><a href="/t/1">Tom &amp; <b>Jerry</b></a><li class="thread"><a href="/t/2">x</a></ul>'
    one, other = read_list(make(HTML), page(html), "f").threads
    assert (one.id, one.title, one.sticky, other.sticky) == ("1", "Tom & Jerry", True, False)


def test_the_first_row_is_the_opening_post_of_the_first_page_alone(make: MakeSite) -> None:
    site = make(HTML.replace("first_is_post = true", 'first_is_post = true\nper_page = 2\npost = { title = "h1" }'))
    rows = (
        '<h1>Title</h1><div class="post" id="p1"><div class="body">a<br>b</div></div>'
        '<div class="post" id="p2"><p class="body">c</p></div>'
    )
    first = read_comments(site, page(rows), "77", 1)
    assert first.post is not None
    assert (first.post.id, first.post.title, first.post.body, first.post.body_html) == ("77", "Title", "a\nb", "a<br>b")
    assert [(one.id, one.body, one.position) for one in first.comments] == [("p2", "c", 1)]
    second = read_comments(site, page(rows.replace("p1", "p3").replace("p2", "p4")), "77", 2)
    assert second.post is None
    assert [(one.id, one.position) for one in second.comments] == [("p3", 2), ("p4", 3)]


def test_comments_nested_in_html_have_their_own_fields(make: MakeSite) -> None:
    site = make(HTML.replace("first_is_post = true", "nested = true") + 'author = ".author"\n')
    html = (
        '<div class="post" id="1"><p class="body">one</p>'
        '<div class="post" id="2"><p class="author">ann</p><p class="body">two</p><div class="post" id="3"></div></div></div>'
        '<div class="post" id="4"><p class="body">four</p></div>'
    )
    found = read_comments(site, page(html), "77").comments
    assert [(one.id, one.parent_id, one.author, one.body) for one in found] == [
        ("1", None, None, "one"), ("2", "1", "ann", "two"), ("3", "2", None, ""), ("4", None, None, "four")
    ]  # fmt: skip


def test_comments_nested_in_json_are_read_however_deep(make: MakeSite) -> None:
    site = make(JSON.replace("per_page = 2", 'children = "kids"'))
    deep: dict[str, object] = {"id": 900, "text": "deepest"}
    for number in range(400, 0, -1):
        deep = {"id": number, "text": "x", "kids": [None, deep]}
    found = read_comments(site, api({"posts": [deep, {"id": 1000, "text": "y", "kids": {}}]}), "77").comments
    assert [one.id for one in found] == [*map(str, range(1, 401)), "900", "1000"]
    assert (found[0].parent_id, found[1].parent_id, found[-1].parent_id) == (None, "1", None)


def test_what_json_refers_to_is_looked_up(make: MakeSite) -> None:
    author = """{ select = "user.id", lookup = "included[?type=='users']", value = "attributes.name" }"""
    site = make(JSON.replace('body = "text"', f'body = "text", author = {author}'))
    body = {
        "posts": [{"id": 1, "text": "t", "user": {"id": 5}}, {"id": 2, "text": "t", "user": {"id": 6}}, {"id": 3, "text": "t"}],
        "included": [
            {"type": "groups", "id": 5, "attributes": {"name": "g"}},
            {"type": "users", "id": "5", "attributes": {"name": "ann"}},
        ],
    }
    assert [one.author for one in read_comments(site, api(body), "77").comments] == ["ann", None, None]


def test_html_in_json_and_escaped_titles(make: MakeSite) -> None:
    site = make(
        JSON.replace('body = "text"', 'body = { select = "text", as = "html" }').replace(
            'title = "title"', 'title = { select = "title", as = "html" }'
        )
    )
    post = read_comments(site, api({"posts": [{"id": 1, "text": "<p>a &lt;b</p><p>c</p>"}]}), "7").comments[0]
    assert (post.body, post.body_html) == ("a <b\n\nc", "<p>a &lt;b</p><p>c</p>")
    assert read_list(site, api({"threads": [{"id": 1, "title": "Tom &amp; Jerry"}]}), "f").threads[0].title == "Tom & Jerry"


def test_what_is_cut_out_is_in_neither_form(make: MakeSite) -> None:
    site = make(HTML.replace('body = ".body"', 'body = { select = ".body", remove = ".signature" }'))
    html = '<div class="post" id="1"><div class="body">a <i class="signature">s</i>b</div></div>'
    post = read_comments(site, page(html), "7").post
    assert post is not None
    assert (post.body, post.body_html) == ("a b", "a b")


@pytest.mark.parametrize(
    "without",
    [
        '[".quote", ".signature", "b:first-child"]',  # by an index of the page
        """[".//*[@class='quote']", ".//*[@class='signature']", ".//b[not(preceding-sibling::*)]"]""",
        """[".quote", ".//*[@class='signature']", "b:first-child"]""",
    ],
)
def test_what_is_cut_may_be_within_what_is_cut_and_in_a_row_within_a_row(make: MakeSite, without: str) -> None:
    site = make(HTML.replace('body = ".body"', f'body = {{ select = ".body", remove = {without} }}'))
    html = (
        '<div class="post" id="1"><div class="body">a <i class="quote">q <i class="signature">s</i> q</i>b <!-- c --><u>u'
        '<b>first</b> d</u><i class="signature">s <b>t</b></i> e</div>'
        '<div class="post" id="2"><div class="body"><b>first</b>f <i class="quote">q</i>g</div></div></div>'
    )
    found = read_comments(site, page(html), "7")
    assert found.post is not None
    assert [one.body for one in (found.post, *found.comments)] == ["a b u d e", "f g"]


def test_the_opening_post_on_each_page_is_no_comment(make: MakeSite) -> None:
    named = HTML.replace("[pages.comments.fields]", "per_page = 3\nrepeats_post = true\n[pages.comments.fields]", 1)
    site = make(named + 'parent_id = "./@data-to"\n')
    rows = [f'<p class="post" id="{n}" data-to="1"><b class="body">text {n}</b>' for n in range(1, 6)]
    first, second = page("".join(rows[:3])), page(rows[0] + "".join(rows[3:]))
    opening = read_comments(site, first, "7")
    assert opening.post is not None
    assert (opening.post.body, [(one.id, one.position) for one in opening.comments]) == ("text 1", [("2", 1), ("3", 2)])
    later = read_comments(site, second, "7", 2)
    assert later.post is None
    assert [(one.id, one.position, one.parent_id) for one in later.comments] == [("4", 3, None), ("5", 4, None)]


def test_a_removed_post_keeps_its_place(make: MakeSite) -> None:
    site = make(HTML + 'deleted = ".removed"\n')
    html = (
        '<p class="post" id="1"><b class="body">a</b><p class="post" id="2"><b class="removed">gone</b>'
        '<p class="post" id="3"><b class="body">c</b>'
    )
    assert [(one.id, one.body, one.deleted, one.position) for one in read_comments(site, page(html), "7").comments] == [
        ("2", "", True, 1), ("3", "c", False, 2)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "response", "reason"),
    [
        (JSON, page("<html>Please log in"), "no JSON: .* that begins with '<html>Please log in'"),
        (JSON, api({"error": "forbidden"}), "has no list of rows at threads"),
        (JSON, api([]), "has no list of rows"),
        (JSON, Response(BASE, body=b"\x89PNG", headers={"Content-Type": "image/png"}), "no text: image/png, 4 bytes"),
        (HTML, api({}, **{"Content-Type": "application/json"}), "no HTML: application/json"),
        (HTML.replace("rows", 'container = "#list"\nrows', 1), page("<form>"), "has no #list"),
        (HTML.replace("rows", 'block_page = ["form.login", "#captcha"]\nrows', 1), page('<form class="login">'), "a wall"),
    ],
)
def test_a_page_that_is_another_one_is_refused(make: MakeSite, text: str, response: Response, reason: str) -> None:
    with pytest.raises(UnreadablePage, match=reason):
        read_list(make(text), response, "f")


def test_a_thread_without_anything_of_it_is_refused(make: MakeSite) -> None:
    with pytest.raises(UnreadablePage, match=r"nothing of an opening post: looked for id = \./@id, body = \.body"):
        read_comments(make(HTML), page("<p>Nothing here"), "7")
    site = make(JSON + '[pages.thread]\nurl = "/t/{thread}"\nformat = "json"\nfields = { body = "text", title = "title" }\n')
    assert read_thread(site, api({"text": "a\n\nb", "title": None}), "7").post.body == "a\n\nb"
    with pytest.raises(UnreadablePage, match="nothing of an opening post"):
        read_thread(site, api({"error": "no such thread"}), "7")


def test_an_index_of_an_object_of_forums_and_of_bare_ids(make: MakeSite) -> None:
    index = '\n[pages.index]\nurl = "/i"\nformat = "json"\nrows = "f"\n'
    site = make(JSON + index + 'fields = { id = "id", name = "n" }\n')
    assert [(one.id, one.name) for one in read_index(site, api({"f": {"a": {"id": 1, "n": "One"}, "b": {"id": 2}}})).forums] == [
        ("1", "One"),
        ("2", "2"),
    ]
    site = make(JSON + index + 'fields = { id = "@" }\n')
    assert [one.id for one in read_index(site, api({"f": [3, 4]})).forums] == ["3", "4"]
