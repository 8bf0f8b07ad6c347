"""A forum of unknown software, from any of its addresses to all of its posts: the file is written by what was learned and not
touched by hand.
"""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from email.utils import format_datetime
from pathlib import Path
from urllib.parse import urljoin

import pytest
from scrapy.http import HtmlResponse, TextResponse

from demo.forum.html_pages import HtmlPages
from demo.forum.words import Bodies
from demo.forum.world import Size, World
from forum_reader.definition.site import Politeness
from forum_reader.draft.draft_file import Draft, preview, text_of
from forum_reader.draft.explore import MOST_PAGES, Explorer
from forum_reader.draft.paging_links import recent_page
from forum_reader.draft.wrapper import Wrapper, wrapper_of
from forum_reader.reading.page_records import ReadComment, ReadPost
from forum_reader.reading.read_page import read_comments, read_index, read_list, read_recent
from forums.sites import Site, load_site
from forums.sites.http.fetch import Visitor
from tests.support import unknown_forums
from tests.support.backward_forums import BACKWARDS
from tests.support.nested_boards import NESTED, BoardsInBoards
from tests.support.newest_forum import Newest
from tests.support.unknown_forums import Thread, UnknownForum

FORUMS: dict[str, Callable[[], UnknownForum]] = {**unknown_forums.FORUMS, "newest": Newest, **BACKWARDS}
BASE = "http://forum.example"
DATE = {"Date": "Sun, 22 Nov 2026 12:00:00 GMT"}


class Stored(Visitor):
    """Pages without a server."""

    def __init__(self, page: Callable[[str], str | None]) -> None:
        super().__init__()
        self._page = page
        self.asked: list[str] = []

    async def get(self, url: str) -> TextResponse:
        return self.answer(url)

    def answer(self, url: str) -> TextResponse:
        self.asked.append(url)
        found = self._page(url.removeprefix(BASE))
        return HtmlResponse(url, status=200 if found else 404, body=(found or "nothing").encode(), encoding="utf-8", headers=DATE)


def learned(visitor: Stored, start: str) -> Wrapper:
    found = asyncio.run(Explorer(visitor.get).find(visitor.answer(BASE + start)))
    assert found is not None
    wrapper = wrapper_of(found)
    assert wrapper is not None
    return wrapper


def site_of(wrapper: Wrapper, folder: Path) -> Site:
    draft = Draft(
        name="x", profile=None, software="unknown", base_url=BASE, forums=wrapper.forums, can_discover="index" in wrapper.pages,
        wrapper=wrapper,
    )  # fmt: skip
    (folder / "x.toml").write_text(text_of(draft))
    return load_site("x")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    return tmp_path


def threads_of(site: Site, visitor: Stored, forum: str) -> list:
    rows, url, number = [], site.list_url(forum), 1
    while url:
        page = read_list(site, visitor.answer(url), forum, number)
        rows += page.threads
        url, number = page.next, number + 1
    return rows


def posts_of(site: Site, visitor: Stored, forum: str, thread: str, address: str | None) -> list[ReadPost | ReadComment]:
    """The opening post, then the comments, the oldest first."""
    opening: list[ReadPost | ReadComment] = []
    comments: list[ReadPost | ReadComment] = []
    url, number = site.url("comments", forum=forum, thread=thread, url=address), 1
    while url:
        page = read_comments(site, visitor.answer(url), thread, number, forum=forum, url=address)
        opening += [page.post] if page.post else []
        comments = [*comments, *page.comments] if site.pages.comments.order == "oldest" else [*page.comments, *comments]
        url, number = page.next, number + 1
    return [*opening, *comments]


def addresses(forum: UnknownForum) -> dict[str, str]:
    """Of an index, a board and a thread."""

    def links(path: str) -> list[str]:
        found = re.findall(r'<a (?:class="\w+" )?href="([^"#]*)', forum.page(path) or "")
        return ["/" + one.lstrip("/") for one in found if not re.search(r"^/?$|login|search|privacy|page=|user", one)]

    first = links("/")[0]
    is_board = len(forum.boards) > 1
    return {"index": "/", "board": first, "thread": links(first)[2]} if is_board else {"board": "/", "thread": first}


