"""docs/sites.md: its two examples read the demo forum's own pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scrapy.http import HtmlResponse, TextResponse

from demo.forum.html_pages import HtmlPages
from demo.forum.json_pages import JsonPages
from demo.forum.words import Bodies
from demo.forum.world import Size, World
from forum_reader.reading.html_text import text_of
from forum_reader.reading.read_page import read_comments, read_index, read_list, read_thread
from forums.sites import Site, load_site

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/sites.md").read_text("utf-8")


@pytest.fixture(scope="module")
def world() -> World:
    return World(1, Size(forums=2, threads=50, comments=10))


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Site:
    match = re.search(rf"```toml {request.param}\n(.*?)```", PAGE, re.DOTALL)
    assert match
    (tmp_path / "demo.toml").write_text(match[1])
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    return load_site("demo")


@pytest.mark.parametrize("example", ["json"], indirect=True)
def test_the_json_example_reads_every_thread_and_comment(example: Site, world: World) -> None:
    pages = JsonPages(world, Bodies())
    threads, url, number = [], example.list_url("f1"), 1
    while url:
        page = read_list(example, TextResponse(url, body=pages.threads("f1", str(number))), "f1", number)
        assert page.pages == 3
        threads += page.threads
        url, number = page.next, number + 1
    assert [thread.id for thread in threads] == [thread.post.id for thread in world.forums["f1"].ordered()]
    truth = max(world.forums["f1"].activity.values(), key=lambda thread: thread.reply_count)
    post = read_thread(example, TextResponse("http://x/", body=pages.post(truth.post.id)), truth.post.id).post
    assert (post.title, post.body, post.views) == (truth.post.title, truth.post.body, truth.views)
    bodies: dict[str, str] = {}
    number, more = 1, True
    while more:
        answers = read_comments(
            example, TextResponse("http://x/", body=pages.comments(truth.post.id, str(number))), truth.post.id, number
        )
        bodies |= {comment.id: comment.body for comment in answers.comments}
        number, more = number + 1, answers.next is not None
    assert bodies == {comment.id: comment.body for comment in truth.comments}


@pytest.mark.parametrize("example", ["html"], indirect=True)
def test_the_html_example_reads_the_same(example: Site, world: World) -> None:
    pages = HtmlPages(world, Bodies())
    index = read_index(example, HtmlResponse("http://x/", body=pages.index()))
    assert [(forum.id, forum.name, forum.threads) for forum in index.forums] == [
        (forum.id, forum.name, 50) for forum in world.forums.values()
    ]
    assert index.forums[0].url == "http://x/html/f/f1"
    first = read_list(example, HtmlResponse(example.list_url("f1"), body=pages.forum("f1", "1")), "f1")
    truths = world.forums["f1"].ordered()
    assert [(row.id, row.title, row.author, row.sticky) for row in first.threads] == [
        (truth.post.id, truth.post.title, truth.post.author, truth.post.sticky) for truth in truths[:20]
    ]
    assert [row.last_activity.isoformat() for row in first.threads if row.last_activity] == [
        truth.last_reply_at.replace("Z", "+00:00") for truth in truths[:20]
    ]
    assert first.next == example.url("list", forum="f1", number=2)
    assert (
        read_list(example, HtmlResponse(example.url("list", forum="f1", number=3), body=pages.forum("f1", "3")), "f1", 3).next
        is None
    )
    truth = max(truths, key=lambda thread: thread.reply_count)
    number, url, seen = 1, example.url("comments", thread=truth.post.id), {}
    while url:
        page = read_comments(example, HtmlResponse(url, body=pages.thread(truth.post.id, str(number))), truth.post.id, number)
        assert (page.post is not None) == (number == 1)
        if page.post:
            assert (page.post.title, page.post.body) == (truth.post.title, truth.post.body)
        seen |= {comment.id: comment for comment in page.comments}
        url, number = page.next, number + 1
    assert {key: (one.parent_id, one.body) for key, one in seen.items()} == {
        one.id: (one.parent_id, one.body) for one in truth.comments
    }
    assert all(text_of(one.body_html) == one.body for one in seen.values())
