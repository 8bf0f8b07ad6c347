"""The forum over HTTP: JSON, HTML and the truth say the same, at rest and while it lives."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha1
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import pytest
from parsel import Selector

from demo.forum.process import ForumFailed, ForumProcess
from tests.support.processes import wait_until

Hashes = dict[str, str]


@pytest.fixture(scope="module")
def forum() -> Iterator[ForumProcess]:
    """A forum that stands still."""
    with ForumProcess(seed=4, forums=3, threads=45, comments=9) as forum:
        yield forum


@pytest.fixture
def living() -> Iterator[ForumProcess]:
    """A forum that gets 300 events per second."""
    with ForumProcess(seed=4, forums=2, threads=45, comments=5, rate=300) as forum:
        yield forum


def test_the_json_pages_hold_exactly_the_truth(forum: ForumProcess) -> None:
    truth = forum.truth()

    posts, comments = _crawl_json(forum)

    assert posts == truth["posts"]
    assert comments == truth["comments"]
    assert len(posts) == 3 * 45
    assert truth["revision"] == 0


def test_the_html_pages_hold_exactly_the_truth(forum: ForumProcess) -> None:
    truth = forum.truth()

    posts, comments = _crawl_html(forum)

    assert posts == truth["posts"]
    assert comments == truth["comments"]


def test_a_list_shows_sticky_threads_first_then_the_newest_reply_and_each_thread_once(forum: ForumProcess) -> None:
    rows = [row for page in _pages(forum, "/list/f2") for row in page["threads"]]

    assert rows == sorted(rows, key=lambda r: (r["sticky"], r["last_reply_at"], int(r["id"][1:])), reverse=True)
    assert [row["sticky"] for row in rows] == [True, True] + [False] * 43
    assert len({row["id"] for row in rows}) == 45


def test_a_thread_in_a_list_its_post_and_its_comments_agree(forum: ForumProcess) -> None:
    for row in _json(forum, "/list/f1/1")["threads"]:
        post = _json(forum, f"/post/{row['id']}")
        comments = [c for page in _pages(forum, f"/comment/{row['id']}") for c in page["comments"]]

        assert {name: post[name] for name in row if name != "sticky"} == {name: row[name] for name in row if name != "sticky"}
        assert row["reply_count"] == len(comments)
        assert row["last_reply_at"] == (comments[-1]["created_at"] if comments else row["created_at"])


def test_the_html_list_shows_the_same_rows_as_the_json_list(forum: ForumProcess) -> None:
    shown = [
        {
            "id": entry.attrib["id"],
            "title": entry.css(".title::text").get(),
            "author": entry.css(".author::text").get(),
            "created_at": entry.css("time.created::attr(datetime)").get(),
            "reply_count": int(entry.css(".reply-count::text").get("")),
            "last_reply_at": entry.css("time.last-reply::attr(datetime)").get(),
            "sticky": "sticky" in entry.attrib["class"].split(),
        }
        for entry in _html(forum, "/html/f/f3?page=2").css("li.thread")
    ]

    assert shown == _json(forum, "/list/f3/2")["threads"]


def test_html_comments_are_nested_under_the_comment_they_answer(forum: ForumProcess) -> None:
    nested = 0
    for thread in _json(forum, "/list/f1/1")["threads"]:
        page = _html(forum, f"/html/t/{thread['id']}")
        here = set(page.css("article.comment::attr(id)").getall())
        for article in page.css("article.comment"):
            parent = article.css(".parent::attr(data-parent)").get()
            above = article.xpath("ancestor::ol[1]/preceding-sibling::article[contains(@class, 'comment')]/@id").get()
            assert above == (parent if parent in here else None)
            nested += above is not None
    assert nested > 30


def test_a_post_without_replies_has_one_empty_page_of_comments(forum: ForumProcess) -> None:
    rows = [row for page in _pages(forum, "/list/f1") for row in page["threads"]]
    silent = next(row["id"] for row in rows if row["reply_count"] == 0)

    assert _json(forum, f"/comment/{silent}/1") == {"post_id": silent, "page": 1, "pages": 1, "comments": []}


def test_the_index_and_its_json_name_every_forum(forum: ForumProcess) -> None:
    forums = _json(forum, "/forums")["forums"]
    index = _html(forum, "/")

    assert [(f["id"], f["threads"], f["pages"]) for f in forums] == [("f1", 45, 3), ("f2", 45, 3), ("f3", 45, 3)]
    assert index.css("li.forum > a::text").getall() == [f["name"] for f in forums]
    assert index.css("li.forum > a::attr(href)").getall() == ["/html/f/f1", "/html/f/f2", "/html/f/f3"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/list/f9/1", "no forum 'f9'"),
        ("/list/f1/4", "forum f1 has pages 1 to 3, not '4'"),
        ("/list/f1/0", "forum f1 has pages 1 to 3, not '0'"),
        ("/list/f1/x", "forum f1 has pages 1 to 3, not 'x'"),
        ("/post/p999", "no post 'p999'"),
        ("/comment/p999/1", "no post 'p999'"),
        ("/comment/p1/99", "post p1 has pages 1 to "),
        ("/elsewhere", "no page at '/elsewhere'"),
    ],
)
def test_what_does_not_exist_is_a_404_that_says_what_is_missing(forum: ForumProcess, path: str, said: str) -> None:
    status, headers, body = _get(forum, path)

    assert status == 404
    assert headers["Content-Type"] == "application/json"
    assert said in json.loads(body)["error"]


def test_a_missing_html_page_is_a_404_page_and_escapes_what_was_asked(forum: ForumProcess) -> None:
    status, _, body = _get(forum, "/html/f/%3Cscript%3E?page=1")

    assert status == 404
    assert b"no forum &#39;&lt;script&gt;&#39;" in body


def test_a_living_forum_moves_threads_to_the_top_and_shifts_the_pages(living: ForumProcess) -> None:
    def order() -> list[str]:
        return [row["id"] for row in _json(living, "/list/f1/1")["threads"]]

    first = order()
    wait_until(lambda: order() != first, "another order of the first page")
    before = _json(living, "/list/f1/1")["pages"]
    wait_until(lambda: _json(living, "/list/f1/1")["pages"] > before, "one page more")


def test_a_frozen_forum_stays_as_it_is_and_its_pages_hold_the_truth_of_all_that_happened(living: ForumProcess) -> None:
    _crawl_json(living)  # pages are rendered while they change, and must not be served again afterwards
    assert living.control(rate=0)["rate"] == 0
    truth = living.truth()
    assert truth["revision"] > 0

    assert _crawl_json(living) == (truth["posts"], truth["comments"])
    assert _crawl_html(living) == (truth["posts"], truth["comments"])
    assert living.truth() == truth


def test_the_truth_is_consistent_at_every_moment_and_only_grows(living: ForumProcess) -> None:
    living.control(rate=3_000)
    seen = [living.truth()]

    def grown_five_times() -> bool:
        seen.append(living.truth())
        return len({truth["revision"] for truth in seen}) > 5

    wait_until(grown_five_times, "a truth that grows")
    sizes = {len(truth["posts"]) + len(truth["comments"]) - truth["revision"] for truth in seen}
    assert len(sizes) == 1, "each event adds exactly one post or comment"
    for earlier, later in pairwise(seen):
        assert earlier["revision"] <= later["revision"]
        assert earlier["posts"].items() <= later["posts"].items()
        assert earlier["comments"].items() <= later["comments"].items()


def test_a_wrong_control_is_a_400_that_names_the_setting_and_changes_nothing(forum: ForumProcess) -> None:
    before = _json(forum, "/control")

    with pytest.raises(ForumFailed, match=r"400 /control: .*'speed'"):
        forum.control(latency_ms=3, speed=1)
    for body in (b"", b"{", b"\xff", b"[" * 50_000):
        status, _, answer = _get(forum, "/control", method="POST", body=body)
        assert (status, answer[:20]) == (400, b'{"error":"/control: ')

    assert _json(forum, "/control") == before


def _get(
    forum: ForumProcess, path: str, method: str = "GET", body: bytes | None = None
) -> tuple[int, http.client.HTTPMessage, bytes]:
    with closing(http.client.HTTPConnection(urlsplit(forum.url).netloc, timeout=60)) as connection:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, response.headers, response.read()


def _json(forum: ForumProcess, path: str) -> dict[str, Any]:
    status, _, body = _get(forum, path)
    assert status == 200, body
    content: dict[str, Any] = json.loads(body)
    return content


def _html(forum: ForumProcess, path: str) -> Selector:
    status, _, body = _get(forum, path)
    assert status == 200, body
    return Selector(body.decode())


def _pages(forum: ForumProcess, path: str) -> Iterator[dict[str, Any]]:
    """All pages of a list or of a post's comments; their number may grow while they are read."""
    number = 0
    while True:
        number += 1
        page = _json(forum, f"{path}/{number}")
        assert page["page"] == number
        yield page
        if number >= page["pages"]:
            return


