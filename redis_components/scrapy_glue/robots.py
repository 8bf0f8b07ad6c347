"""robots.txt, fetched once a day for the whole fleet and obeyed by every page.

    ROBOTSTXT_OBEY = True
    DOWNLOADER_MIDDLEWARES = {
        "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
        "redis_components.scrapy_glue.robots.RobotsTxt": 100,
    }

By RFC 9309 4xx allows everything; after 5xx or 429 requests of the site wait in the frontier, longer each time, and fail after
GIVE_UP answers of that kind. A page whose robots.txt gets no answer at all fails as if it had been asked for itself.
`Crawl-delay` and `Request-rate` slow the lane of the site. Scrapy's own middleware does none of that, and in Scrapy 2.19 it
holds no page to the rules from the third one on that waits for the same file.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.asyncio import sleep
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import build_from_crawler
from twisted.internet.defer import Deferred

from redis_components import connection
from redis_components.politeness.robots_cache import FileKind, RobotsCache, RobotsFile, RobotsReply, rate_of, readable

from .engine import keys_of, known_frontier, lane_of
from .internals import NotNow, from_redis
from .page_tracker import tracker_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.robotstxt import RobotParser

HELD_S = 30.0
"""Seconds for which a process uses its copy, before it asks Redis for a newer one."""
POLL_S = 0.25
"""Between two looks at a file that another process fetches."""
TIMEOUT_S = 15.0
"""For an answer; shorter than the time for which the others wait (`robots_cache.CLAIM_S`)."""
GIVE_UP = 10
"""Answers 5xx or 429 in a row, an hour and a half all in all, after which pages of the site fail."""
MOST_FILES, MOST_BYTES = 1000, 16 << 20
"""Files that a process keeps parsed."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Held:
    """This process's copy of one origin's file: used until `until` without asking; `fetched` is when it was last waited for."""

    file: RobotsFile
    rules: RobotParser | None
    version: str
    until: float
    fetched: float
    failures: int


