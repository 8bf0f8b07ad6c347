"""What both spiders have in common: that sites take turns, the request for a page of a site, and reading the page that came."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import redis
from scrapy import Request
from scrapy.utils.asyncio import run_in_thread, sleep

from forums.breaker.middleware import watch_of
from forums.records.file_digest import file_digest
from forums.records.start_tasks import NEWEST_FIELDS, ForumTask, PostTask
from forums.sites import PageGone, Site, SiteError, UnreadablePage, site_in_use
from forums.sites.definition.page_body import with_body
from forums.sites.reading import isolated
from forums.sites.reading.asked_page import Asked
from forums.sites.reading.reading_budget import TooMuchHere
from redis_components.connection import is_servers_state
from redis_components.frontier.session import SLOWEST_RETRY_S
from redis_components.scrapy_glue.page import current_lease, current_page
from redis_components.spiders import RedisSpider
from workers.process import page_at_work
from workers.process.item_consumers import FORUM_WRITER
from workers.process.page_at_work import PageAtWork
from workers.process.traces import TRACEPARENT

from .slow_pages import noticed

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.http import Response

    from forums.sites.definition.pages import PageKind
    from forums.sites.reading.read_page import MoreComments


T = TypeVar("T")


class ForumSpider(RedisSpider):
    """Sites take turns, and each has as many places in a crawler as its `politeness` lets it use."""

    turn_by = "site"
    item_consumer = FORUM_WRITER
    newest_fields = NEWEST_FIELDS
    items_carry_traceparent = True

    def most_at_once(self, value: str) -> int | None:
        """The site's `politeness.concurrency`; None where its file is gone, or was never right."""
        try:
            return site_in_use(value).politeness.concurrency
        except SiteError:
            return None

    @staticmethod
    async def in_thread(ask: Callable[[], T]) -> T:
        """What Redis says. Waits for it where it is away, or refuses; the frontier says so in the log."""
        pause_s = 0.1
        while True:
            try:
                return await run_in_thread(ask)  # the reactor never waits for Redis
            except redis.RedisError as error:
                if not (isinstance(error, redis.exceptions.ClusterError) or is_servers_state(error)):
                    raise
                await sleep(pause_s)
                pause_s = min(SLOWEST_RETRY_S, 2 * pause_s)


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
    left_out: MoreComments | None = None,
    priority: int = 0,
    conditional: bool | None = None,
    stored: str = "",
    **kwargs: Any,
) -> Request:
    """The request for a page at an address (`Site.url`). `kwargs` are for the callback. Each page is asked for whenever somebody
    asks: no dupefilter. `left_out`: the comments that it has, where pages of the thread leave them out.

    `conditional`: what its callback may get is a 304 (`redis_components.scrapy_glue.conditional`); False: it gets the whole page,
    which is remembered to be asked for so; None: it is not remembered. `stored` is another text whenever something else is
    stored of the page.
    """
    asking = site.asking(kind, url)
    meta: dict[str, Any] = {
        "site": site.name,  # the name by which `trawl pause --site` knows it, and whose manners it follows
        "page": {"kind": kind, "forum": forum, "thread": thread, "number": number},
    }
    if site.politeness.lane:
        meta["lane"] = site.politeness.lane
    if left_out is not None:
        meta["page"] |= msgspec.to_builtins(left_out)
    if conditional is not None and asking.method == "GET":
        read_as = f"{file_digest(site)} {stored}".strip()
        meta |= {"conditional": read_as, "conditional_reload": not conditional, "handle_httpstatus_list": [304]}
    return Request(
        asking.url, method=asking.method, headers=asking.headers, body=asking.body, callback=callback, errback=errback,
        cb_kwargs=kwargs, meta=meta, dont_filter=True, priority=priority,
    )  # fmt: skip


def following(request: Request, task: ForumTask | PostTask) -> Request:
    """The same request, as part of the trace that its start task names."""
    if task.traceparent:
        request.meta[TRACEPARENT] = task.traceparent
    return request


def address_of(response: Response) -> str:
    """Where a page is, as `Site.url` says it: with the body that it was asked for with."""
    request = response.request
    if request is None or request.method != "POST" or not request.body:
        return response.url
    return with_body(response.url, request.body.decode("utf-8", "replace"))


async def read_page(spider: Spider, response: Response, **more: str | None) -> Any:
    """What the page holds, as its request says what it is; `more`: the thread's own URL. Every page that a callback gets goes
    through here.

    Raises PageGone where the site says that there is none, UnreadablePage for what is none and is given up, PageBlocked, which
    no callback need catch, for what is to be fetched again (`forums/breaker/middleware.py`).
    """
    site, watch = site_in_use(response.meta["site"]), watch_of(spider.crawler)
    asked = msgspec.convert({**response.meta["page"], **more}, Asked)
    try:
        page = await _read(spider, site, response, asked)
    except PageGone as error:
        if watch is not None:
            watch.gone(response, error)
        raise  # it is the site's own answer
    except UnreadablePage as error:
        if watch is not None:
            watch.unreadable(response, error)
        raise
    if watch is not None:
        watch.read(response, page)
    return page


async def _read(spider: Spider, site: Site, response: Response, asked: Asked) -> Any:
    """The page; one that was in flight when its process died is not read here again."""
    leased = current_page.get()
    if leased is not None and leased.attempts:
        return await isolated.apart(site, response, asked)
    try:
        at_work = PageAtWork(
            url=response.url,
            site=site.name,
            kind=asked.kind,
            forum=asked.forum,
            thread=asked.thread,
            lease=current_lease(),
        )
        with page_at_work.reading(at_work), noticed(spider, site.name, asked.kind, response.url):
            return isolated.here(site, response, asked)
    except TooMuchHere:
        return await isolated.apart(site, response, asked)
