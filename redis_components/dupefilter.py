"""Which requests were seen before. Within the Scheduler the check happens in the step that stores the request; used alone it
is one SADD.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Self

import scrapy.utils.request
from scrapy.dupefilters import BaseDupeFilter

from . import defaults
from .connection import get_redis_from_settings
from .namespace import prefixed

if TYPE_CHECKING:
    import redis
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from scrapy.utils.request import RequestFingerprinterProtocol

logger = logging.getLogger(__name__)


class RFPDupeFilter(BaseDupeFilter):
    """Dupefilter by request fingerprint in the Redis set `key`. Members are the raw bytes of the fingerprint (20 for Scrapy's
    own fingerprinter).
    """

    logger = logger

    def __init__(
        self, server: redis.Redis, key: str, debug: bool = False, *, fingerprinter: RequestFingerprinterProtocol | None = None
    ) -> None:
        self.server = server
        self.key = key
        self.debug = debug
        self.logdupes = True
        self._fingerprint = fingerprinter.fingerprint if fingerprinter else scrapy.utils.request.fingerprint

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """For Scrapy's own scheduler: a key of its own for each run, as scrapy-redis does."""
        return cls.from_settings(crawler.settings, fingerprinter=crawler.request_fingerprinter)

    @classmethod
    def from_settings(cls, settings: BaseSettings, *, fingerprinter: RequestFingerprinterProtocol | None = None) -> Self:
        """A filter on the key `dupefilter:<unix time>`."""
        server = get_redis_from_settings(settings)
        key = prefixed(defaults.DUPEFILTER_KEY % {"timestamp": int(time.time())}, settings.get("REDIS_NAMESPACE") or "")
        return cls(server, key, settings.getbool("DUPEFILTER_DEBUG"), fingerprinter=fingerprinter)

    @classmethod
    def from_spider(cls, spider: Spider) -> Self:
        """The filter of the spider's crawl, on the key SCHEDULER_DUPEFILTER_KEY."""
        settings = spider.settings
        pattern = settings.get("SCHEDULER_DUPEFILTER_KEY", defaults.SCHEDULER_DUPEFILTER_KEY)
        return cls(
            get_redis_from_settings(settings),
            prefixed(pattern % {"spider": spider.name, "name": spider.name}, settings.get("REDIS_NAMESPACE") or ""),
            settings.getbool("DUPEFILTER_DEBUG"),
            fingerprinter=spider.crawler.request_fingerprinter,
        )

    def request_seen(self, request: Request) -> bool:
        """True if the request was seen before; it counts as seen from now on."""
        return self.server.sadd(self.key, self.fingerprint(request)) == 0

    def fingerprint(self, request: Request) -> bytes:
        """What the filter stores for `request`, by REQUEST_FINGERPRINTER_CLASS."""
        return self._fingerprint(request)

    def close(self, reason: str = "") -> None:  # noqa: ARG002
        """Called by Scrapy's own scheduler at the end of a run: its key is of no use any more."""
        self.clear()

    def clear(self) -> None:
        """Forget every request."""
        self.server.delete(self.key)

    def log(self, request: Request, spider: Spider) -> None:
        """Log the first duplicate, or each with DUPEFILTER_DEBUG."""
        if self.debug:
            self.logger.debug("Filtered duplicate request: %(request)s", {"request": request}, extra={"spider": spider})
        elif self.logdupes:
            self.logger.debug(
                "Filtered duplicate request %(request)s - no more duplicates will be shown"
                " (see DUPEFILTER_DEBUG to show all duplicates)",
                {"request": request},
                extra={"spider": spider},
            )
            self.logdupes = False
