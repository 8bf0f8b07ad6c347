"""Posts that lead to the post that they answer, and answers that stand in one element more for each level."""

from __future__ import annotations

from typing import Any

from scrapy.http import HtmlResponse

from forum_reader.definition.selectors import compiled
from forum_reader.draft.page_sample import OpenedPage, opened
from forum_reader.draft.thread_wrapper import learn_comments

NAMES = ("ida", "walter", "Ben K", "Maria", "old-oak", "Tom")
ANSWERED = (None, 0, 0, 2, 1, 0)


def page(number: int, count: int, *, previous: bool = False, deep: bool = False) -> OpenedPage:
    """A thread of `count` posts; `previous`: each leads to the one before; `deep`: answers stand in an element around them."""
    posts = []
    for n in range(count):
        to = ANSWERED[n] if not previous else (n - 1 if n else None)
        link = f'<span class="to"><a href="#p{number}{to}">@ {NAMES[to]}</a></span>' if to is not None else ""
        post = (
            f'<div class="post" id="p{number}{n}"><p class="by">by <b>{NAMES[n]}</b> on 2026-11-{n + 1:02} 08:1{n} {link}</p>'
            f'<div class="text">What I know of radio {number} is this, said for the {n}th time, see '
            f'<a href="#p{number}0">above</a>, and no more of it.</div></div>'
        )
        posts.append(f'<div class="answer">{post}</div>' if deep and n else post)
    body = f"<html><title>Radio {number}</title><h1>Radio {number}</h1><div class=thread>{''.join(posts)}</div></html>".encode()
    found = opened(HtmlResponse(f"http://f.example/q/{number}", body=body, encoding="utf-8"))
    assert found is not None
    return found


def learned(*pages: OpenedPage) -> dict[str, Any]:
    table = learn_comments(pages)
    assert table is not None
    return table


def test_a_link_to_an_earlier_post_is_the_parent() -> None:
    fields = learned(page(7, 6), page(8, 4))["fields"]
    assert fields["id"]["select"] == "./@id"
    assert fields["parent_id"] == {"select": "span.to > a::attr(href)", "regex": r"#[^\d#]*(\d+)$"}


def test_a_link_to_the_post_before_is_none() -> None:
    assert "parent_id" not in learned(page(7, 6, previous=True), page(8, 4, previous=True))["fields"]


def test_posts_in_one_element_more_are_like_the_others() -> None:
    """Also where most threads have one answer, so that no post of theirs is unlike the others."""
    pages = page(7, 6, deep=True), page(8, 2, deep=True), page(9, 2, deep=True)
    table = learned(*pages)
    assert (table["rows"], table["first_is_post"]) == ("div.post", True)
    assert table["post"].keys() == {"title"}
    assert [len(compiled("html", table["rows"])(one.root)) for one in pages] == [6, 2, 2]