CASES = [(name, kind) for name, make in FORUMS.items() for kind in addresses(make())]


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_every_post_is_read_by_what_was_learned(name: str, kind: str, folder: Path) -> None:
    forum = FORUMS[name]()
    visitor = Stored(forum.page)
    wrapper = learned(visitor, addresses(forum)[kind])
    assert len(visitor.asked) <= MOST_PAGES
    site = site_of(wrapper, folder)
    assert (site.language, site.time_zone) == ("en-GB" if name.startswith("lists") else "en", "UTC"), "where the day stands first"
    if kind == "index":
        assert [one.id for one in read_index(site, visitor.answer(f"{BASE}/")).forums] == list(site.forums)
    ids: list[str | None] = []
    seen = 0
    for board in site.forums:
        for row in threads_of(site, visitor, board):
            thread = next(one for one in forum.threads if one.title == row.title)
            assert row.reply_count == len(thread.posts) - 1
            assert row.last_activity is not None
            assert row.last_activity.replace(second=0) == thread.last.at
            posts = posts_of(site, visitor, board, row.id, row.url)
            assert [(post.author, post.created_at, post.body) for post in posts] == [
                (p.author, p.at, p.text) for p in thread.posts
            ]
            assert getattr(posts[0], "title", None) == thread.title
            ids += [post.id for post in posts]
            seen += 1
    boards = forum.boards if kind == "index" else forum.boards[:1]
    assert seen == sum(len(forum.of_board(board)) for board in boards)
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", [name for name, make in FORUMS.items() if len(make().boards) > 1])
def test_a_thread_that_does_not_link_to_its_board(name: str) -> None:
    """Its board is found by the front page; all of its boards, where the list has another address of the thread."""
    forum = FORUMS[name]()
    known = addresses(forum)
    way_up = re.compile(rf'<a [^<>]*href="/?{re.escape(known["board"].lstrip("/"))}"[^<>]*>[^<>]*</a>')

    def page(path: str) -> str | None:
        found = forum.page(path)
        return way_up.sub("", found) if found and path.startswith(known["thread"]) else found

    assert way_up.search(forum.page(known["thread"]) or "")
    wrapper = learned(Stored(page), known["thread"])
    watched = forum.boards if name == "newest" else forum.boards[:1]
    assert [one.name.split()[0].lower() for one in wrapper.forums] == list(watched)


@pytest.mark.parametrize("kind", ["index", "board", "thread"])
def test_a_link_that_is_no_address_stops_nothing(kind: str, folder: Path) -> None:
    """People write `[url=http://...]` into fields for links."""
    forum = FORUMS["tables"]()
    visitor = Stored(
        lambda path: (found := forum.page(path)) and found.replace("<body>", '<body><a href="http://[url=http://a]">my site</a>')
    )
    site = site_of(learned(visitor, addresses(forum)[kind]), folder)
    assert threads_of(site, visitor, next(iter(site.forums)))


@pytest.mark.parametrize("first", range(6))
def test_a_box_of_threads_on_each_page_does_not_hide_the_boards(first: int) -> None:
    """Also on the pages of new threads of one post, which look like lists of what the box holds."""
    forum = FORUMS["tables"]()
    forum.threads = [replace(one, posts=one.posts[:1]) if n % 2 else one for n, one in enumerate(forum.threads)]
    titles = {one.id: one.title for one in forum.threads[first : first + 5]}
    box = "".join(f'<li><a href="/show.cgi?thread={id_}">{title}</a></li>' for id_, title in titles.items())
    visitor = Stored(
        lambda path: (found := forum.page(path)) and found.replace("</body>", f"<aside><ul>{box}</ul></aside></body>")
    )
    assert [one.name.lower() for one in learned(visitor, "/").forums] == list(forum.boards)
    assert len(visitor.asked) <= MOST_PAGES


@pytest.mark.parametrize("every", [2, 3, 4])
@pytest.mark.parametrize("name", FORUMS)
def test_new_threads_of_one_post_do_not_hide_the_list(name: str, every: int) -> None:
    """What such a page holds cannot be told from a page of anything else: others of the list tell."""
    forum = FORUMS[name]()
    forum.threads = [replace(one, posts=one.posts[:1]) if n % every else one for n, one in enumerate(forum.threads)]
    visitor = Stored(forum.page)
    found = asyncio.run(Explorer(visitor.get).find(visitor.answer(BASE + addresses(forum)["board"])))
    assert found is not None
    assert {title.strip() for title in found.listed.titles} <= {one.title for one in forum.threads}
    assert len(visitor.asked) <= MOST_PAGES


