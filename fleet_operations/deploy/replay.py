"""Crawls a service's spider on pages that were kept, in a separate process without network, and writes what it yields.

`run_module.py fleet_operations.deploy.replay`, with the crawler's command line; its settings name the folder of the pages (WARC)
and the file of the `Replayed`. Pipelines, extensions and feeds of the project do not run: they would write where it crawls.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes
from twisted.python.failure import Failure

from redis_components.errors import ConfigError
from redis_components.pipelines import default_serialize
from redis_components.scrapy_glue.engine import ForCrawler
from workers.crawler.__main__ import load_settings
from workers.crawler.adapt_settings import SCRAPYS_OWN, fed_from_redis
from workers.process.memory import cap
from workers.process.options import own_options
from workers.raw_pages.store import SUFFIX, RawPage, pages_in

from .rehearsal import OUT, PAGES, Replayed

MEMORY_BYTES = 2 * 1024**3
MOST_PAGES, MOST_BYTES = 5_000, 500 * 1024 * 1024
_ALONE: dict[str, Any] = {
    **SCRAPYS_OWN,
    "ITEM_PIPELINES": {},
    "EXTENSIONS": {},
    "FEEDS": {},
    "FEED_URI": None,
    "TELNETCONSOLE_ENABLED": False,
    "ROBOTSTXT_OBEY": False,
    "RETRY_ENABLED": False,
    "HTTPCACHE_ENABLED": False,
    "AUTOTHROTTLE_ENABLED": False,
    "DOWNLOAD_DELAY": 0,
    "JOBDIR": None,
    "LOG_LEVEL": "ERROR",
    "LOG_FILE": None,
    "CLOSESPIDER_TIMEOUT": 900,
}


class KeptPages(ForCrawler):
    """Download handler that answers with kept pages alone."""

    lazy = False

    def __init__(self, crawler: Crawler) -> None:
        assert crawler.stats is not None
        super().__init__(crawler)
        self._stats, self._pages = crawler.stats, dict[str, RawPage]()
        size = 0
        for file in sorted(Path(crawler.settings[PAGES]).glob(f"*/*{SUFFIX}"), reverse=True):
            for page in pages_in(file):
                size += len(page.body)
                if len(self._pages) < MOST_PAGES and size < MOST_BYTES:
                    self._pages.setdefault(page.url, page)
                    self._pages.setdefault(page.request_url, page)

    async def download_request(self, request: Request) -> Response:
        """Return the kept page. Raises IgnoreRequest where there is none."""
        if (page := self._pages.get(request.url)) is None:
            self._stats.inc_value("replay/missing")
            raise IgnoreRequest("this page was not kept")
        self._stats.inc_value("replay/pages")
        headers = Headers(dict(page.headers))
        kind = responsetypes.from_args(headers=headers, url=page.url, body=page.body)
        return kind(url=page.url, status=page.status, headers=headers, body=page.body, request=request)

    async def close(self) -> None:
        """Release nothing."""


def _offline(event: str, _arguments: object) -> None:
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        raise PermissionError("a rehearsal has no network")


def main() -> None:
    """Crawl, and write what came."""
    cap(MEMORY_BYTES)
    options, found, errors = own_options(), Replayed(), Counter[str]()
    settings = load_settings(options)
    settings.setdict(_ALONE, priority="cmdline")
    settings.set("DOWNLOAD_HANDLERS", dict.fromkeys(("http", "https", "ftp", "s3"), KeptPages), priority="cmdline")
    process = CrawlerProcess(settings, install_root_handler=False)
    logging.getLogger().setLevel(logging.ERROR)
    spider = process.spider_loader.load(options.loads or options.spider)
    if fed_from_redis(spider):
        raise ConfigError(f"{options.spider} is fed from Redis: a rehearsal is for spiders with start requests")
    crawler = process.create_crawler(spider)

    def item_scraped(item: Any, response: Response | None, spider: Spider) -> None:  # noqa: ARG001
        text = default_serialize(item)
        found.items.append((response.url if response is not None else "", msgspec.json.decode(text)))

    def spider_error(failure: Failure, response: Response, spider: Spider) -> None:  # noqa: ARG001
        errors[f"{failure.type.__name__ if failure.type else ''}: {failure.getErrorMessage()}"[:300]] += 1

    crawler.signals.connect(item_scraped, signals.item_scraped)
    crawler.signals.connect(spider_error, signals.spider_error)
    sys.addaudithook(_offline)
    process.crawl(crawler, **options.arguments)
    process.start(install_signal_handlers=False)
    assert crawler.stats is not None
    found.pages, found.missing = crawler.stats.get_value("replay/pages", 0), crawler.stats.get_value("replay/missing", 0)
    found.errors = dict(errors.most_common(50))
    found.items.sort(key=lambda one: one[0])
    Path(settings[OUT]).write_bytes(msgspec.json.encode(found))


if __name__ == "__main__":
    main()
