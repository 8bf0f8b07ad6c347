"""Marks a test with the assumptions that it asserts; one test compares them with those that are declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., object])

DECLARED: dict[str, dict[str, str]] = {
    "scrapy": {
        "_Slot.inprogress": "each scheduled request enters this set when Scrapy begins with it, and leaves it once, last of all",
        "_Slot.nextcall": "`schedule` makes the engine ask the scheduler for a request soon",
        "Scraper.handle_spider_error": "the scraper calls it on itself for all that callbacks, errbacks and middlewares raise",
        "Request.__hash__": "requests are compared by identity, so a copy never acks the original",
        "Request.__slots__": "`codec/requests.py` sets every field of a request without its constructor, which takes 5 µs",
        "_Slot.scheduler": "the scheduler of a crawl; the slot is there while a spider runs",
        "ExecutionEngine.start_time": "None until the engine has started: a crawl whose components failed to open never did",
        "DownloadHandlers.download_request_async": "the downloader calls it when it is the turn of a request at its site",
        "DownloaderMiddlewareManager.download_async": "awaited for each download, its middlewares included",
        "Scraper._scrape": "awaited for each response: the spider middlewares, the callback, and all that comes of it",
        "Scraper.start_itemproc_async": "awaited for each item: its pipelines and the handlers of its signals",
        "Scraper.handle_spider_output_async": "iterates over what a callback gives",
        "Slot.queue": "of a downloader: pairs of a request that waits for its turn and the Deferred that lets it go on",
        "Slot.lastseen": "when it sent last (s of `time.monotonic`); with 0 and after `close` it waits for no delay",
        "Slot.active": "the requests of a slot from `_enqueue_request` to their answers, sent or not",
        "Downloader._enqueue_request": "called for each request after the middlewares; `_get_slot` makes its slot",
        "Downloader._process_queue": "counts a request as in transfer only when its task runs, so a slot's limit does not hold",
        "Downloader.total_concurrency": "CONCURRENT_REQUESTS; the engine starts no request while so many are in `active`",
        "StatsCollector.__getattribute__": "wraps methods to warn of a deprecated argument, and does nothing else",
        "MemoryStatsCollector._stats": "the stats of this process, by name",
        "BaseDupeFilter.log": "only warns of itself: a class that does not override it has no log of its filtered requests",
        "RobotsTxtMiddleware.process_request_2": "refuses a request that the given rules forbid; with None it refuses nothing",
        "RobotsTxtMiddleware._parserimpl": "the class of ROBOTSTXT_PARSER",
        "RobotsTxtMiddleware._stats": "the stats of the crawl",
        "RobotsTxtMiddleware._robotstxt_useragent": "ROBOTSTXT_USER_AGENT; counts more than the request's own header",
        "RobotsTxtMiddleware._default_useragent": "USER_AGENT",
        "Crawler._engine": "None until the crawl is open; `Crawler.engine` raises then",
        "Crawler._stats": "the crawl's stats collector; None until there is one",
        "Crawler.stop_async": "sets `crawling` to False and stops the engine, and is lost before the engine runs",
        "CrawlerProcess": "unlike CrawlerRunner it installs the DNS resolver and sizes the reactor's threads",
        "AiohttpDownloadHandler": "its `_session` is made of `_bind_address` and `_pool_size_per_host`, with a limit in all",
        "AiohttpDownloadHandler._extract_headers": "makes Scrapy's headers of a response of aiohttp's",
        "_ClientResponse": "the class of the session's responses",
        "RedirectMiddleware.from_crawler": "searches for a RefererMiddleware, warns where there is none, and sets `crawler`",
        "RedirectMiddleware._build_redirect_request": "makes each redirected request",
        "_parallel_asyncio": "awaits a coroutine with each object that a callback gives, which one task asks for; neither raises",
        "AsyncioLoopingCall._to_sleep": "seconds until the next call, by `time.monotonic`, `_start_time` and `interval`",
        "Downloader.per_slot_settings": "read when a download slot is made: its `concurrency` and `delay`",
        "Downloader.slots": "by key; each has `concurrency` and `delay`, which are read at each request",
        "CookiesMiddleware": 'keeps the cookies of a request in the jar that its `meta["cookiejar"]` names',
    },
    "celery": {
        "worker.state.requests": "the tasks that a worker has taken and not finished, by id, with their names",
        "controller._quick_release": "gives back the place in the pool that a task has taken; there where a semaphore is",
        "worker.pool_cls": "named by its module: prefork, threads, solo, ...",
        "billiard.process.current_process": "`MainProcess` where tasks are run by threads of the worker",
        "backends.asynchronous.E_RETRY_LIMIT_EXCEEDED": "a RuntimeError with that text where results' Redis does not come back",
    },
    "sqlalchemy": {
        "SQLCompiler.binds": "the parameters by name, each with its type",
        "SQLCompiler.positional": "true if the driver takes parameters by position",
        "SQLCompiler.positiontup": "names of the parameters in the order of their positions",
        "TypeEngine.bind_processor": "converts a value of the type for the driver; None: no conversion",
    },
}
"""Library -> name of an internal that Trawl uses -> the assumption about it."""
ASSERTED: dict[str, set[str]] = {}
"""Library -> names."""


def asserts(library: str, *names: str) -> Callable[[Test], Test]:
    """Of a test."""
    ASSERTED.setdefault(library, set()).update(names)
    return lambda test: test