class RobotsTxt(RobotsTxtMiddleware):
    """Takes the place of Scrapy's, under the same settings."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._cache: RobotsCache | None = None
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._bytes = 0
        self._turns: dict[str, list[Deferred[None]]] = {}

    async def process_request(self, request: Request) -> None:  # type: ignore[override]  # it also takes a spider
        """Apply the rules. Raises IgnoreRequest for a page that they forbid, NotNow where it waits in the frontier."""
        if request.meta.get("dont_obey_robotstxt") or not request.url.startswith(("http:", "https:")):
            return
        began, was_limited = time.monotonic(), bool(lane_of(self.crawler, request))
        held, sent = await self._learned(request)
        if sent and (book := tracker_of(self.crawler)) is not None:
            book.count_sent(request)
        if held.file.kind is FileKind.UNREACHABLE:
            if held.failures < GIVE_UP and self._put_off(request, sent):
                raise NotNow("robots.txt could not be read")
            raise IgnoreRequest(f"robots.txt was answered by 5xx or 429 {held.failures} times in a row")
        self.process_request_2(held.rules, request)
        # Its time was spent on robots.txt, or it was leased before the site had limits.
        if lane_of(self.crawler, request) and (held.fetched > began or not was_limited) and self._put_off(request, sent):
            raise NotNow("it waits for its turn")

    async def _learned(self, request: Request) -> tuple[Held, bool]:
        """Return the file that holds for the request now, and True where its time was spent on that. One page asks, others wait
        for it.
        """
        sent = False
        url = urlparse_cached(request)
        origin = f"{url.scheme}://{url.netloc.rpartition('@')[2]}"
        while (held := self._held.get(origin)) is None or held.until <= time.monotonic():
            if origin in self._turns:
                turn: Deferred[None] = Deferred()
                self._turns[origin].append(turn)
                await maybe_deferred_to_future(turn)
                continue
            self._turns[origin] = []
            try:
                sent = await self._learn(origin, request)
            finally:
                for turn in self._turns.pop(origin):
                    turn.callback(None)
        self._held.move_to_end(origin)
        return held, sent

    async def _learn(self, origin: str, request: Request) -> bool:
        """Return True where the site was asked."""
        known, began = self._held.get(origin), time.monotonic()
        reply = await self._ask(origin, known.version if known else "")
        while reply.state == "wait":
            await sleep(min(POLL_S, reply.seconds + 0.01))
            reply, began = await self._ask(origin, ""), 0.0
        if reply.state == "same" and known is not None:
            known.until = time.monotonic() + min(HELD_S, reply.seconds)
            return False
        asks = reply.state == "fetch" or reply.file is None
        if asks:
            reply, began = await self._fetch_for_all(origin, reply.file, request), 0.0
        await self._hold(origin, reply, request, waited=not began)
        return asks

    async def _ask(self, origin: str, version: str) -> RobotsReply:
        """Ask Redis for the file; without Redis each process uses the file that it has, or fetches it for itself."""
        alone = RobotsReply("same", HELD_S, None) if version else RobotsReply("fetch", 0.0, None)
        return await from_redis(lambda: self._redis().ask(origin, version)) or alone

    async def _fetch_for_all(self, origin: str, old: RobotsFile | None, request: Request) -> RobotsReply:
        try:
            file = await self._fetch(origin, old, request)
        except IgnoreRequest as error:
            if isinstance(error, NotNow):
                raise
            file = RobotsFile(FileKind.NONE)  # a redirect without an end, or to where nothing may be fetched
        except Exception:
            await from_redis(lambda: self._redis().give_up(origin))
            raise  # there was no answer: the page shares the fate that it would have had
        lane = lane_of(self.crawler, request, or_default=True)
        reply = await from_redis(lambda: self._redis().store(origin, file, lane))
        return reply or RobotsReply("known", HELD_S, file, 1)

    async def _fetch(self, origin: str, old: RobotsFile | None, page: Request) -> RobotsFile:
        """Fetch the site's present file; `old` is confirmed by its validators. Raises the errors of the download."""
        headers: dict[str, Any] = {name: page.headers[name] for name in ("User-Agent",) if name in page.headers}
        if old is not None and old.kind is FileKind.RULES:
            headers |= {"If-None-Match": old.etag} if old.etag else {}
            headers |= {"If-Modified-Since": old.modified} if old.modified else {}
        meta: dict[str, Any] = {"dont_obey_robotstxt": True, "dont_retry": True, "download_timeout": TIMEOUT_S}
        meta |= {name: page.meta[name] for name in ("proxy",) if name in page.meta}
        if lane := lane_of(self.crawler, page, or_default=True):
            meta["lane"] = lane
        asked = Request(f"{origin}/robots.txt", priority=self.DOWNLOAD_PRIORITY, headers=headers, meta=meta, callback=NO_CALLBACK)
        assert self.crawler.engine is not None
        self._stats.inc_value("robotstxt/request_count")
        response = await self.crawler.engine.download_async(asked)
        self._stats.inc_value("robotstxt/response_count")
        self._stats.inc_value(f"robotstxt/response_status_count/{response.status}")
        return self._file(response, old, page)

    def _file(self, response: Response, old: RobotsFile | None, page: Request) -> RobotsFile:
        if response.status == 304 and old is not None:
            return old
        if response.status >= 500 or response.status == 429:
            logger.warning("%s: HTTP %d: its site waits until it is answered", response.url, response.status)
            return RobotsFile(FileKind.UNREACHABLE)
        if not 200 <= response.status < 300:
            return RobotsFile(FileKind.NONE)
        body = readable(response.body)
        etag, modified = ((response.headers.get(name) or b"").decode("latin-1") for name in ("ETag", "Last-Modified"))
        return RobotsFile(FileKind.RULES, body, etag, modified, self._rate(self._parsed(body), page))

    def _parsed(self, body: bytes) -> RobotParser:
        parser: RobotParser = build_from_crawler(self._parserimpl, self.crawler, body)
        return parser

    def _rate(self, rules: RobotParser, page: Request) -> float | None:
        agent = self._robotstxt_useragent or page.headers.get("User-Agent") or self._default_useragent
        name = agent.decode("latin-1") if isinstance(agent, bytes) else agent
        request_rate = getattr(getattr(rules, "rp", None), "request_rate", lambda _: None)(name)
        return rate_of(rules.crawl_delay(name), *((request_rate.requests, request_rate.seconds) if request_rate else ()))

    async def _hold(self, origin: str, reply: RobotsReply, request: Request, *, waited: bool) -> None:
        file = reply.file
        assert file is not None
        known, version = self._held.get(origin), file.version
        rules = known.rules if known is not None and known.version == version else None
        if rules is None and file.kind is FileKind.RULES:
            rules = self._parsed(file.body)
            await self.crawler.signals.send_catch_log_async(signal=signals.robots_parsed, robotparser=rules, request=request)
        now = time.monotonic()
        self._forget(origin)
        self._held[origin] = Held(file, rules, version, now + min(HELD_S, reply.seconds), now if waited else 0.0, reply.failures)
        self._bytes += len(file.body)
        while len(self._held) > 1 and (len(self._held) > MOST_FILES or self._bytes > MOST_BYTES):
            self._forget(next(iter(self._held)))
        self._slow_lane(request, file, reply.seconds)

    def _forget(self, origin: str) -> None:
        if (held := self._held.pop(origin, None)) is not None:
            self._bytes -= len(held.file.body)

    def _slow_lane(self, request: Request, file: RobotsFile, seconds: float) -> None:
        """Slow the lane of the site down, or leave it alone, before the other processes learn of it from Redis."""
        frontier = known_frontier(self.crawler)
        lane = lane_of(self.crawler, request, or_default=True)
        if frontier is None or not lane:
            return
        if file.kind is FileKind.UNREACHABLE:
            frontier.wait(lane, max(1.0, seconds))
        elif file.rate is not None:
            frontier.limits.add(lane)

    def _put_off(self, request: Request, sent: bool) -> bool:
        return (book := tracker_of(self.crawler)) is not None and book.put_off(request, sent=sent)

    def _redis(self) -> RobotsCache:
        """Return the cache; in a thread, as the first call may have to find the server."""
        if self._cache is None:
            settings = self.crawler.settings
            claim = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
            self._cache = RobotsCache(connection.from_settings(settings), keys_of(self.crawler), claim)
        return self._cache
