"""Raw pages of any spider: the responses of a crawl in `<data dir>/raw/<spider>/<YYYY-MM-DD>/`, as WARC files.

    DOWNLOADER_MIDDLEWARES = {"workers.raw_pages.any_spider.KeepRawPages": 562}
    RAW_PAGES_KEEP_DAYS = 30

Without RAW_PAGES_KEEP_DAYS no page is stored.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import NotConfigured

from redis_components.frontier.stock import shared_clock
from redis_components.scrapy_glue.engine import ForCrawler
from redis_components.server.names import service_name
from redis_components.setting_values import number_of

from .store import RawPage, RawStore, prune, raw_dir

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class KeepRawPages(ForCrawler):
    """Downloader middleware, inside of Scrapy's retries and outside of decompression. Each crawler stores pages on its disk and
    deletes pages older than RAW_PAGES_KEEP_DAYS there. For the forum spiders the site files decide instead.
    """

    def __init__(self, crawler: Crawler) -> None:
        """Begin; raises NotConfigured if no page is to be stored, ConfigError for an invalid number."""
        super().__init__(crawler)
        keep_days = number_of(crawler.settings, "RAW_PAGES_KEEP_DAYS", 0.0)
        if getattr(crawler.spidercls, "reads_site_files", False):
            raise NotConfigured
        if not keep_days > 0:
            raise NotConfigured("RAW_PAGES_KEEP_DAYS is 0")
        assert crawler.stats is not None
        self._name = service_name(crawler.spidercls.name)
        self._store = RawStore(
            raw_dir(), inc_value=crawler.stats.inc_value, rounds=lambda: prune(raw_dir(), {self._name: keep_days})
        )
        crawler.signals.connect(self._store.close, signals.spider_closed)

    def process_response(self, request: Request, response: Response) -> Response:
        """Store a successful response with a body; return the response."""
        if 200 <= response.status < 300 and not request.meta.get("unchanged"):
            response.request = request  # the engine sets it later
            at = datetime.fromtimestamp(shared_clock.time(), UTC)
            self._store.keep(RawPage.of(response, self._name, {"kind": "page"}, at.isoformat(timespec="milliseconds")))
        return response
