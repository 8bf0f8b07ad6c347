"""Base of the forum spiders, with the middlewares that they bring into any project, and what becomes of a site file: one that
is missing or invalid holds its site until it is right or an operator gives the site up; each is checked by its first pages.

`sites new` and `trawl sites check` check a file before it is used. One that is mounted or copied was not: the first
list page and the first whole thread that a crawler reads by it are compared with what the reader without a site file finds there.
What does not fit is an error of the fleet, once for each content of the file; the site is crawled on.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote
from weakref import WeakKeyDictionary

import msgspec
import redis
from scrapy import Request, Spider
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.asyncio import sleep

from forum_reader.definition.page_requests import with_body
from forum_reader.definition.site import BreakerOptions
from forum_reader.page.soft_block import BlockVerdict, Cause
from forum_reader.readers.file_faults import faults_of_list, faults_of_thread, seen_without_file
from forum_reader.reading.found_values import matched_part
from forum_reader.reading.page_records import Asked, CommentsPage, ListedThread, ListPage, MoreComments
from forum_reader.reading.parse_body import TooMuchHere, strictly
from forum_reader.reading.read_page import read as read_by_file
from forums.breaker.middleware import watch_of
from forums.breaker.state import is_given_up, open_breaker
from forums.environment import Sites
from forums.records import FORUM_WRITER
from forums.records.stored import NEWEST_FIELDS, Marks, PostTask
from forums.records.tasks_and_items import encode, file_digest, is_wide, read_marks, thread_id
from forums.sites import PageGone, Site, SiteError, UnreadablePage, isolated, site_in_use, site_to_ask
from forums.sites.load import is_site_name
from forums.state import database_state
from forums.state.database_state import ThreadRecord
from forums.state.keys import ForumFleetKeys
from redis_components.errors import TaskMustWait
from redis_components.frontier.messages import Lane
from redis_components.scheduler import scheduler_of, set_aside
from redis_components.scrapy_glue.engine import ForCrawler, frontier_of
from redis_components.scrapy_glue.internals import in_thread
from redis_components.scrapy_glue.page_tracker import current_page
from redis_components.server.scripts import Patience
from redis_components.server.untrusted_values import as_text
from redis_components.spiders import RedisSpider
from workers.breaker.hosts import in_background
from workers.process import page_at_work
from workers.process.page_at_work import PageAtWork
from workers.state.holds import Breakers
from workers.state.registry import Registry

from .thread_reading import Reading

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from forum_reader.definition.pages import PageKind


AGAIN_S = 1.0
"""Interval of tries to open the breaker of a site; until it is open, requests that need the file go back to the queue."""

_site_files: WeakKeyDictionary[Crawler, SiteFiles] = WeakKeyDictionary()


class SiteFiles(ForCrawler):
    """Outermost downloader middleware: behind it every request with `meta["site"]` has a valid site."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._tried_at: dict[str, float] = {}
        self._given_up: set[str] = set()
        _site_files[crawler] = self

    def process_request(self, request: Request) -> Request | None:
        """Return the request, back to the queue, if its site's file is missing or invalid. Raises IgnoreRequest if the site was
        given up.
        """
        name = request.meta.get("site")
        if not isinstance(name, str):
            return None
        try:
            self.site(name)
        except TaskMustWait:
            return request.replace(dont_filter=True)
        except SiteError as error:
            set_aside(self._crawler, request, str(error))
            raise IgnoreRequest(str(error)) from error
        return None

    def site(self, name: str) -> Site:
        """Return the site, for requests. Raises TaskMustWait while the site is to be held, SiteError for an unknown site or
        one that was given up.
        """
        try:
            site = site_to_ask(name)
        except SiteError as error:
            if name in self._given_up or not is_site_name(name) or scheduler_of(self._crawler) is None:
                raise
            self._hold(name, error.in_a_line)
            raise TaskMustWait(name, str(error)) from error
        self._given_up.discard(name)
        return site

    def _hold(self, name: str, reason: str) -> None:
        now = time.monotonic()
        if now - self._tried_at.get(name, float("-inf")) < AGAIN_S:
            return
        self._tried_at[name] = now
        found = BlockVerdict(cause=Cause.SITE_FILE, reason=reason)

        def work(client: redis.Redis, by: str) -> None:
            if is_given_up(Breakers(client).get(name)):
                self._given_up.add(name)
            else:
                open_breaker(client, name, found, BreakerOptions(), url="", kind="", by=by)

        in_background(self._crawler, name, work)


def site_of_task(crawler: Crawler | None, name: str) -> Site:
    """Return the site of a start task. Raises TaskMustWait, SiteError."""
    files = None if crawler is None else _site_files.get(crawler)
    return files.site(name) if files is not None else site_to_ask(name)


