"""Bounds of each request to a site: its pace, its headers and cookies, its User-Agent, obedience to robots.txt, and the
places that it may reach: those in a site file, and for a site only its own file's, also for a forged request. All of this is
done by downloader middlewares, which find the site by `meta["site"]`.

The limits of site files are written to Redis, where every crawler reads them. A site that gets no contact information from Trawl
is on trial: it is limited to a number of requests a day, over all crawlers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import redis
from msgspec.structs import replace
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.url import add_http_if_no_scheme

from forum_reader.definition.page_requests import elsewhere, may_have_secrets, place_of, shown
from forum_reader.errors import SiteError
from forums.sites.load import allowance_of, load_all, site_in_use
from forums.state.keys import TRIAL_PER_DAY, TRIAL_RATE
from redis_components.keys import limits_key
from redis_components.politeness import limits
from redis_components.politeness.limits import BY_FILE, BY_TRIAL, DAY_MS, LaneLimits
from redis_components.scheduler import set_aside
from redis_components.scrapy_glue.engine import ForCrawler, known_frontier
from workers.http.client import allow
from workers.http.public_addresses import Allowance, is_public

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from forum_reader.definition.site import Site


logger = logging.getLogger(__name__)

USER_AGENT = "trawl/0.1 (+a crawl fleet; set USER_AGENT to your name and contact)"


def user_agent(site: Site) -> str | None:
    """Return the file's User-Agent: it is sent to every place of the site, since robots.txt may have rules for it."""
    return next((value.get_secret_value() for name, value in site.headers.items() if name.lower() == "user-agent"), None)


def project_agent(settings: BaseSettings) -> str | None:
    """Return the User-Agent that a project has set; None where it is Scrapy's own."""
    return str(settings["USER_AGENT"]) if settings.getpriority("USER_AGENT") else None


def set_pace(crawler: Crawler, key: str, *, concurrency: int, delay_s: float) -> None:
    """Set the concurrency and the delay of a download slot; also of one in use."""
    downloader = crawler.engine.downloader if crawler.engine else None
    wanted = {"concurrency": concurrency, "delay": delay_s}
    if downloader is not None and downloader.per_slot_settings.get(key) != wanted:
        downloader.per_slot_settings[key] = wanted
        if slot := downloader.slots.get(key):  # the file was changed while the site is crawled
            slot.concurrency, slot.delay = concurrency, delay_s


_KEPT = "site_headers"  # in meta, while a request is at the downloader: its headers before


