"""A page that is broken, or made to hurt, costs at most itself."""

from __future__ import annotations

import pytest
from scrapy.http import HtmlResponse, Request, TextResponse

from forum_reader.page import soft_block
from forum_reader.reading.page_records import CommentsPage, ListPage
from forum_reader.reading.read_page import read_comments, read_list
from forums.sites import Site, UnreadablePage
from forums.sites.load import load_file
from tests.support.cpu_time import least_cpu_s

URL = "http://forum.example/x"
SITE = """
base_url = "http://forum.example"
forums = ["f"]
[pages.list]
url = "/l/{forum}"
format = "json"
rows = "threads"
fields = { id = "id", url = "url", reply_count = "replies", last_activity = "last", title = "title" }
[pages.comments]
url = "/t/{thread}"
rows = ".post"
nested = true
[pages.comments.fields]
id = "./@id"
body = ".body"
author = { select = ".author", regex = '^(?:x+x+)+y' }
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    file = tmp_path_factory.mktemp("sites") / "s.toml"
    file.write_text(SITE)
    return load_file(file)


def listed(site: Site, body: str | bytes) -> ListPage:
    return read_list(site, TextResponse(URL, body=body, encoding="utf-8"), "f")


def commented(site: Site, body: str) -> CommentsPage:
    return read_comments(site, HtmlResponse(URL, body=body, encoding="utf-8"), "1", 2)


@pytest.mark.parametrize(
    ("row", "field", "value"),
    [
        (rb'"title": "x\u0000y\\u0000"', "title", r"xy\u0000"),
        (rb'"title": "\ud83d half"', "title", "? half"),
        (b'"title": "caf\xe9"', "title", "caf\ufffd"),
        (b'"replies": 1e999', "reply_count", None),
        (b'"replies": NaN', "reply_count", None),
        (b'"replies": 1' + b"0" * 400, "reply_count", None),
        (b'"replies": "9' + b"0" * 400 + b' M"', "reply_count", None),
        (b'"replies": 9223372036854775807', "reply_count", 2**63 - 1),
        (b'"last": "' + b"1 jan " * 2000 + b'"', "last_activity", None),
        (b'"last": 1e300', "last_activity", None),
        (b'"url": "http://forum.example:99999/"', "url", None),
        (b'"url": "/' + b"a" * 3000 + b'"', "url", None),
    ],
)
def test_a_value_that_cannot_be_costs_no_more_than_its_field(site: Site, row: bytes, field: str, value: object) -> None:
    (thread,) = listed(site, b'{"threads": [{"id": 7, ' + row + b"}]}").threads
    assert (thread.id, getattr(thread, field)) == ("7", value)


def test_a_row_whose_id_no_key_can_hold_is_left_out(site: Site) -> None:
    found = listed(site, '{"threads": [{"id": "%s"}, {"id": "b"}]}' % ("a" * 5000))
    assert [thread.id for thread in found.threads] == ["b"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('{"threads": ' + "[" * 100_000 + "]" * 100_000 + "}", "no JSON"),
        ('{"threads": [' + ",".join(["{}"] * 10_001) + "]}", "10,001 rows"),
    ],
    ids=["nested too deep", "too many rows"],
)
def test_json_out_of_bounds_is_refused(site: Site, body: str, reason: str) -> None:
    with pytest.raises(UnreadablePage, match=reason):
        listed(site, body)


def test_html_out_of_bounds_is_refused(site: Site) -> None:
    with pytest.raises(UnreadablePage, match="elements"):
        commented(site, "<p>" * 200_001)


def test_an_expression_that_does_not_come_to_an_end_is_named(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forum_reader.reading.parse_body.REGEX_S", 0.05)
    page = f'<div class="post" id="p1"><b class="author">{"x" * 5000}</b></div>'
    with pytest.raises(UnreadablePage, match=r"regular expression \^\(\?:x\+x\+\)\+y does not come to an end"):
        commented(site, page)


def test_rows_within_rows_are_read_in_time_that_grows_with_the_page(site: Site) -> None:
    deep = "".join(f'<div class="post" id="p{place}"><!-- x --><p class="body">{place}</p>and' for place in range(600))
    pages: list[CommentsPage] = []
    assert least_cpu_s(lambda: pages.append(commented(site, deep)), 2) < 2
    found = pages[0].comments
    assert [(one.id, one.parent_id, one.body) for one in found[:2]] == [("p0", None, "0"), ("p1", "p0", "1")]
    assert len(found) == 600


@pytest.mark.parametrize("tags", [b"<" * 190_000, b"<script " * 20_000, b"<script>" * 20_000, b"<input " * 25_000])
@pytest.mark.parametrize("marker", [b"anubis_challenge", b"_cf_chl_opt", b"_Incapsula_Resource", b"<title>Log in</title>"])
def test_a_page_of_tags_is_judged_at_once(marker: bytes, tags: bytes) -> None:
    response = HtmlResponse(URL, body=b"<html>" + marker + tags, request=Request(URL), status=401)
    found: list[object] = []
    assert least_cpu_s(lambda: found.append(soft_block.verdict(response)), 1) < 1
    assert found[0] is not None
