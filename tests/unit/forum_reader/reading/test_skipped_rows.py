"""`skip`: rows that are left out, by what they have within them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scrapy.http import HtmlResponse, TextResponse

from forum_reader.definition.site import Site
from forum_reader.reading.read_page import read_list
from forums.sites import SiteError
from forums.sites.load import load_file

_FILE = """
base_url = "https://forum.example"
forums = ["1"]
[pages.list]
url = "/f/{{forum}}"
format = "{form}"
rows = "{rows}"
skip = "{skip}"
[pages.list.fields]
id = "{id}"
[pages.comments]
url = "/t/{{thread}}"
rows = "article"
[pages.comments.fields]
id = "./@id"
body = "p"
"""


def _site(folder: Path, **values: str) -> Site:
    path = folder / "x.toml"
    path.write_text(_FILE.format(**values))
    return load_file(path)


@pytest.mark.parametrize("skip", [".ad", "./self::li[b]", "./b"])
def test_html_rows_with_what_is_skipped_are_no_threads(tmp_path: Path, skip: str) -> None:
    site = _site(tmp_path, form="html", rows="li", skip=skip, id="./@id")
    body = '<ul><li id="1">one</li><li id="2"><b class="ad">buy</b></li><li id="3">three</li></ul>'
    page = read_list(site, HtmlResponse("https://forum.example/f/1", body=body.encode()), "1")
    assert [thread.id for thread in page.threads] == ["1", "3"]


def test_json_rows_are_skipped_where_it_is_true(tmp_path: Path) -> None:
    site = _site(tmp_path, form="json", rows="rows", skip="promoted", id="id")
    rows = [{"id": "1"}, {"id": "2", "promoted": True}, {"id": "3", "promoted": False}, {"id": "4", "promoted": None}]
    page = read_list(site, TextResponse("https://forum.example/f/1", body=json.dumps({"rows": rows}).encode()), "1")
    assert [thread.id for thread in page.threads] == ["1", "3", "4"]


def test_a_skip_that_is_no_selector_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="skip"):
        _site(tmp_path, form="html", rows="li", skip="li[", id="./@id")