class SitePoliteness(ForCrawler):
    """Gives each site a separate download slot with the pace of one crawler, and applies `obey_robots`.

    The limits of the site's file hold for all crawlers together and are kept in Redis (`write_limits`).
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._agent = "" if project_agent(crawler.settings) else USER_AGENT

    def process_request(self, request: Request) -> None:
        """Set the slot, the User-Agent, and obedience to robots.txt."""
        if not isinstance(name := request.meta.get("site"), str):
            return
        site = site_in_use(name)
        request.meta["download_slot"] = self._slot(site, request)
        if site.politeness.obey_robots:
            request.meta.pop("dont_obey_robotstxt", None)
        else:
            request.meta["dont_obey_robotstxt"] = True
        if agent := user_agent(site) or self._agent:
            request.headers["User-Agent"] = agent  # robots.txt may have rules for it

    def _slot(self, site: Site, request: Request) -> str:
        key, asked = f"site:{site.name}", site.politeness
        most = asked.crawler_concurrency or self._crawler.settings.getint("CONCURRENT_REQUESTS")
        # Where Redis has limits the rate is kept by all crawlers together; a delay here would only make requests late.
        frontier = known_frontier(self._crawler) if asked.rate else None
        is_kept = frontier is not None and frontier.limits.lane_of(request.meta, request.url)
        set_pace(self._crawler, key, concurrency=most, delay_s=0.0 if is_kept else asked.crawler_delay_s)
        return key


class SiteHeaders:
    """Adds headers and cookies of the site's file right before a request is sent, and removes them right after.

    They may be secrets: they are sent only to the places that the file trusts, for any source of the URL (a redirect, a row of a
    list, a link, a writer of Redis), and a request with them must not be written to Redis, as a retry or a redirect is. So this
    is the innermost middleware.
    """

    def process_request(self, request: Request) -> None:
        """Add the headers."""
        if not isinstance(name := request.meta.get("site"), str):
            return
        proxy = request.meta.get("proxy")
        headers = headers_for(site_in_use(name), request.url, add_http_if_no_scheme(str(proxy)) if proxy else None)
        if headers:
            request.meta[_KEPT] = {header: request.headers.getlist(header) for header in headers}
            for header, value in headers.items():
                request.headers[header] = value

    def process_response(self, request: Request, response: Response) -> Response:
        """Remove the headers."""
        self._restore(request)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:  # noqa: ARG002 - so it is called
        """Remove the headers."""
        self._restore(request)

    @staticmethod
    def _restore(request: Request) -> None:
        for header, values in request.meta.pop(_KEPT, {}).items():
            if values:
                request.headers.setlist(header, values)
            else:
                request.headers.pop(header, None)


def headers_for(site: Site, url: str, proxy: str | None = None) -> dict[str, str]:
    """Return the headers of a request of this site for this URL, with the cookies among them: none for a place without trust."""
    return headers_of(site) if may_have_secrets(site, url, proxy) else {}


def headers_of(site: Site) -> dict[str, str]:
    """Return the headers of each request to a trusted place, with the cookies among them. They may be secret."""
    headers = {name: value.get_secret_value() for name, value in site.headers.items()}
    if site.cookies:
        headers["Cookie"] = "; ".join(f"{name}={value.get_secret_value()}" for name, value in site.cookies.items())
    return headers


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


_RESERVED = frozenset(
    {"example", "test", "invalid", "localhost", "local", "internal", "home.arpa", "example.com", "example.net", "example.org"}
)
"""Ends of names that are reserved (RFC 2606, 6761, 6762, 8375)."""


def _agent() -> str | None:
    from scrapy.utils.project import get_project_settings

    return project_agent(get_project_settings())


def is_on_trial(site: Site, agent: Callable[[], str | None] = _agent) -> bool:
    """Return True if the site is public and gets a User-Agent without a contact: neither its file nor the project (`agent`) has
    one.
    """
    if site.allow_private or not is_public_name(site.base_url.host or "") or user_agent(site):
        return False
    return agent() is None


def is_public_name(host: str) -> bool:
    """Return True if a host may be a public site: a name with a dot, or a public address."""
    host = host.strip("[]").rstrip(".").lower()
    parts = host.split(".")
    if ":" in host or parts[-1].isdigit():
        return is_public(host)
    return len(parts) > 1 and not _RESERVED & {parts[-1], ".".join(parts[-2:])}


N = TypeVar("N", int, float)


def write_limits(client: redis.Redis, sites: Iterable[Site]) -> list[str]:
    """Write the limits of the files; return the changed lanes. An operator's limits (`trawl limit`) override the files."""
    known = limits.read(client, limits_key())
    return limits.write(client, known, _limits_of_lanes(sites), ("", BY_FILE, BY_TRIAL))


def _limits_of_lanes(sites: Iterable[Site]) -> dict[str, LaneLimits | None]:
    """Return the limits by lane; a site in a shared lane has none under its own name."""
    lanes: dict[str, LaneLimits | None] = {}
    agent = cache(_agent)  # once for all sites: Scrapy makes the project's settings for each call
    for site in sites:
        lanes.setdefault(site.name, None)
        lane, wanted = site.politeness.lane or site.name, _limits_of(site, agent)
        if wanted is not None:
            shared = lanes.get(lane)
            lanes[lane] = wanted if shared is None else _strictest(shared, wanted)
    return lanes


def _strictest(one: LaneLimits, other: LaneLimits) -> LaneLimits:
    """Return the lower number of each limit, with the quiet hours of the first that has some."""
    windows = sorted({window for _, window in (*one.quotas, *other.quotas)})
    quiet = one if one.quiet else other
    return LaneLimits(
        rate=_lower(one.rate, other.rate),
        burst=min(one.burst, other.burst),
        concurrency=_lower(one.concurrency, other.concurrency),
        weight=max(one.weight, other.weight),
        quotas=tuple((n, window) for window in windows if (n := _lower(one.within(window), other.within(window))) is not None),
        quiet=quiet.quiet,
        zone=quiet.zone,
        offsets=quiet.offsets,
        by=BY_TRIAL if BY_TRIAL in (one.by, other.by) else BY_FILE,
    )


def _lower(one: N | None, other: N | None) -> N | None:
    return min((number for number in (one, other) if number is not None), default=None)


def _limits_of(site: Site, agent: Callable[[], str | None]) -> LaneLimits | None:
    wanted = _limits_of_file(site)
    if not is_on_trial(site, agent):
        return wanted
    wanted = wanted or LaneLimits()
    limited = _strictest(wanted, LaneLimits(quotas=((TRIAL_PER_DAY, DAY_MS),), by=BY_TRIAL))
    return replace(limited, burst=wanted.burst, rate=limited.rate or TRIAL_RATE)


def _limits_of_file(site: Site) -> LaneLimits | None:
    asked = {name: value for name, value in site.politeness.model_dump(exclude={"lane", "obey_robots"}).items() if value}
    found = LaneLimits.of(**asked, zone=site.time_zone, by=BY_FILE)
    return None if replace(found, burst=1) == LaneLimits(by=BY_FILE) else found
