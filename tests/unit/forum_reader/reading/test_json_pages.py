"""JSON that is not alone: in a script of an HTML page, in another encoding, behind a header."""

from __future__ import annotations

from pathlib import Path

import pytest
from scrapy.http import HtmlResponse, TextResponse

from forum_reader.reading.read_page import read_list
from forums.sites import Site, UnreadablePage, load_site

SITE = """
profile = "generic"
base_url = "https://f.example"
forums = ["1"]
[pages.list]
url = "/f/{forum}?page={page}"
format = "json"
rows = "data.threads"
pages = "data.pages"
headers = { X-Requested-With = "XMLHttpRequest" }
next = false
[pages.list.fields]
id = "id"
title = "title"
url = false
reply_count = false
last_activity = false
author = false
created_at = false
sticky = false
token = false
"""
DATA = '{"data": {"pages": 2, "threads": [{"id": 7, "title": "蛞蝓"}]}}'


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Site:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    more = getattr(request, "param", "")
    (tmp_path / "f.toml").write_text(SITE.replace('rows = "data', f'{more}\nrows = "data'))
    return load_site("f")


@pytest.mark.parametrize("site", ['json_at = "script#state"'], indirect=True)
def test_json_within_html_is_read_as_if_it_had_come_alone(site: Site) -> None:
    scripts = f'<script>var a = {{}}</script><script id="state" type="application/json">{DATA}</script>'
    page = HtmlResponse("https://f.example/f/1?page=1", body=f"<html><body>{scripts}</body></html>".encode())
    found = read_list(site, page, "1")
    assert [(one.id, one.title) for one in found.threads] == [("7", "蛞蝓")]
    assert found.next == "https://f.example/f/1?page=2"
    for state in ("", '<script id="state">not JSON</script>'):
        empty = HtmlResponse("https://f.example/f/1", body=f"<html><body>{state}</body></html>".encode())
        with pytest.raises(UnreadablePage, match=r"has no JSON at script#state"):
            read_list(site, empty, "1")


def test_json_in_the_encoding_that_its_page_names_is_read(site: Site) -> None:
    for encoding, named in (("gbk", "GBK"), ("utf-8", "GBK"), ("utf-8", "iso-8859-1")):
        headers = {"Content-Type": f"application/json; charset={named}"}
        page = TextResponse("https://f.example/f/1?page=1", body=DATA.encode(encoding), headers=headers)
        assert [one.title for one in read_list(site, page, "1").threads] == ["蛞蝓"], (encoding, named)


def test_a_kind_of_page_may_be_asked_for_with_headers(site: Site) -> None:
    assert site.asking("list", "https://f.example/f/1").headers == {"X-Requested-With": "XMLHttpRequest"}
    assert site.asking("comments", "https://f.example/t/1").headers == {}
