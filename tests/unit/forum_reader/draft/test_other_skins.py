"""A forum of known software in a skin that its profile reads in part: the file is by the profile only where no other reader
finds more posts, and it is wrong where posts are left.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from scrapy.http import HtmlResponse

from forum_reader.definition.page_requests import PageRequest
from forum_reader.draft.draft_file import Draft
from forum_reader.draft.draft_site import Drafted, drafted
from tests.support.unknown_forums import NAMES, TOPICS, WORDS

BASE = "http://forum.example"
COUNTS = (1, 2, 6, 1, 9, 3, 5, 1, 4, 8, 2, 7)
OWN = (
    '<div id="p{id}" class="post"><dl class="postprofile"><dt><a class="username" href="./memberlist.php?u={n}">{who}</a></dl>'
    '<div class="postbody"><p class="author"><time datetime="{at}">then</time></p><div class="content">{text}</div></div></div>'
)
OTHER = (
    '<div class="card" id="c{id}"><div class="who"><a href="./memberlist.php?u={n}">{who}</a></div>'
    '<div class="when"><time datetime="{at}">then</time></div><div class="said">{text}</div></div>'
)
ROW = (
    '<li class="row"><dl><dt><a href="./viewtopic.php?f=2&amp;t={id}" class="topictitle">{title}</a><div class="topic-poster">'
    '<a class="username" href="./memberlist.php?u=1">{who}</a></div></dt><dd class="posts">{replies}</dd>'
    '<dd class="lastpost"><time datetime="2026-04-{day:02}T10:00:00Z">then</time></dd></dl></li>'
)
BOARD = (
    '<li class="row"><dl><dt><a href="./viewforum.php?f={n}" class="forumtitle">{name}</a><br>All about it</dt>'
    '<dd class="topics">{threads}</dd></dl></li>'
)


def post(thread: int, n: int, markup: str) -> str:
    at = datetime(2026, 3, 1, 8, tzinfo=UTC) + timedelta(days=thread, hours=3 * n)
    text = f"About {TOPICS[(thread + n) % 20]}: {WORDS[(thread + n) % 8]}, in the year {1900 + (thread * 31 + n) % 97}."
    who = NAMES[(thread + n * (n + 1) // 2) % 7]
    return markup.format(id=1000 + 20 * thread + n, n=n, who=who, at=at.isoformat(), text=text)


class Board:
    """Three boards, one with threads; `skin`: the posts whose markup the profile knows."""

    def __init__(self, skin: str) -> None:
        self._is_own = {
            "own": lambda n: True,
            "the first": lambda n: n == 0,
            "some": lambda n: n % 2 == 0,
            "none": lambda n: False,
        }[skin]

    async def get(self, asked: str | PageRequest) -> HtmlResponse:
        url = asked if isinstance(asked, str) else asked.url
        path = url.removeprefix(BASE)
        found = self._page(path)
        head = '<html lang="en"><link rel="stylesheet" href="./styles/own/theme/stylesheet.css"><body id="phpbb"'
        body = f'{head} class="section-{found[0]}"><div id="page-body">{found[1]}' if found else "no such page"
        return HtmlResponse(url, status=200 if found else 404, body=body.encode(), encoding="utf-8")

    def _page(self, path: str) -> tuple[str, str] | None:
        if path in ("/", "/index.php"):
            boards = (BOARD.format(n=n, name=name, threads=12) for n, name in enumerate(("Garden", "Tools", "Bees"), 2))
            return "index", f'<ul class="topiclist forums">{"".join(boards)}</ul>'
        if path.startswith("/viewforum.php?f=2"):
            rows = (
                ROW.format(id=100 + t, title=TOPICS[t].capitalize(), who=NAMES[t % 7], replies=count - 1, day=28 - t)
                for t, count in enumerate(COUNTS)
            )
            return "viewforum", f'<h2>Garden</h2><ul class="topiclist topics">{"".join(rows)}</ul>'
        thread = next((t for t in range(12) if path.startswith("/viewtopic.php") and f"t={100 + t}" in path), None)
        if thread is None:
            return None
        posts = (post(thread, n, OWN if self._is_own(n) else OTHER) for n in range(COUNTS[thread]))
        title = f'<h2 class="topic-title"><a href="./viewtopic.php?t={100 + thread}">{TOPICS[thread].capitalize()}</a></h2>'
        return "viewtopic", title + "".join(posts)


def draft(skin: str) -> Drafted:
    return asyncio.run(drafted(f"{BASE}/", Board(skin).get, partial(Draft, name="made")))


@pytest.mark.parametrize(("skin", "profile"), [("own", "phpbb"), ("the first", None), ("none", None)])
def test_a_profile_that_finds_fewer_posts_than_another_reader_does_not_win(skin: str, profile: str | None) -> None:
    made = draft(skin)
    assert (made.draft.profile, made.shown.wrong, made.shown.problem) == (profile, None, None)
    assert [thread.posts for thread in made.shown.threads] == [1, 6, 9, 5, 4]


def test_where_each_reader_leaves_posts_the_file_is_wrong() -> None:
    made = draft("some")
    assert made.draft.profile == "phpbb"
    assert "4 of 5 threads look wrong" in str(made.shown.wrong)