def test_a_link_that_changes_with_a_reply_is_the_token(folder: Path) -> None:
    forum = FORUMS["lists"]()
    visitor = Stored(forum.page)
    site = site_of(learned(visitor, "/b/1-garden"), folder)
    for row in threads_of(site, visitor, site.forums[0]):
        thread = next(one for one in forum.threads if one.title == row.title)
        assert row.token.endswith(f"#post{thread.last.id}")


def test_the_preview_shows_five_threads_with_their_posts(folder: Path) -> None:
    forum = FORUMS["hex"]()
    visitor = Stored(forum.page)
    wrapper = learned(visitor, "/")
    shown, problem, fault, _ = asyncio.run(preview(site_of(wrapper, folder), visitor.get, wrapper.tried))
    assert (problem, fault) == (None, None)
    assert len(shown) == 5
    for one in shown:
        thread = next(other for other in forum.threads if other.title == one.title)
        assert (one.posts, one.author, one.published) == (min(8, len(thread.posts)), thread.posts[0].author, thread.posts[0].at)
        assert (one.problem, one.without, one.text) == (None, (), thread.posts[0].text)


def test_the_demos_pages_are_learned(folder: Path) -> None:
    world = World(1, Size(forums=2, threads=45, comments=10))
    pages = HtmlPages(world, Bodies())

    def page(path: str) -> str:
        address, _, number = path.partition("?page=")
        _, kind, key = address.rsplit("/", 2) if address != "/" else ("", "", "")
        show = {"f": pages.forum, "t": pages.thread}
        return (show[kind](key, number or "1") if kind else pages.index()).decode()

    visitor = Stored(page)
    site = site_of(learned(visitor, "/"), folder)
    assert list(site.forums) == ["f1", "f2"]
    assert site.names == {forum.id: forum.name for forum in world.forums.values()}
    rows = threads_of(site, visitor, "f1")
    assert [(row.id, row.title) for row in rows] == [
        (thread.post.id, thread.post.title) for thread in world.forums["f1"].ordered()
    ]


@pytest.mark.parametrize(
    "body", ["", "<p>Words, and no forum.</p>", "<html>" + "<b>" * 3000, '<a href="/1">a</a><a href="/2">b</a>']
)
def test_a_page_that_is_of_no_forum_is_none(body: str) -> None:
    visitor = Stored(lambda _: f"<html><body>{body}</body></html>")
    assert asyncio.run(Explorer(visitor.get).find(visitor.answer(f"{BASE}/"))) is None
    assert len(visitor.asked) <= MOST_PAGES


@pytest.mark.parametrize(("base_url", "rate"), [("https://forum.example.org", 2), ("http://127.0.0.1:8000", None)])
def test_a_new_file_limits_all_crawlers_at_a_site_elsewhere(base_url: str, rate: int | None) -> None:
    for obey_robots in (True, False):
        draft = Draft(name="x", profile=None, software="unknown", base_url=base_url, agent="a (b@c)", obey_robots=obey_robots)
        known = tomllib.loads(text_of(draft))
        politeness = Politeness(**known["politeness"])
        assert (politeness.rate, politeness.concurrency, politeness.obey_robots) == (rate, rate, obey_robots)
        assert known["headers"] == {"User-Agent": "a (b@c)"}


_FEED = (
    '<link rel="alternate" type="application/{kind}+xml" href="/feed?opened=1">'
    '<link rel="alternate" type="application/{kind}+xml" href="/feed?new=1">'
)


def with_feed(forum: UnknownForum, kind: str, address: Callable[[str], str]) -> Callable[[str], str | None]:
    """Its pages with links to a feed of threads and to one of the newest posts; `address` of a thread by its id."""
    newest = sorted(((post.at, thread) for thread in forum.threads for post in thread.posts), key=lambda one: one[0])[-9:]

    def entry(at: datetime, thread: Thread) -> str:
        link = f"{urljoin(BASE, address(thread.id))}#at-{at.timestamp():.0f}"
        if kind == "atom":
            links = f'<id>tag:x,{thread.id}</id><link rel="alternate" href="{link}"/>'
            return f"<entry>{links}<updated>{at.isoformat()}</updated></entry>"
        return f"<item><link>{link}</link><pubDate>{format_datetime(at)}</pubDate></item>"

    entries = "".join(entry(at, thread) for at, thread in reversed(newest))
    whole = {
        "atom": f'<feed xmlns="http://www.w3.org/2005/Atom">{entries}</feed>',
        "rss": f"<rss><channel>{entries}</channel></rss>",
    }

    def page(path: str) -> str | None:
        feed = {"/feed?new=1": whole[kind], "/feed?opened=1": re.sub(r"#at-\d+", "", whole[kind])}
        found = feed.get(path) or forum.page(path)
        return found.replace("</head>", _FEED.format(kind=kind) + "</head>") if found else None

    return page


