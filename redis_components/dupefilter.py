"""Duplicate filters: Scrapy's classes for the kinds in `filters.py`.

Within the Scheduler the check is a part of the step that stores the request, for all of these classes and for their subclasses
that keep `request_seen`; only their `fingerprint` is then called. Used alone, each check is one call of Redis.
`docs/reference/dupefilters.md` helps to choose a class.
"""

from __future__ import annotations

import logging
import re
import time
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import scrapy.utils.request
from scrapy.dupefilters import BaseDupeFilter
from scrapy.settings import BaseSettings

from . import defaults, filters
from .connection import get_redis_from_settings
from .errors import ConfigError
from .filters import Bloom, Exact, Filter, PlainSet, Renew, Rolling
from .keys import filled
from .server.names import crawl_name, namespace_of, prefixed
from .setting_values import loaded, number_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import redis
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.utils.request import RequestFingerprinterProtocol

logger = logging.getLogger(__name__)


def named_dupefilter(settings: BaseSettings) -> Any:
    """Return DUPEFILTER_CLASS, a class or its dotted path; where only Scrapy's default is set, SCHEDULER_DUPEFILTER_CLASS."""
    if settings.getpriority("DUPEFILTER_CLASS"):
        return settings.get("DUPEFILTER_CLASS")
    return settings.get("SCHEDULER_DUPEFILTER_CLASS") or defaults.SCHEDULER_DUPEFILTER_CLASS


def dupefilter_class(settings: BaseSettings) -> Any:
    """Return the class of `named_dupefilter`. Raises ConfigError when it cannot be loaded."""
    return loaded(named_dupefilter(settings), "DUPEFILTER_CLASS")


def filter_of(settings: BaseSettings) -> Filter:
    """Return kind and parameters of the filter that `settings` name. Raises ConfigError for a value out of range."""
    reads: Any = getattr(dupefilter_class(settings), "filter_from_settings", None)
    return reads(settings) if reads else PlainSet()


def is_fused(dupefilter: type) -> bool:
    """Return True if instances of this class leave the decision to the exchange, which calls only their `fingerprint`; others
    decide in their own `request_seen`.
    """
    return getattr(dupefilter, "request_seen", None) is RFPDupeFilter.request_seen


_SHA1_AS_TEXT = re.compile(r"[0-9a-f]{40}")


def _as_bytes(fingerprint: Any) -> bytes:
    """Return the bytes of an overridden `request_fingerprint`: a SHA-1 as scrapy-redis writes it, other text, or bytes."""
    if isinstance(fingerprint, bytes):
        return fingerprint
    text = str(fingerprint)
    return bytes.fromhex(text) if _SHA1_AS_TEXT.fullmatch(text) else text.encode("utf-8", "surrogatepass")


