"""What a missing page means for the reading of a thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from scrapy import Request
from scrapy.http import TextResponse
from scrapy.spidermiddlewares.httperror import HttpError
from twisted.python.failure import Failure

from workers.breaker.watch import SiteBlocked
from workers.spiders.forum_detail import ForumDetailSpider
from workers.spiders.task_data import PostTask, encode

CHANGED = PostTask(site="example", post="p", mode="changed", token="t", page=4, after="c70", known=70)


@pytest.fixture(autouse=True)
def _sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    demo = (Path(__file__).parents[2] / "sites" / "demo.toml").read_text()
    (tmp_path / "example.toml").write_text(demo)
    (tmp_path / "cursors.toml").write_text(demo.replace('"/comment/{thread}/{page}"', '"/comment/{thread}?from={cursor}"'))
    board = 'profile = "generic"\nbase_url = "http://x"\nforums = ["f"]\n[pages.comments]\nurl = "/thread/{thread}/{page}"\n'
    (tmp_path / "board.toml").write_text(board)
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))


def begun(task: PostTask) -> Request:
    return alone().make_request_from_data(encode(task))


def alone() -> ForumDetailSpider:
    """One without a crawl."""
    made = ForumDetailSpider()
    made.crawler = None  # type: ignore[assignment]
    return made


def failed(request: Request, status: int = 404, error: Exception | None = None) -> Any:
    failure = Failure(error or HttpError(TextResponse(request.url, status=status)))
    failure.request = request  # type: ignore[attr-defined]
    (after,) = ForumDetailSpider().page_failed(failure)
    return after


def test_a_thread_whose_opening_post_is_missing_is_gone() -> None:
    request = begun(PostTask(site="example", post="p", forum="f", token="t"))
    assert request.meta["page"] == {"kind": "thread", "forum": "f", "thread": "p", "number": 1}
    check = failed(request, 410)
    assert (check["gone"], check["whole"], check["token"], check["reason"]) == (True, False, "t", "HTTP 410")


def test_a_last_page_that_is_missing_leads_back_and_at_the_beginning_the_opening_post_decides() -> None:
    request, numbers = begun(CHANGED), []
    while request.meta["page"]["kind"] == "comments":
        numbers.append(request.meta["page"]["number"])
        request = failed(request)
    assert numbers == [4, 3, 1]
    assert failed(request)["gone"]


def test_a_thread_that_is_there_without_a_page_of_comments_has_none() -> None:
    request = begun(PostTask(site="example", post="p", mode="check"))
    response = TextResponse(request.url, body=b'{"id": "p", "title": "t", "body": "b", "reply_count": 3}', request=request)
    spider = alone()
    post, comments = spider.parse_thread(response, **request.cb_kwargs)
    assert (post["kind"], post["forum_id"]) == ("post", None)
    check = failed(comments)
    assert (check["gone"], check["whole"], check["consistent"], check["comments"]) == (False, True, False, 0)


def test_comments_that_no_guest_sees_say_nothing_of_their_post() -> None:
    private = SiteBlocked("blocked 3 times, at last by refused (HTTP 403)", is_private=True)
    comments = begun(CHANGED)
    thread = failed(comments, error=private)
    assert thread.meta["page"]["kind"] == "thread"
    assert failed(thread, error=private)["gone"]
    response = TextResponse(thread.url, body=b'{"id": "p", "title": "t", "body": "b", "reply_count": 3}', request=thread)
    _, again = alone().parse_thread(response, **thread.cb_kwargs)
    check = failed(again, error=private)
    assert (check["gone"], check["whole"], check["reason"]) == (False, False, f"SiteBlocked: {private}")


def test_where_the_post_is_among_the_comments_the_first_page_decides() -> None:
    private = SiteBlocked("blocked", is_private=True)
    fourth = begun(msgspec.structs.replace(CHANGED, site="board"))
    assert fourth.meta["page"]["number"] == 4
    first = failed(fourth, error=private)
    assert (first.meta["page"]["kind"], first.meta["page"]["number"]) == ("comments", 1)
    assert failed(first, error=private)["gone"]
    later = first.replace(meta={**first.meta, "page": {**first.meta["page"], "number": 2}})
    assert not failed(later, error=private)["gone"]


def test_pages_without_numbers_are_read_on_by_their_url_or_from_the_beginning() -> None:
    task = PostTask(site="cursors", post="p", mode="changed", page=4, after="c70", known=70, cursor="http://x/?from=c60")
    assert begun(task).url == "http://x/?from=c60"
    assert failed(begun(task)).url.endswith("/comment/p?from=")  # it has fewer pages now
    fewer = PostTask(site="cursors", post="p", mode="changed", page=1, after="c70", known=70, cursor="http://x/?from=c60")
    assert begun(fewer).url.endswith("/comment/p?from=")
    request = begun(PostTask(site="cursors", post="p", mode="changed", page=4, after="c70", known=70))
    assert request.url.endswith("/comment/p?from=")
    assert request.meta["page"]["number"] == 1


def test_what_may_wait_is_less_urgent() -> None:
    assert begun(CHANGED).priority > begun(PostTask(site="example", post="p", mode="check")).priority