MIDDLEWARES: dict[str, dict[str, int | None]] = {
    "DOWNLOADER_MIDDLEWARES": {
        "forums.spiders.base.SiteFiles": 40,  # holds requests of sites with a missing or invalid file
        # restricts a site's requests to its own origins, other requests to origins in site files
        "forums.sites.http.politeness.AllowedSites": 50,
        "forums.sites.http.politeness.SitePoliteness": 60,  # the site's delays; before the robots.txt middleware (100)
        "forums.breaker.middleware.SiteWatch": 560,  # finds block pages: after redirects and decompression, before a retry
        "scrapy.downloadermiddlewares.cookies.CookiesMiddleware": None,  # cookies that a site sets are not kept
        "forums.sites.http.politeness.SiteHeaders": 950,  # innermost: secrets go to trusted origins only, and never into Redis
        "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,  # a request can switch it off
    },
    "SPIDER_MIDDLEWARES": {"forums.breaker.middleware.BackToTheQueue": 10},  # requests pages again that a callback finds blocked
}
"""Setting -> middlewares and their orders; the project's entries override them."""


T = TypeVar("T")


class ForumSpider(RedisSpider):
    """A spider that serves sites in turns, each with the concurrency that its `politeness` allows."""

    turn_by = "site"
    reads_site_files = True  # by them its pages are judged and kept
    item_consumer = FORUM_WRITER
    newest_fields = NEWEST_FIELDS

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Add the middlewares of the forums to those of the project. Raises ConfigError for the folder of site files."""
        Sites.read()
        super().update_settings(settings)
        for name, ours in MIDDLEWARES.items():
            settings.set(name, {**ours, **settings.getdict(name)}, priority="spider")

    def setup_redis(self, crawler: Crawler | None = None) -> None:
        """Do as `RedisMixin`, and make the fleet's keys of what is checked."""
        super().setup_redis(crawler)
        self.checked_files = ForumFleetKeys().checked_files()

    def most_at_once(self, value: str) -> int | None:
        """Return the requests of one crawler at a time to the site; None: no limit, or no valid site file."""
        try:
            return site_in_use(value).politeness.crawler_concurrency
        except SiteError:
            return None

    @staticmethod
    async def in_thread(ask: Callable[[], T]) -> T:
        """Call `ask`, which queries Redis, in a thread, and retry while Redis is away or refuses. The frontier logs that."""
        patience = Patience()
        while True:
            try:
                return await in_thread(ask)  # the reactor must not wait for Redis
            except redis.RedisError as error:
                await sleep(patience.pause_after(error))


class ListSpider(ForumSpider):
    """A spider that compares lists with what is stored, and feeds threads to `forum_detail`."""

    def feed_thread(self, task: PostTask, *, lane: Lane = "", because: str | None = None) -> None:
        """Feed a thread to `forum_detail`. `because`: a tag of the change, for sites without change tokens."""
        name = thread_id(task.site, task.post)
        self.feed(name, task.token or because or "", encode(task), lane=lane, wide=is_wide(task), site=task.site)

    async def marks_of(self, site: str, *forums: str) -> list[Marks | None]:
        """Return the scan marks of these forums."""
        keys, ids = frontier_of(self.crawler).config.keys, [f"{site}/{forum}" for forum in forums]
        return await self.in_thread(lambda: read_marks(self.server, keys, ids))

    async def stored_threads(self, site: str, threads: list[str]) -> dict[str, ThreadRecord | None]:
        """Return the records of these threads, by id."""
        details, ids = frontier_of(self.crawler).config.next_keys, [thread_id(site, thread) for thread in threads]
        assert details is not None
        found = await self.in_thread(lambda: database_state.look_up(self.server, details, ids))
        return {thread: found[one] for thread, one in zip(threads, ids, strict=True)}


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
    **kwargs: Any,
) -> Request:
    """Build the request for a page at an address (`Site.url`), without dupefilter. `kwargs` are passed to the callback.
    `left_out`: the comments requested, on sites whose thread pages leave comments out.

    `conditional`: True: send validators, the callback may get a 304 (`redis_components.scrapy_glue.conditional`). False: fetch in
    full and store validators. None: neither.
    """
    asking = site.asking(kind, url)
    meta: dict[str, Any] = {
        "site": site.name,  # for `trawl pause --site`, and selects the politeness settings
        "page": {"kind": kind, "forum": forum, "thread": thread, "number": number},
    }
    if site.politeness.lane:
        meta["lane"] = site.politeness.lane
    if left_out is not None:
        meta["page"] |= msgspec.to_builtins(left_out)
    if conditional is not None and asking.method == "GET":
        meta |= {"conditional": file_digest(site), "conditional_reload": not conditional, "handle_httpstatus_list": [304]}
    return Request(
        asking.url, method=asking.method, headers=asking.headers, body=asking.body, callback=callback, errback=errback,
        cb_kwargs=kwargs, meta=meta, dont_filter=True, priority=priority,
    )  # fmt: skip


def address_of(response: Response) -> str:
    """Return the address of a page in the form of `Site.url`: for a POST request with its body."""
    request = response.request
    if request is None or request.method != "POST" or not request.body:
        return response.url
    return with_body(response.url, request.body.decode("utf-8", "replace"))


