"""Only what a site file names is fetched, whoever wrote the request into Redis."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Self

from scrapy.exceptions import IgnoreRequest
from scrapy.utils.url import add_http_if_no_scheme

from redis_components.scheduler import set_aside

from .load import load_all
from .places import Place, place_of, places_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

RELOAD_S = 1.0
"""Site files are read again for an unknown place at most this often."""


class AllowedSites:
    """Downloader middleware: a request to a place that no site file names is kept among the dead ones, not fetched.

    A place is scheme, host and port, those of a site's `base_url` and `also_allowed`. Scrapy's own offsite middleware would let
    pass whatever carries `dont_filter` or `allow_offsite`, which a writer of Redis can set. Redirects come by here, too. A proxy
    (`proxy` in `meta`) has to be at an allowed place as well: download handlers obey it, also without HTTPPROXY_ENABLED.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._allowed: frozenset[Place] = frozenset()
        self._read_at = float("-inf")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Site files are read at the first request."""
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        """Raise IgnoreRequest for a place, or a proxy, that is not allowed."""
        wrong = None if self._allows(place_of(request.url)) else request.url
        if wrong is None and (proxy := request.meta.get("proxy")):
            place = place_of(add_http_if_no_scheme(str(proxy)))  # and not its URL, which may have a password
            wrong = None if self._allows(place) else f"{request.url}: its proxy {place}"
        if wrong is None:
            return
        reason = f"{wrong} is at no site: no file in the sites folder has its scheme, host and port; add it to `also_allowed`"
        logger.error("not fetched: %s", reason)
        set_aside(self._crawler, request, reason)
        raise IgnoreRequest(reason)

    def _allows(self, place: Place) -> bool:
        if place not in self._allowed:
            self._read()
        return place in self._allowed

    def _read(self) -> None:
        now = time.monotonic()
        if now - self._read_at < RELOAD_S:
            return
        self._read_at = now
        sites, wrong = load_all()
        allowed = frozenset(place for site in sites for place in places_of(site))
        self._allowed = self._allowed | allowed if wrong else allowed  # a site whose file is being edited stays reachable
