"""Allowed origins: only places in a site file are fetched, and for a site only its own file's, also for a
forged request.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest
from scrapy.utils.url import add_http_if_no_scheme

from forum_reader.definition.origins import elsewhere, place_of, shown
from forum_reader.errors import SiteError
from forums.sites.load import allowance_of, load_all, site_in_use
from redis_components.scheduler import set_aside
from redis_components.scrapy_glue.engine import ForCrawler
from workers.http.public_addresses import Allowance, allow

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from forum_reader.definition.site import Site

logger = logging.getLogger(__name__)

RELOAD_S = 1.0
"""Least time between two readings of the site files for an unknown place."""

_NO_SITE = "is at no site: no file in the sites folder has its scheme, host and port; add it to `also_allowed`"
_NOT_THE_SAME = "is at no place of the same site: if both are of one, name both in its file, by `also_allowed`"


class NotAllowed(IgnoreRequest):
    """A request leads to a place that its site's file does not name. `came_from`: the URL of the site that was redirected there;
    None where the request itself has the URL.
    """

    def __init__(self, reason: str, *, came_from: str | None = None) -> None:
        super().__init__(reason)
        self.came_from = came_from


class AllowedSites(ForCrawler):
    """Downloader middleware: a request to a place that is not allowed becomes a dead letter, and is not fetched.

    A place is scheme, host and port, those of a site's `base_url` and `also_allowed`. A request of a site (`site` in `meta`) may
    reach the places of that site alone; any other, such as that for robots.txt, those of all sites, but a redirect leads it to
    no other site. Scrapy's own offsite middleware would allow all requests with `dont_filter` or `allow_offsite`, which a writer
    of Redis can set. Redirects pass through here, too. A proxy (`proxy` in `meta`) has to be at an allowed place as well:
    download handlers obey it, also without HTTPPROXY_ENABLED.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._sites: dict[str, Site] = {}
        self._read_at = float("-inf")

    def process_request(self, request: Request) -> None:
        """Raise NotAllowed for a place, or a proxy, that is not allowed."""
        came_from = _came_from(request)
        if (wrong := self._wrong(request, request.url, came_from)) is not None:
            raise NotAllowed(wrong, came_from=came_from)
        if (proxy := request.meta.get("proxy")) and self._wrong(request, url := add_http_if_no_scheme(str(proxy))) is not None:
            place = shown(place_of(url))  # not its URL, which may have a password
            raise NotAllowed(self._wrong_proxy(request, place))
        allow(request, self._allowance(request))

    def _allowance(self, request: Request) -> Allowance:
        """Return the allowed private addresses: those of the request's site, or of the sites that have its place."""
        if isinstance(name := request.meta.get("site"), str):
            return allowance_of(site_in_use(name))
        sites = [site for site in self._sites.values() if place_of(request.url) in site.places]
        hosts = frozenset().union(*(allowance_of(site).hosts for site in sites))
        return Allowance(everything=any(site.allow_private for site in sites), hosts=hosts)

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Keep the request with the reason, unless the site's breaker has taken it (`forums/breaker/middleware.py`)."""
        if isinstance(exception, NotAllowed):
            self._set_aside(request, str(exception))

    def process_response(self, request: Request, response: Response) -> Response:
        """Return the response. Raises NotAllowed where a download handler has followed a redirect itself, as a browser does."""
        if response.url != request.url and (wrong := self._wrong(request, response.url, request.url)) is not None:
            self._set_aside(request, wrong)
            raise NotAllowed(wrong, came_from=request.url)
        return response

    def _set_aside(self, request: Request, reason: str) -> None:
        logger.error("not fetched: %s", reason)
        set_aside(self._crawler, request, reason)

    def _wrong(self, request: Request, url: str, came_from: str | None = None) -> str | None:
        if not isinstance(name := request.meta.get("site"), str):
            if self._is_somewhere(url, came_from):
                return None
            return f"{url} {_NO_SITE}" if came_from is None else f"{came_from} redirects to {url}, which {_NOT_THE_SAME}"
        try:
            return elsewhere(site_in_use(name), url, came_from)
        except SiteError as error:  # no such site, so it has no places
            return f"{url}: {error}"

    def _is_somewhere(self, url: str, came_from: str | None) -> bool:
        """Return True if a site has this place, and also that of the URL that redirected there, if any."""
        wanted = {place_of(one) for one in (url, came_from) if one is not None}
        if not any(wanted <= site.places for site in self._sites.values()):
            self._read()
        return any(wanted <= site.places for site in self._sites.values())

    @staticmethod
    def _wrong_proxy(request: Request, place: str) -> str:
        if isinstance(name := request.meta.get("site"), str):
            return f"{request.url}: its proxy {place} is at no place of site {name!r}: add {place} to `also_allowed`"
        return f"{request.url}: its proxy {place} {_NO_SITE}"

    def _read(self) -> None:
        now = time.monotonic()
        if now - self._read_at < RELOAD_S:
            return
        self._read_at = now
        sites, wrong = load_all()
        edited = {name: site for name, site in self._sites.items() if name in wrong}  # these stay reachable meanwhile
        self._sites = edited | {site.name: site for site in sites}


def _came_from(request: Request) -> str | None:
    """Return the requested URL, where it has redirected to this request's."""
    urls = request.meta.get("redirect_urls")
    return str(urls[0]) if isinstance(urls, list) and urls else None
