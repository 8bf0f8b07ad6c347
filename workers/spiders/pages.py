"""What both spiders have in common: that sites take turns, the request for a page of a site, and reading the page that came."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy import Request

from redis_components.spiders import RedisSpider
from workers.breaker.watch import ReadPage, watch_of
from workers.sites import PageGone, Site, SiteError, UnreadablePage, site_in_use

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.http import Response

    from workers.sites.pages import PageKind

Read = TypeVar("Read", bound=ReadPage)


class ForumSpider(RedisSpider):
    """Sites take turns, and each has as many places in a crawler as its `politeness` lets it use."""

    turn_by = "site"

    def most_at_once(self, value: str) -> int | None:
        """The site's `politeness.concurrency`; None where its file is gone, or was never right."""
        try:
            return site_in_use(value).politeness.concurrency
        except SiteError:
            return None


def page_request(
    site: Site,
    kind: PageKind,
    url: str,
    callback: Callable[..., Any],
    errback: Callable[..., Any],
    *,
    forum: str = "",
    thread: str = "",
    number: int = 1,
    priority: int = 0,
    **kwargs: Any,
) -> Request:
    """The request for a page. `kwargs` are for the callback. Each page is asked for whenever somebody asks: no dupefilter."""
    meta = {
        "site": site.name,  # the name by which `trawl pause --site` knows it, and whose manners it follows
        "page": {"kind": kind, "forum": forum, "thread": thread, "number": number},
    }
    return Request(url, callback=callback, errback=errback, cb_kwargs=kwargs, meta=meta, dont_filter=True, priority=priority)


def read_page(spider: Spider, response: Response, read: Callable[[Site, Response], Read]) -> Read:
    """What the page holds. Every page that a callback gets goes through here.

    Raises PageGone where the site says that there is none, UnreadablePage for what is none and is given up, PageBlocked, which
    no callback need catch, for what is to be fetched again (`workers/breaker/watch.py`).
    """
    site, watch = site_in_use(response.meta["site"]), watch_of(spider.crawler)
    try:
        page = read(site, response)
    except PageGone:
        raise  # it is the site's own answer
    except UnreadablePage as error:
        if watch is not None:
            watch.unreadable(response, error)
        raise
    if watch is not None:
        watch.read(response, page)
    return page