def merged_into(site: Site, response: Response, thread: str, own_url: str | None) -> str | None:
    """Return the id of the other thread whose page was sent in place of `thread`, by the address to which the site redirected;
    None where there is no redirect, or to an address of the same thread or of something else. `own_url`: the thread's own URL,
    which shows where its id stands: a page's number may be the same.
    """
    assert response.request is not None
    asked = (response.request.meta.get("redirect_urls") or [response.request.url])[0]
    if asked == response.url:
        return None
    id_ = site.pages.list.fields.id
    if id_.regex and not id_.prefix and matched_part(id_.regex, asked, id_.join) == thread:
        other = matched_part(id_.regex, response.url, id_.join)
    else:
        other = _in_its_place(asked, response.url, thread, own_url or "")
    return other if other != thread else None


def _in_its_place(asked: str, sent: str, thread: str, own_url: str) -> str | None:
    """Return what the address that was sent has where the requested one has the thread's id."""
    for own in dict.fromkeys((thread, quote(thread, safe=""))):
        before, found, _ = own_url.rpartition(own)
        if not asked.startswith(before + own):
            before, found, _ = asked.rpartition(own)
        if found and sent.startswith(before) and before[-1:] in "/=-":
            part = re.match(r"\d+(?=\D|$)" if thread.isdecimal() else r"[^/?&#]+", sent[len(before) :])
            return part[0] if part else None
    return None


def merged(reading: Reading, other: str, url: str) -> Reading:
    """Return the reading of the thread into which the one of `reading` was merged; its page is there already."""
    return Reading(started_at=reading.started_at, mode="check", thread=other, url=url, asked=reading.asked)


async def read_page(spider: Spider, response: Response, **more: str | None) -> Any:
    """Parse the page of a response as its request describes it; `more`: the thread's own URL. Every callback uses this function.

    Raises PageGone if the site reports the page as missing, UnreadablePage for a page that cannot be parsed and is given up,
    PageBlocked, which callbacks need not catch, for a page to be fetched again (`forums/breaker/middleware.py`).
    """
    site, watch = site_in_use(response.meta["site"]), watch_of(spider.crawler)
    asked = msgspec.convert({**response.meta["page"], **more}, Asked)
    try:
        page = await _read(site, response, asked)
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


async def _read(site: Site, response: Response, asked: Asked) -> Any:
    """Parse the page; in a child process if it was in flight when a crawler died."""
    leased = current_page.get()
    if leased is not None and leased.attempts:
        return await isolated.apart(site, response, asked)
    try:
        at_work = PageAtWork(url=response.url, site=site.name, kind=asked.kind)
        with page_at_work.reading(at_work), strictly():
            return read_by_file(site, response, asked)
    except TooMuchHere:
        return await isolated.apart(site, response, asked)


_known: dict[tuple[str, str], str] = {}
"""Digests of the files that this process has seen checked, by site and kind of page."""


async def check_list(spider: ForumSpider, site: Site, page: ListPage, response: Response) -> None:
    """Check the file by a list page, if it was not checked yet."""
    by_activity = site.pages.list.order == "activity"
    if page.threads:
        await _check(
            spider,
            site,
            "list",
            response,
            lambda: faults_of_list(page, seen_without_file(response), by_activity=by_activity),
        )


async def check_thread(spider: ForumSpider, site: Site, read: Reading, page: CommentsPage, response: Response) -> None:
    """Check the file by a thread's page, if that is the first one and it was not checked yet."""
    listed = ListedThread(id=read.thread, token="", url=read.url, reply_count=read.replies)

    def faults() -> Iterable[str]:
        seen = seen_without_file(response)
        return faults_of_thread(listed, page, set(), seen, response.text if seen is not None else "")

    if page.comments and read.page == 1:
        await _check(spider, site, "comments", response, faults)


async def _check(spider: ForumSpider, site: Site, kind: str, response: Response, faults: Callable[[], Iterable[str]]) -> None:
    digest = file_digest(site)
    if spider.server is None or _known.get((site.name, kind)) == digest:  # None: it crawls apart from Redis
        return
    _known[site.name, kind] = digest  # before the question to Redis: other pages come meanwhile
    if not await spider.in_thread(lambda: _is_new(spider.server, spider.checked_files, f"{site.name}/{kind}", digest)):
        return
    if found := await spider.in_thread(lambda: next(iter(faults()), "")):
        what = f"its file reads {response.url} wrongly: {found}; `trawl sites check {site.name} --live` reports all"
        await spider.in_thread(lambda: Registry(spider.server).report_error(f"site {site.name}", what))


def _is_new(client: redis.Redis, key: str, field: str, digest: str) -> bool:
    """Return True for a content of the file by which no page of this kind was checked; note it."""
    if as_text(client.hget(key, field) or b"") == digest:
        return False
    client.hset(key, field, digest)
    return True