class RFPDupeFilter(BaseDupeFilter):
    """Dupefilter by request fingerprint in the Redis set `key`, with scrapy-redis's surface. Members are the raw bytes of the
    fingerprint (20 for Scrapy's own fingerprinter).
    """

    logger = logger
    # Here and not in `__init__`: subclasses written for scrapy-redis do not call it.
    debug = False
    logdupes = True
    filter: Filter = PlainSet()
    _by_scrapy: Callable[[Request], bytes] = staticmethod(scrapy.utils.request.fingerprint)

    def __init__(self, server: redis.Redis, key: str, debug: bool = False) -> None:
        self.server = server
        self.key = key
        self.debug = debug

    @classmethod
    def filter_from_settings(cls, settings: BaseSettings) -> Filter:  # noqa: ARG003  # the others read them
        """Return kind and parameters of the filter. Raises ConfigError for a value out of range."""
        return PlainSet()

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Return a filter on the key `dupefilter:<unix time>`, with Scrapy's default fingerprints."""
        return cls._made(settings, defaults.DUPEFILTER_KEY % {"timestamp": int(time.time())})

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make a filter for Scrapy's own scheduler: a separate key for each run, as in scrapy-redis. Honours
        REQUEST_FINGERPRINTER_CLASS.
        """
        df = cls.from_settings(crawler.settings)
        df.filter = cls.filter_from_settings(crawler.settings)  # where from_settings is overridden
        df.use_fingerprinter(crawler.request_fingerprinter)
        return df

    @classmethod
    def from_spider(cls, spider: Spider) -> Self:
        """Return a filter on the spider's key SCHEDULER_DUPEFILTER_KEY."""
        settings = spider.settings
        pattern = settings.get("SCHEDULER_DUPEFILTER_KEY", defaults.SCHEDULER_DUPEFILTER_KEY)
        df = cls._made(settings, filled(pattern, crawl_name(spider)))
        crawler = getattr(spider, "crawler", None)
        if crawler is not None:
            df.use_fingerprinter(crawler.request_fingerprinter)
        return df

    @classmethod
    def _made(cls, settings: BaseSettings, key: str) -> Self:
        df = cls(
            get_redis_from_settings(settings),
            key=prefixed(key, namespace_of(settings)),
            debug=settings.getbool("DUPEFILTER_DEBUG"),
        )
        df.filter = cls.filter_from_settings(settings)
        return df

    def use_fingerprinter(self, fingerprinter: RequestFingerprinterProtocol | None) -> None:
        """Take fingerprints from `fingerprinter`."""
        if fingerprinter is not None:
            self._by_scrapy = fingerprinter.fingerprint

    def request_seen(self, request: Request) -> bool:
        """Return True if the request was seen before, and mark it as seen."""
        entry = self.fingerprint(request)
        if self.filter.options() is None:
            return self.server.sadd(self.key, entry) == 0
        return filters.seen(self.server, self.key, self.filter, [entry])[0]

    def request_fingerprint(self, request: Request) -> str:
        """Return the fingerprint as text. A subclass may override it, and return any text or bytes."""
        return self._by_scrapy(request).hex()

    def fingerprint(self, request: Request) -> bytes:
        """Return the entry that the filter stores for `request`, in the form that the scripts take."""
        is_overridden = (
            type(self).request_fingerprint is not RFPDupeFilter.request_fingerprint or "request_fingerprint" in self.__dict__
        )
        return self.filter.entry(_as_bytes(self.request_fingerprint(request)) if is_overridden else self._by_scrapy(request))

    def close(self, reason: str = "") -> None:  # noqa: ARG002
        """Clear the filter; Scrapy's own scheduler calls it at the end of a run, after which the key is not used any more."""
        self.clear()

    def clear(self) -> None:
        """Forget every request."""
        if self.filter.options() is None:
            self.server.delete(self.key)
        else:
            filters.clear(self.server, self.key)

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


_NUMBERS = {
    "bits": "DUPEFILTER_BITS",
    "max_age_s": "DUPEFILTER_MAX_AGE",
    "max_entries": "DUPEFILTER_MAX_ENTRIES",
    "false_positives": "DUPEFILTER_FALSE_POSITIVES",
    "capacity": "DUPEFILTER_CAPACITY",
}
"""The setting of each parameter of a kind."""


class _Compact(RFPDupeFilter):
    """A filter other than a plain set; made without `filter`, it has its kind's default parameters."""

    kind: ClassVar[type[Filter]]

    def __init__(self, server: redis.Redis, key: str, debug: bool = False, *, filter: Filter | None = None) -> None:
        super().__init__(server, key, debug)
        self.filter = filter or self.filter_from_settings(BaseSettings())

    @classmethod
    def filter_from_settings(cls, settings: BaseSettings) -> Filter:
        """Return kind and parameters of the filter. Raises ConfigError for a value out of range."""
        names = [one.name for one in fields(cls.kind) if one.name in _NUMBERS]
        found: dict[str, Any] = {name: number_of(settings, _NUMBERS[name], getattr(cls.kind, name)) for name in names}
        if "max_age_s" in found:
            renew = settings.get("DUPEFILTER_RENEW", Rolling.renew)
            if renew not in list(Renew):
                raise ConfigError(f"DUPEFILTER_RENEW = {renew!r} is none of {', '.join(Renew)}")
            found["renew"] = Renew(renew)
            if not found["max_age_s"]:
                found["max_entries"] = number_of(settings, "DUPEFILTER_MAX_ENTRIES", defaults.DUPEFILTER_MAX_ENTRIES)
        return cls.kind(**found)


class ExactDupeFilter(_Compact):
    """DUPEFILTER_BITS of each fingerprint: about 9 bytes of Redis for each request (`filters.Exact`)."""

    kind = Exact


class RollingDupeFilter(_Compact):
    """Entries expire, by DUPEFILTER_MAX_AGE and DUPEFILTER_MAX_ENTRIES: for crawls that never end (`filters.Rolling`)."""

    kind = Rolling


class BloomDupeFilter(_Compact):
    """Under 3 bytes for each request, at the price of some pages that are never fetched (`filters.Bloom`)."""

    kind = Bloom
