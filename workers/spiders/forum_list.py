"""Scans list pages and turns each new or changed thread into a start task of `forum_detail`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from scrapy import Request
from scrapy.spidermiddlewares.httperror import HttpError

from redis_components.page_book import reason_of
from redis_components.spiders import RedisSpider
from workers.sites import Site, load_site

from .task_data import ForumTask, PostTask, encode
from .timestamp import utc_now

if TYPE_CHECKING:
    from scrapy.http import Response
    from twisted.python.failure import Failure


class Thread(msgspec.Struct):
    """One thread of a list page, as far as the scan needs it."""

    id: str
    reply_count: int
    last_reply_at: str | None = None

    @property
    def token(self) -> str:
        """Changes whenever the thread does."""
        return f"{self.reply_count}@{self.last_reply_at}"


class ListPage(msgspec.Struct):
    """One list page."""

    pages: int
    threads: list[Thread]


class ForumListSpider(RedisSpider):
    """Start task: `{"site": "demo", "forum": "f1"}`. One scan reads list pages one after the other, newest reply first."""

    name = "forum_list"
    feeds = "forum_detail"

    def make_request_from_data(self, data: bytes) -> Request:
        """The first list page of the forum. Raises for a task without site or forum, SiteError for an unknown site."""
        task = msgspec.json.decode(data, type=ForumTask)
        site = load_site(task.site)
        if task.forum not in site.forums:
            raise ValueError(f"unknown forum {task.forum!r}: site {site.name!r} has {', '.join(site.forums)}")
        return self._list_page(site, task.forum, 1, {"started_at": utc_now(), "pages": 0, "threads": 0})

    def _list_page(self, site: Site, forum: str, page: int, scan: dict[str, Any]) -> Request:
        return Request(
            site.list_url(forum, page),
            callback=self.parse_list,
            errback=self.scan_failed,
            cb_kwargs={"site_name": site.name, "forum": forum, "page": page, "scan": scan},
            meta={"site": site.name},  # the name by which `trawl pause --site` knows it
            dont_filter=True,  # each scan reads the same URLs again
            priority=10,  # a scan that has begun ends before the next begins
        )

    def parse_list(self, response: Response, site_name: str, forum: str, page: int, scan: dict[str, Any]) -> Iterator[Any]:
        """Feed the threads to `forum_detail` and go on to the next page; Redis drops those whose token it knows."""
        site = load_site(site_name)
        listing = msgspec.json.decode(response.body, type=ListPage)
        for thread in listing.threads:
            self.feed(f"{site.name}/{thread.id}", thread.token, encode(PostTask(site=site.name, post=thread.id)))
        scan = {**scan, "pages": page, "threads": scan["threads"] + len(listing.threads)}
        if page < min(listing.pages, site.max_pages):
            yield self._list_page(site, forum, page + 1, scan)
        else:
            yield self._report(site.name, forum, scan, "complete", None)

    def scan_failed(self, failure: Failure) -> Iterator[Any]:
        """End the scan: the next one begins at page 1 anyway. A page that is gone (404) is the end of a list that became
        shorter.
        """
        request: Request = failure.request  # type: ignore[attr-defined]  # the engine puts it there
        kwargs = request.cb_kwargs
        gone = isinstance(failure.value, HttpError) and failure.value.response.status == 404 and kwargs["page"] > 1
        reason = None if gone else f"page {kwargs['page']}: {reason_of(failure)}"
        if reason:
            self.logger.warning("scan of %s/%s failed: %s", kwargs["site_name"], kwargs["forum"], reason)
        yield self._report(kwargs["site_name"], kwargs["forum"], kwargs["scan"], "failed" if reason else "complete", reason)

    def _report(self, site: str, forum: str, scan: dict[str, Any], outcome: str, reason: str | None) -> dict[str, Any]:
        return {
            "kind": "scan",
            "site": site,
            "forum_id": forum,
            **scan,
            "finished_at": utc_now(),
            "outcome": outcome,
            "reason": reason,
        }