def _crawl_json(forum: ForumProcess) -> tuple[Hashes, Hashes]:
    """The hashes of all posts and comments, from /forums on."""
    posts, comments = {}, {}
    for known in _json(forum, "/forums")["forums"]:
        for row in [row for page in _pages(forum, f"/list/{known['id']}") for row in page["threads"]]:
            post = _json(forum, f"/post/{row['id']}")
            posts[post["id"]] = _hash(*(post[name] for name in ("id", "forum_id", "title", "body", "author", "created_at")))
            for page in _pages(forum, f"/comment/{row['id']}"):
                assert len(page["comments"]) <= 20
                for comment in page["comments"]:
                    fields = [comment[name] or "" for name in ("id", "post_id", "parent_id", "author", "body", "created_at")]
                    comments[comment["id"]] = _hash(*fields)
    return posts, comments


def _follow(forum: ForumProcess, path: str) -> Iterator[Selector]:
    """A page and all that follow it by rel="next", which is "#" on the last one; each but the first must link back."""
    previous, following = None, path
    while following.strip("#"):
        page = _html(forum, following)
        back = page.css("a[rel=prev]::attr(href)").get()
        assert back in ((None,) if previous is None else (previous, f"{previous}?page=1"))
        yield page
        previous, following = following, page.css("a[rel=next]::attr(href)").get(default="")