@pytest.mark.parametrize(
    ("name", "kind", "address"),
    [
        ("tables", "rss", "/show.cgi?thread={}"),
        ("hex", "atom", "/thread/{}"),
        ("hex", "atom", "/elsewhere/{}"),
        ("hex", "rss", "https://elsewhere.example/thread/{}"),
    ],
)
def test_a_linked_feed_of_threads_is_the_page_of_the_newest_messages(name: str, kind: str, address: str, folder: Path) -> None:
    forum = FORUMS[name]()
    visitor = Stored(with_feed(forum, kind, address.format))
    found = asyncio.run(Explorer(visitor.get).find(visitor.answer(f"{BASE}/")))
    assert found is not None
    wrapper = wrapper_of(found)
    assert wrapper is not None
    recent = asyncio.run(recent_page(visitor.get, found, wrapper.pages))
    if "elsewhere" in address:
        assert recent is None, "its entries lead to no thread that the list has"
        return
    assert recent is not None
    assert recent["url"] == "/feed?new=1", "the feed of posts, not that of threads"
    wrapper.pages["recent"] = recent
    site = site_of(wrapper, folder)
    feed = visitor.answer(site.url("recent"))
    newest = max(thread.last.at for thread in forum.threads)
    messages = read_recent(site, feed).messages
    assert len(messages) == 9
    assert messages[0].created_at == newest
    assert {one.thread for one in messages} <= {thread.id for thread in forum.threads}


def test_an_entry_for_a_post_on_a_later_page_leads_to_its_threads_first_page(folder: Path) -> None:
    forum = FORUMS["newest"]()
    visitor = Stored(with_feed(forum, "rss", lambda key: f"/{key}/a-title/page-2/"))
    pages = {"list": {"fields": {"id": {"select": "a", "regex": "/([0-9]+)/a-title"}}}, "comments": {"url": "{url}"}}
    found = asyncio.run(Explorer(visitor.get).find(visitor.answer(f"{BASE}/")))
    assert found is not None
    found.listed.urls = [f"{BASE}/{thread.id}/a-title/" for thread in forum.threads]
    recent = asyncio.run(recent_page(visitor.get, found, pages))
    assert recent is not None
    url = recent["fields"]["url"]["regex"]
    assert re.search(url, f"{BASE}/700/a-title/page-2/#at-7")[1] == f"{BASE}/700/a-title/"  # type: ignore[index]


def index_order(forum: BoardsInBoards) -> list[str]:
    return [one for top in forum.tops for one in (top, *forum.within.get(top, ()))]


@pytest.mark.parametrize("name", NESTED)
def test_boards_within_boards_are_watched(name: str, folder: Path) -> None:
    forum = NESTED[name]()
    visitor = Stored(forum.page)
    site = site_of(learned(visitor, "/"), folder)
    assert len(visitor.asked) <= MOST_PAGES
    assert sorted(site.forums) == sorted(forum.boards)
    titles = {row.title for board in site.forums for row in threads_of(site, visitor, board)}
    assert titles == {thread.title for thread in forum.threads}
    for thread in forum.threads[:5]:
        post = posts_of(site, visitor, "?", thread.id, f"{BASE}/t/{thread.id}/")[0]
        assert getattr(post, "forum_id", None) == thread.board, "its page says it, also where it was moved"
    assert (site.pages.index is not None) == (name == "two-levels"), "an index that lists all of them is worth asking again"
    if site.pages.index is not None:
        index = read_index(site, visitor.answer(f"{BASE}/"))
        assert [(one.id, one.name) for one in index.forums] == [(one, site.names[one]) for one in index_order(forum)]
