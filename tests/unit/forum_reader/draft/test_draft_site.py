"""A site file from an address alone: by a fetching function of the caller, and by the one of the standard library."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from forum_reader import FetchedPage, draft_site, read_page
from forum_reader.definition import load
from forum_reader.definition.load import site_of
from forum_reader.definition.page_requests import PageRequest
from forum_reader.draft import draft_site as plain_fetch
from forum_reader.draft.draft_site import PlainFetch
from forum_reader.errors import AnotherHost, FetchFailed, NoForum, ReaderError, SiteError
from forum_reader.reading.read_page import read_list
from tests.support.unknown_forums import FORUMS
from tests.support.watched_site import Page, WatchedSite

BASE = "http://forum.example"


@pytest.fixture
def server() -> Iterator[WatchedSite]:
    with WatchedSite() as site:
        yield site


def get(url: str) -> FetchedPage:
    found = PlainFetch(delay_s=0).get(PageRequest(url=url))
    assert isinstance(found, FetchedPage)
    return found


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


def test_a_forum_is_drafted_from_its_address_alone(server: WatchedSite) -> None:
    forum = FORUMS["tables"]()
    server.answer = lambda path: Page(found) if (found := forum.page(path)) else Page("nothing", 404)
    text = draft_site(f"{server.url}/", fetch=PlainFetch(delay_s=0).get)
    asked = [path for path, _ in server.asked]
    assert asked[0] == "/robots.txt"
    assert asked.count("/robots.txt") == 1
    assert tomllib.loads(text)["base_url"] == server.url


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


def test_a_page_is_fetched_with_its_status_and_its_encoding(server: WatchedSite) -> None:
    server.pages = {
        "/old": Page("", 301, {"Location": "/new"}),
        "/new": Page("форум".encode("cp1251"), headers={"Content-Type": "text/html; charset=windows-1251"}),
        "/gone": Page("gone", 410, {"Retry-After": "7"}),
    }
    page = get(f"{server.url}/old")
    assert (page.url, page.status, page.text) == (f"{server.url}/new", 200, "форум")
    gone = get(f"{server.url}/gone")
    assert (gone.status, gone.body, gone.headers.get("retry-after")) == (410, b"gone", b"7")


def test_what_may_not_be_fetched_is_refused(server: WatchedSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_fetch, "MAX_BYTES", 40)
    server.pages = {
        "/robots.txt": Page("User-agent: *\nDisallow: /private"),
        "/large": Page("x" * 41),
        "/file": Page("", 302, {"Location": "ftp://127.0.0.1/etc/passwd"}),
    }
    for url, reason in (
        (f"{server.url}/private/1", "robots.txt forbids it"),
        (f"{server.url}/large", "larger than"),
        (f"{server.url}/file", "unknown url type: ftp"),
        ("file:///etc/passwd", "is not the URL of a web page"),
        ("http://127.0.0.1:1/", "refused"),
    ):
        with pytest.raises(FetchFailed, match=reason):
            get(url)
    assert "/private/1" not in [path for path, _ in server.asked]
    server.pages["/robots.txt"] = Page("", 503)
    with pytest.raises(FetchFailed, match=r"robots\.txt is answered with status 503: try again later"):
        get(f"{server.url}/new")
