"""A site file that reads its site wrongly does not pass `trawl sites check --live`: right files, changed in fifty ways."""

from __future__ import annotations

import asyncio
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from scrapy.http import HtmlResponse, TextResponse

from forum_reader import FetchedPage, draft_site
from forum_reader.definition import load
from forum_reader.definition.load import site_of
from forum_reader.definition.page_requests import PageRequest
from forums.sites.check import Trial, TriedPage
from forums.sites.http.fetch import Visitor
from tests.support.backward_forums import BACKWARDS
from tests.support.unknown_forums import FORUMS, UnknownForum

BASE = "http://forum.example"
ALL = {**FORUMS, **BACKWARDS}


@cache
def forum(name: str) -> UnknownForum:
    return ALL[name]()


@cache
def right(name: str) -> str:
    """Return the text of the file that `trawl sites new` writes."""

    def fetch(page: PageRequest) -> FetchedPage:
        text = forum(name).page(page.url.removeprefix(BASE))
        headers = [("Date", "Sun, 22 Nov 2026 12:00:00 GMT")]
        return FetchedPage(page.url, (text or "").encode(), status=200 if text else 404, headers=headers)

    return draft_site(f"{BASE}/", fetch=fetch, name="mine")


class Stored(Visitor):
    """Pages without a server."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._forum = forum(name)

    async def get(self, url: str | PageRequest) -> TextResponse:
        address = url if isinstance(url, str) else url.url
        found = self._forum.page(address.removeprefix(BASE))
        headers = {"Date": "Sun, 22 Nov 2026 12:00:00 GMT", "Content-Type": "text/html; charset=utf-8"}
        return HtmlResponse(address, status=200 if found else 404, body=(found or "nothing").encode(), headers=headers)


def tried(name: str, table: dict[str, Any]) -> list[TriedPage]:
    site = site_of(load.read(Path("mine.toml"), table))
    return asyncio.run(Trial(site, Stored(name)).run(None, None))


@pytest.mark.parametrize("name", ALL)
def test_a_right_file_passes(name: str) -> None:
    assert [(page.kind, page.problem) for page in tried(name, tomllib.loads(right(name))) if page.problem] == []


TABLES: list[tuple[str, Any]] = [
    # The key, and its wrong value; None removes it.
    ("list.rows", "#threads > tr:has(td):first-child"),
    ("list.rows", "#threads > tr:nth-child(-n+4)"),
    ("list.rows", "#threads td"),
    ("list.rows", "#threads"),
    ("list.next", None),
    ("list.next", "a.none"),
    ("list.next", "a"),
    ("list.url", "/show.cgi?thread={forum}"),
    ("list.url", "/"),
    ("list.fields.id.regex", "board=([^&]+)"),
    ("list.fields.id.regex", "(thread)="),
    ("list.fields.id.regex", "thread=(\\d)"),
    ("list.fields.id.select", "./td[2]//@href"),
    ("list.fields.id.select", "./td[3]"),
    ("list.fields.title", "./td[2]/a[1]"),
    ("list.fields.title", "./td[4]"),
    ("list.fields.title", "./td[3]"),
    ("list.fields.reply_count", "./td[4]"),
    ("list.fields.reply_count", "./td[1]/a[1]/@href"),
    ("list.fields.last_activity", "./td[1]"),
    ("list.fields", {"id": {"select": "./td[1]/a[1]/@href", "regex": "thread=([^/?&=;#]+)"}, "title": "./td[1]/a[1]"}),
    ("comments.url", "/show.cgi?board={thread}"),
    ("comments.url", "/show.cgi?board=garden"),
    ("comments.url", "/"),
    ("comments.rows", "tr.head:nth-of-type(1)"),
    ("comments.rows", "tr.head:nth-of-type(-n+5)"),
    ("comments.rows", "table"),
    ("comments.rows", "td"),
    ("comments.rows", "h1"),
    ("comments.next", None),
    ("comments.next", "a.none"),
    ("comments.next", "a"),
    ("comments.next", "a[href*=board]"),
    ("comments.fields.id.select", "./td[1]"),
    ("comments.fields.id.regex", "(\\d)"),
    ("comments.fields.id.regex", "^(\\d\\d)"),
    ("comments.fields.id.regex", "(\\w\\w)"),
    ("comments.fields.body", "./td[1]"),
    ("comments.fields.body", "./td[2]"),
    ("comments.fields.body", "//h1"),
    ("comments.fields.body", "//body"),
    ("comments.fields.body", ".none"),
    ("comments.fields.body", "//table"),
    ("comments.fields.body", "//tr[@class='head'][1]/following-sibling::*[1]/td[1]"),
    ("comments.fields.author", "./td[2]"),
    ("comments.fields.author", ".none"),
    ("comments.fields.author", "//h1"),
    ("comments.fields.author", "./following-sibling::*[1]/self::tr/td[1]"),
    ("comments.fields.created_at", "./td[1]"),
    ("comments.fields.created_at", ".none"),
    ("comments.fields.created_at", "./following-sibling::*[1]/self::tr/td[1]"),
    ("comments.fields.created_at", "//tr[@class='head'][1]/td[2]"),
]


OTHERS: list[tuple[str, str, Any]] = [
    ("tables", "comments.rows", "tr.head:nth-of-type(n+2)"),
    ("tables", "comments.repeats_post", True),
    ("tables", "comments.order", "newest"),
    ("tables", "list.rows", "#threads > tr:has(td):nth-of-type(odd)"),
    ("tables", "list.fields.reply_count", {"select": "./td[3]", "add": 20}),
    ("tables", "comments.post.body", "h1"),
    ("tables", "comments.post.author", "h1"),
    ("tables", "comments.fields.body", {"select": "./following-sibling::*[1]/self::tr/td[1]", "regex": "^(.{1,25})"}),
    ("hex", "comments.first_is_post", False),
    ("hex", "comments.rows", "div.box:nth-of-type(n+2)"),
    ("hex", "comments.fields.body", "."),
    ("hex", "comments.repeats_post", True),
    ("hex", "comments.order", "newest"),
    ("hex", "comments.post.author", "h1"),
    ("hex", "comments.post.title", "b.nick"),
    ("hex", "list.rows", "div.entry:nth-of-type(odd)"),
    ("hex", "list.fields.reply_count", "time"),
    ("definitions", "comments.order", "newest"),
    ("definitions", "comments.repeats_post", True),
    ("definitions", "comments.post.author", "h1"),
    ("definitions", "list.fields.reply_count", {"select": "./following-sibling::*[1]/self::dd", "add": 20}),
    ("lists", "comments.fields.body", "."),
    ("lists", "comments.first_is_post", False),
    ("lists", "comments.rows", "li.post:nth-of-type(n+2)"),
    ("lists", "comments.fields.author", {"select": "span.user", "regex": "(\\w)"}),
    ("lists", "comments.fields.id", "(string(count(./preceding-sibling::*)))"),
    ("lists", "list.fields.title", {"select": "a.title", "regex": "(\\w+)"}),
    ("plain", "comments.first_is_post", False),
    ("plain", "comments.rows", "div > div:nth-of-type(n+2)"),
    ("plain", "comments.order", "newest"),
    ("plain", "comments.fields.body", "."),
    ("marked", "comments.first_is_post", True),
    ("marked", "comments.fields.body", "."),
    ("marked", "comments.post.author", "h1"),
    ("blog", "comments.fields.body", "cite.author"),
    ("blog", "comments.fields.author", "time"),
    ("blog", "comments.fields.author", "div.words"),
    ("blog", "comments.fields.created_at", {"select": "time", "regex": "(\\d{4})"}),
    ("blog", "comments.fields.body", {"select": "div.words", "regex": "(\\w+)"}),
    ("blog", "list.fields.reply_count", {"select": "p.meta", "add": 20}),
    ("tables-newest", "comments.order", None),
    ("hex-newest", "comments.order", None),
]


def changed(name: str, key: str, value: Any) -> dict[str, Any]:
    table = tomllib.loads(right(name))
    *parts, last = key.split(".")
    inner = table["pages"]
    for part in parts:
        inner = inner[part]
    assert inner.get(last) != value
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return table


def test_there_are_fifty() -> None:
    assert len(TABLES) >= 50
    assert len({repr(one) for one in TABLES}) == len(TABLES)


@pytest.mark.parametrize(("name", "key", "value"), [*(("tables", *one) for one in TABLES), *OTHERS])
def test_a_wrong_file_does_not_pass(name: str, key: str, value: Any) -> None:
    pages = tried(name, changed(name, key, value))
    assert [page.problem for page in pages if page.problem], [(page.kind, page.rows, page.what) for page in pages]