def _crawl_html(forum: ForumProcess) -> tuple[Hashes, Hashes]:
    """The hashes of all posts and comments, by links only, from the index on."""
    posts, comments = {}, {}
    for forum_path in _html(forum, "/").css("li.forum > a::attr(href)").getall():
        for thread_path in [a for page in _follow(forum, forum_path) for a in page.css("li.thread .title::attr(href)").getall()]:
            pages = list(_follow(forum, thread_path))
            post = pages[0].css("article.post")
            id_, title = post.attrib["id"], post.css("h1::text").get("")
            posts[id_] = _hash(id_, forum_path.rsplit("/", 1)[1], title, *_written(post))
            for comment in [c for page in pages for c in page.css("article.comment")]:
                parent = comment.css(".parent::attr(data-parent)").get("")
                body, author, created_at = _written(comment)
                comments[comment.attrib["id"]] = _hash(comment.attrib["id"], id_, parent, author, body, created_at)
    return posts, comments


def _written(article: Any) -> tuple[str, str, str]:
    """Body, author and time of a post or comment."""
    body = "\n\n".join(article.css(".body p::text").getall())
    return body, article.css(".author::text").get(), article.css("time.created::attr(datetime)").get()


def _hash(*fields: str) -> str:
    return sha1("\x1f".join(fields).encode()).hexdigest()
