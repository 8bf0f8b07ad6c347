"""Politeness of each request to a site: its pace, its headers and cookies, its User-Agent, and obedience to robots.txt.

All are downloader middlewares, and find the site by `meta["site"]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.utils.url import add_http_if_no_scheme

from forum_reader.definition.origins import may_have_secrets, place_of
from forums.sites.load import site_in_use
from redis_components.errors import ConfigError
from redis_components.scrapy_glue.engine import ForCrawler, known_frontier

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.http.cookies import CookieJar
    from scrapy.settings import BaseSettings

    from forum_reader.definition.site import Site


USER_AGENT = "trawl/0.1 (+a crawl fleet; set USER_AGENT to your name and contact)"
_CONTACT = re.compile(r"https?://[^\s\"\\()]{3,200}|[^\s\"\\()@]{1,64}@[^\s\"\\()@]{1,190}\.[^\s\"\\()@.]{2,63}")


def user_agent(site: Site) -> str | None:
    """Return the file's User-Agent: it is sent to every place of the site, since robots.txt may have rules for it."""
    return next((value.get_secret_value() for name, value in site.headers.items() if name.lower() == "user-agent"), None)


def project_agent(settings: BaseSettings) -> str | None:
    """Return the User-Agent that a project has set; None where it is Scrapy's own."""
    return str(settings["USER_AGENT"]) if settings.getpriority("USER_AGENT") else None


def agent_with(contact: str | None) -> str:
    """Return the User-Agent with a contact for the site's operator: an e-mail address or a URL. None: the default one.

    Raises ConfigError for anything else.
    """
    if contact is None:
        return USER_AGENT
    if not (_CONTACT.fullmatch(contact) and contact.isascii()):
        raise ConfigError(
            f"--contact {contact!r:.100} is neither an e-mail address nor a URL: write you@example.org or https://…"
        )
    return f"trawl/0.1 (+{contact})"


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

    The limits of the site's file hold for all crawlers together and are kept in Redis (`forums/scheduling/seed_plan.py`).
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


MOST, LONGEST = 150, 4096
"""Cookies of one place, and characters of each, as browsers keep them: all are examined for each request, on the reactor."""
_JAR = "cookiejar"  # in meta: Scrapy's name for the jar of a request


class SiteCookies(CookiesMiddleware):
    """Scrapy's middleware, with one jar for each site and place: by the rules of cookies a host's are sent to all its ports and
    subdomains, and every site of a crawl shares one jar. Requests of no site have Scrapy's jars.
    """

    def process_request(self, request: Request, spider: Spider | None = None) -> Request | Response | None:  # noqa: ARG002 - Scrapy's signature
        """Add the cookies of the place."""
        with _own_jar(request):
            return super().process_request(request)

    def process_response(self, request: Request, response: Response, spider: Spider | None = None) -> Request | Response:  # noqa: ARG002
        """Keep the cookies that the place sets; of too many the newest."""
        with _own_jar(request):
            answer = super().process_response(request, response)
            _bound(self.jars[request.meta.get(_JAR)])
        return answer


def _bound(jar: CookieJar) -> None:
    kept = list(jar)
    long = [one for one in kept if len(one.name) + len(one.value or "") > LONGEST]
    short = [one for one in kept if one not in long]
    for one in (*long, *short[: max(0, len(short) - MOST)]):
        jar.jar.clear(one.domain, one.path, one.name)


@contextmanager
def _own_jar(request: Request) -> Iterator[None]:
    """Name the jar during a call. The name is not stored with the request, so that a redirect to another place has
    another jar.
    """
    if not isinstance(site := request.meta.get("site"), str):
        yield
        return
    has_name, name = _JAR in request.meta, request.meta.get(_JAR)
    request.meta[_JAR] = (site, place_of(request.url), name)
    try:
        yield
    finally:
        if has_name:
            request.meta[_JAR] = name
        else:
            del request.meta[_JAR]
