"""Comments that a page leaves out, HTML within JSON, and ids that are put together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scrapy.http import HtmlResponse, JsonResponse

from forum_reader.definition import load
from forum_reader.definition.load import site_of
from forum_reader.reading.page_records import Asked, CommentsPage, MoreComments, ReadComment
from forum_reader.reading.read_page import read
from forums.sites import Site, UnreadablePage
from forums.spiders.thread_reading import MOST_LEFT_OUT, Reading, after_left_out, follow_left_out, next_left_out, with_left_out

FIELDS = {"id": {"select": "./@id", "prefix": "{thread}/"}, "body": "p", "load_more": {"select": "a.more"}}


def site(more: dict[str, Any], **comments: Any) -> Site:
    """A site of HTML pages."""
    pages = {
        "list": {"url": "/f/{forum}", "rows": "li", "fields": {"id": "a"}},
        "comments": {"url": "/t/{thread}", "rows": ".post", "fields": FIELDS, **comments},
        "more": more,
    }
    return site_of(load.read(Path("books.toml"), {"base_url": "http://forum.example", "forums": ["7"], "pages": pages}))


def of_html(made: Site, body: str, **asked: Any) -> Any:
    return read(made, HtmlResponse("http://forum.example/t/9", body=body.encode()), Asked(**asked))


def of_json(made: Site, said: Any, **asked: Any) -> CommentsPage:
    page = read(made, JsonResponse("http://forum.example/more", body=json.dumps(said).encode()), Asked(kind="more", **asked))
    assert isinstance(page, CommentsPage)
    return page


def test_a_page_says_where_it_leaves_comments_out() -> None:
    made = site({}, load_more={"select": "button::attr(data-ids)", "regex": r"[\d,]+", "as": "text"})
    body = (
        '<div class=post id=1><p>one<a class=more href="/more?of=1">3 answers</a></div><div class=post id=2><p>two</div>'
        '<button data-ids="[5,6]"></button><button data-ids="[7]"></button><button data-ids="[7]"></button>'
    )
    page = of_html(made, body, kind="comments", thread="9")
    assert [comment.id for comment in page.comments] == ["9/1", "9/2"]
    assert page.left_out == (
        MoreComments(more="5,6"),
        MoreComments(more="7"),
        MoreComments(more="http://forum.example/more?of=1", comment="9/1"),
    )


def test_html_within_json_is_read_as_html_and_its_next_page_as_json() -> None:
    made = site({"url": "/more?of={comment}&from={cursor}", "html_at": "data.html", "cursor": "data.last"})
    rows = ["<div class=post id=3><p>three <b>3</b></div>", "<div class=post id=4><p>four</div>"]
    page = of_json(made, {"data": {"html": rows, "last": 4}}, thread="9", comment="9/1")
    assert [(one.id, one.body, one.parent_id) for one in page.comments] == [
        ("9/3", "three 3", "9/1"),
        ("9/4", "four", "9/1"),
    ]
    assert page.next == "http://forum.example/more?of=9%2F1&from=4"
    assert of_json(made, {"data": {"html": "", "last": None}}, thread="9").comments == ()
    with pytest.raises(UnreadablePage, match=r"has no HTML at data\.html"):
        of_json(made, {"error": "no"}, thread="9")


def test_rows_of_json_are_those_of_the_comments_where_nothing_else_is_said() -> None:
    made = site(
        {"url": "/more/{more}", "fields": {"author": "by"}},
        format="json", rows="c", load_more="more[]",
        fields={"id": "id", "body": "b", "load_more": {"select": "hidden", "as": "text"}},
    )  # fmt: skip
    first = read(
        made,
        JsonResponse("http://forum.example/t/9", body=b'{"c": [{"id": 1, "b": "x", "hidden": "z"}], "more": ["/a", "/b"]}'),
        Asked(kind="comments", thread="9"),
    )
    assert isinstance(first, CommentsPage)
    assert [one.more for one in first.left_out] == ["http://forum.example/a", "http://forum.example/b", "z"]
    page = of_json(made, {"c": [{"id": 2, "b": "y", "by": "ann"}]}, thread="9", more="z", comment="1")
    assert [(one.id, one.author, one.parent_id) for one in page.comments] == [("2", "ann", "1")]


def test_pages_are_followed_to_their_ends_and_every_place_once() -> None:
    reading = with_left_out(
        Reading(started_at="", thread="9"), [MoreComments(more="a"), MoreComments(more="b"), MoreComments(more="a")]
    )
    assert next_left_out(reading) == MoreComments(more="a")
    page = [_comment("1"), _comment("2")]
    step = follow_left_out(reading, page, [MoreComments(more="a", comment="1")], has_next=True, limit=100)
    assert (step.go, step.reading.left_out_page, step.reading.at_left_out, step.reading.seen) == ("on", 2, 0, 2)
    step = follow_left_out(step.reading, page, (), has_next=True, limit=100)
    assert (step.reading.at_left_out, step.reading.seen) == (1, 2), "a site that answers with the same page again is at its end"
    step = after_left_out(step.reading, 100, missing=True)
    assert next_left_out(step.reading) == MoreComments(more="a", comment="1")
    assert after_left_out(step.reading, 100).go is None
    assert not step.reading.steady, "what is missing is not known to be all"


def test_a_thread_without_an_end_is_cut() -> None:
    many = [MoreComments(more=str(number)) for number in range(MOST_LEFT_OUT + 5)]
    step = after_left_out(with_left_out(Reading(started_at="", thread="9"), many), 10**6)
    while step.go is not None:
        step = after_left_out(step.reading, 10**6)
    assert (step.cut, step.reading.at_left_out) == (True, MOST_LEFT_OUT)
    few = with_left_out(Reading(started_at="", thread="9"), many[:5])
    assert follow_left_out(few, [_comment("1"), _comment("2")], (), has_next=False, limit=2).cut


def _comment(name: str) -> ReadComment:
    return ReadComment(id=name)
