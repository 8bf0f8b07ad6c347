"""What a missing page means for the reading of a thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, TextResponse
from scrapy.spidermiddlewares.httperror import HttpError
from twisted.python.failure import Failure

from forums.breaker.middleware import SiteBlocked
from forums.raw_pages.reparse import _read
from forums.records.stored import PostTask
from forums.records.tasks_and_items import encode, file_digest, utc_now
from forums.sites import load_site
from forums.spiders.base import merged_into
from forums.spiders.forum_detail import ForumDetailSpider
from forums.spiders.thread_reading import Reading
from forums.storage import parse
from forums.writer.store import _records
from tests.support.callbacks import collected
from workers.raw_pages.store import RawPage

CHANGED = PostTask(site="example", post="p", mode="changed", token="t", page=4, after="c70", known=70)


@pytest.fixture(autouse=True)
def _sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    demo = (Path(__file__).parents[4] / "demo" / "sites" / "demo.toml").read_text()
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


@pytest.mark.parametrize(
    ("asked", "sent", "other"),
    [
        ("/t/2?page=2", "/t/2?page=1", None),  # the last page is gone: the site shows the first one
        ("/t/2?page=2", "/t/7?page=2", "7"),
        ("/t/2?page=2", "/t/7", "7"),
        ("/t/2?page=2", "/f/2", None),
        ("/go?t=2&from=2", "/go?t=2&from=1", None),
    ],
)
def test_the_number_of_a_page_is_not_taken_for_the_id_of_its_thread(asked: str, sent: str, other: str | None) -> None:
    request = Request(f"http://x{sent}", meta={"redirect_urls": [f"http://x{asked}"]})
    response = HtmlResponse(request.url, request=request)
    own_url = "http://x/t/2" if asked.startswith("/t/") else "http://x/go?t=2"
    assert merged_into(load_site("example"), response, "2", own_url) == other


def test_a_thread_whose_opening_post_is_missing_is_gone() -> None:
    request = begun(PostTask(site="example", post="p", forum="f", token="t"))
    assert request.meta["page"] == {"kind": "thread", "forum": "f", "thread": "p", "number": 1}
    check = failed(request, 410)
    assert (check["gone"], check["whole"], check["token"], check["reason"]) == (True, False, "t", "HTTP 410")


def test_a_missing_page_that_an_older_site_file_asked_for_is_asked_for_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forums.sites.load.CHECK_S", 0.0)  # it looks at the file with each page
    path = tmp_path / "example.toml"
    right = path.read_text()
    path.write_text(right.replace("/post/{thread}", "/nopost/{thread}").replace("/comment/{thread}", "/nocomment/{thread}"))
    thread = begun(PostTask(site="example", post="p", forum="f", token="t"))
    comments = begun(CHANGED)
    assert failed(thread)["gone"], "the file is the same"
    path.write_text(right)
    again = failed(thread)
    assert again.url.endswith("/post/p")
    assert failed(again)["gone"]
    assert failed(again)["asked"] == file_digest(load_site("example"))
    assert failed(comments).url.endswith("/post/p"), "whether it is there, the opening post decides"
    opened = comments.replace(cb_kwargs={"reading": {**comments.cb_kwargs["reading"], "opened": True}})
    assert failed(opened).url.endswith("/comment/p/4")


def test_a_last_page_that_is_missing_leads_back_and_at_the_beginning_the_opening_post_decides() -> None:
    request, numbers = begun(CHANGED), []
    while request.meta["page"]["kind"] == "comments":
        numbers.append(request.meta["page"]["number"])
        request = failed(request)
    assert numbers == [4, 3, 1]
    assert failed(request)["gone"]


def test_a_reading_begins_when_its_first_page_is_requested_and_a_thread_is_gone_when_its_page_was() -> None:
    last, first, opening = "2100-01-01T00:00:01.000+00:00", "2100-01-01T00:00:02.000+00:00", "2100-01-01T00:00:03.000+00:00"
    request = begun(msgspec.structs.replace(CHANGED, page=2))
    request.meta["requested_at"] = last
    request = failed(request)
    assert request.meta["page"]["number"] == 1
    assert request.cb_kwargs["reading"]["started_at"] == last
    request.meta["requested_at"] = first
    request = failed(request)
    assert request.meta["page"]["kind"] == "thread"
    assert request.cb_kwargs["reading"]["started_at"] == last, "as long as it goes on"
    request.meta["requested_at"] = opening
    check = failed(request)
    assert (check["gone"], check["started_at"]) == (True, opening)
    assert check["finished_at"] >= opening


def test_a_thread_that_is_there_without_a_page_of_comments_has_none() -> None:
    request = begun(PostTask(site="example", post="p", mode="check"))
    response = TextResponse(request.url, body=b'{"id": "p", "title": "t", "body": "b", "reply_count": 3}', request=request)
    spider = alone()
    post, comments = collected(spider.parse_thread(response, **request.cb_kwargs))
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
    _, again = collected(alone().parse_thread(response, **thread.cb_kwargs))
    check = failed(again, error=private)
    assert (check["gone"], check["whole"], check["reason"]) == (False, False, f"site blocked: {private}")


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


def test_what_is_stored_has_the_threads_own_id_and_its_tokens_the_lists(tmp_path: Path) -> None:
    """A list may lead to the newest message: then each reply gives the thread another id there."""
    (tmp_path / "mails.toml").write_text(
        'profile = "generic"\nbase_url = "http://x"\nforums = ["f"]\n[pages.comments]\nurl = "/m/{thread}"\nrows = "li"\n'
        'first_is_post = true\n[pages.comments.post]\nid = { select = "h1::attr(id)" }\n'
        '[pages.comments.fields]\nid = "./@id"\nbody = "p"\nauthor = false\ncreated_at = false\n'
    )
    body = b'<html><h1 id="m1">t</h1><ul><li id="m1"><p>first</p></li><li id="m9"><p>last</p></li></ul></html>'
    task = PostTask(
        site="mails", post="m9", forum="f", token="2@noon", replies=1, author="ann",
        created_at="2026-11-20T10:00:00+00:00", last_activity="2026-11-21T10:00:00+00:00",
    )  # fmt: skip
    request = begun(task)
    response = HtmlResponse(request.url, body=body, request=request)
    post, comment, check = collected(alone().parse_comments(response, **request.cb_kwargs))
    assert (post["id"], comment["post_id"], check["id"]) == ("m1", "m1", "m1")
    assert (check["listed_as"], check["token"]) == ("m9", "2@noon")
    assert (post["author"], post["reply_count"], post["created_at"]) == ("ann", 1, "2026-11-20T10:00:00.000+00:00")
    assert post["last_reply_at"] == "2026-11-21T10:00:00.000+00:00"
    ((key, record),) = _records([parse(msgspec.json.encode(check))]).items()
    assert (key, record.own, record.token) == ("mails/m9", "m1", "2@noon")


def test_a_thread_that_goes_on_at_a_later_page_keeps_its_own_id(tmp_path: Path) -> None:
    (tmp_path / "slugs.toml").write_text(
        'profile = "generic"\nbase_url = "http://x"\nforums = ["f"]\n[pages.comments]\nurl = "/t/{thread}/{page}"\nrows = "li"\n'
        '[pages.comments.fields]\nid = "./@id"\nbody = "p"\n'
    )
    request = begun(PostTask(site="slugs", post="a-slug", own="17", forum="f", mode="changed", page=2, after="c1", known=1))
    response = HtmlResponse(request.url, body=b'<ul><li id="c1"><p>x</p></li><li id="c2"><p>y</p></li></ul>', request=request)
    *comments, check = collected(alone().parse_comments(response, **request.cb_kwargs))
    assert [comment["post_id"] for comment in comments] == ["17", "17"]
    assert (check["id"], check["listed_as"]) == ("17", "a-slug")


def test_a_raw_page_that_is_read_again_is_stored_under_the_threads_own_id(tmp_path: Path) -> None:
    (tmp_path / "mails.toml").write_text(
        'profile = "generic"\nbase_url = "http://x"\nforums = ["f"]\n[pages.comments]\nurl = "/m/{thread}/{page}"\nrows = "li"\n'
        '[pages.comments.post]\nid = { select = "h1::attr(id)" }\nbody = "h1"\n'
        '[pages.comments.fields]\nid = "./@id"\nbody = "p"\n'
    )
    first = b'<h1 id="m1">t</h1><ul><li id="m2"><p>x</p></li></ul><a rel="next" href="/m/m9/2">next</a>'
    begins = begun(PostTask(site="mails", post="m9", forum="f"))
    *_, following = collected(alone().parse_comments(HtmlResponse(begins.url, body=first, request=begins), **begins.cb_kwargs))
    assert following.meta["page"]["own"] == "m1"
    site = load_site("mails")
    for request, body in ((begins, first), (following, first.replace(b"m2", b"m3"))):
        page = RawPage.of(HtmlResponse(request.url, body=body, request=request), "mails", request.meta["page"], utc_now())
        items = list(_read(site, page))
        assert {item.get("post_id", item["id"]) for item in items} == {"m1"}


def test_answers_within_answers_may_come_on_any_page_where_no_count_says_how_many(tmp_path: Path) -> None:
    (tmp_path / "tree.toml").write_text(
        'profile = "generic"\nbase_url = "http://x"\nforums = ["f"]\n[pages.comments]\nurl = "/t/{thread}/{page}"\nrows = "li"\n'
        'nested = true\n[pages.comments.fields]\nid = "./@id"\nbody = "p"\n'
    )
    changed = PostTask(site="tree", post="t", mode="changed", page=3, after="17", known=17)
    assert begun(changed).url == "http://x/t/t/1"
    assert begun(msgspec.structs.replace(changed, expected=1)).url == "http://x/t/t/3"


def answered(request: Request, spider: ForumDetailSpider, status: int = 200, body: bytes = b"", **meta: Any) -> list[Any]:
    """What follows from an answer."""
    request.meta.update(meta)
    response = TextResponse(request.url, status=status, body=body, headers={"Content-Type": "application/json"}, request=request)
    return list(collected(request.callback(response, **request.cb_kwargs)))  # type: ignore[misc]


KNOWN = PostTask(site="example", post="p", forum="f", mode="check", known=23, after="c23")


def test_a_check_reads_the_whole_thread_also_where_a_page_that_the_version_before_asked_for_has_not_changed() -> None:
    spider, opening = alone(), begun(KNOWN)
    assert "conditional" not in opening.meta
    for old in (opening, spider._comments(load_site("example"), msgspec.convert(opening.cb_kwargs["reading"], Reading))):
        (again,) = answered(old, spider, 304)
        assert (again.url, msgspec.convert(again.cb_kwargs["reading"], Reading).page) == (opening.url, 1)
