"""A site file from an address, by a fetching function of the caller."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from forum_reader import FetchedPage, draft_site, read_page
from forum_reader.definition import load
from forum_reader.definition.load import site_of
from forum_reader.definition.page_requests import PageRequest
from forum_reader.errors import AnotherHost, NoForum, ReaderError, SiteError
from forum_reader.reading.read_page import read_list
from tests.support.unknown_forums import FORUMS

BASE = "http://forum.example"


def test_a_forum_is_drafted_by_a_function_of_the_caller() -> None:
    forum = FORUMS["tables"]()

    def fetch(page: PageRequest) -> FetchedPage:
        text = forum.page(page.url.removeprefix(BASE))
        return FetchedPage(page.url, (text or "").encode(), status=200 if text else 404)

    site = site_of(load.read(Path("mine.toml"), tomllib.loads(draft_site(f"{BASE}/", fetch=fetch, name="mine"))))
    for board in site.forums:
        url = site.list_url(board)
        listed = read_list(site, fetch(PageRequest(url=url)), board)
        assert listed.threads
        assert {one.title for one in listed.threads} <= {one.title for one in forum.threads}
    thread = forum.threads[0]
    address = site.url("comments", thread=thread.id, forum=site.forums[0])
    page = read_page(fetch(PageRequest(url=address)).text, address)
    assert [post.author for post in page.posts] == [post.author for post in thread.posts][: len(page.posts)]


def test_what_is_no_forum_is_one_error_that_names_the_address() -> None:
    def fetch(page: PageRequest) -> FetchedPage:
        return FetchedPage(page.url, b"<html><body><p>hello</p></body></html>")

    with pytest.raises(NoForum, match=f"{BASE}/: no forum was found"):
        draft_site(f"{BASE}/", fetch=fetch)
    with pytest.raises(SiteError, match="profile 'phpbbb' is unknown: profiles are "):
        draft_site(f"{BASE}/", fetch=fetch, profile="phpbbb")
    with pytest.raises(AnotherHost, match=r"leads to another host, http://other\.example/"):
        draft_site(f"{BASE}/", fetch=lambda _: FetchedPage("http://other.example/", b"<p>x"))
    with pytest.raises(ReaderError, match="answers with status 404"):
        draft_site(f"{BASE}/", fetch=lambda page: FetchedPage(page.url, b"", status=404))
