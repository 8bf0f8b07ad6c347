"""Boards that say with status 200 that a thread does not exist."""

from __future__ import annotations

from pathlib import Path

import pytest
from scrapy.http import HtmlResponse

from forum_reader.reading.read_page import read_comments
from forums.sites import PageGone, Site, UnreadablePage
from forums.sites.load import load_file

MESSAGES = {
    "discuz": '<div id="messagetext" class="alert_error"><p>抱歉，指定的主题不存在或已被删除或正在被审核</p></div>',
    "flaskbb": "<title>None Unknown Error</title><h1>Unknown Error</h1><p>Could not load topic data</p>",
    "mybb": '<body><table><tr><td class="trow1">The specified thread does not exist.</td></tr></table></body>',
    "vbulletin4": '<body><div class="blockrow restore">Invalid Thread specified. If you followed a valid link …</div></body>',
}


def site_of(profile: str, folder: Path) -> Site:
    (folder / "s.toml").write_text(f'profile = "{profile}"\nbase_url = "http://garden.example"\nforums = ["2"]\n')
    return load_file(folder / "s.toml")


def page(body: str) -> HtmlResponse:
    return HtmlResponse("http://garden.example/t", body=body, encoding="utf-8")


@pytest.mark.parametrize("profile", MESSAGES)
def test_a_thread_that_does_not_exist_is_gone_and_not_unreadable(profile: str, tmp_path: Path) -> None:
    with pytest.raises(PageGone):
        read_comments(site_of(profile, tmp_path), page(MESSAGES[profile]), "41")


def test_a_page_of_something_else_is_no_thread_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(UnreadablePage) as caught:
        read_comments(site_of("flaskbb", tmp_path), page("<h1>Unknown Error</h1>"), "41")
    assert not isinstance(caught.value, PageGone)
