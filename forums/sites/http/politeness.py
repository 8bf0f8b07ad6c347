"""Politeness of each request to a site: its pace, its headers and cookies, and obedience to robots.txt.

Both are downloader middlewares, and find the site by `meta["site"]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from scrapy.utils.url import add_http_if_no_scheme

from forum_reader.definition.origins import may_have_secrets
from forums.sites.load import site_in_use

from .scrapy_internals import set_pace
from .user_agent import USER_AGENT, project_agent, user_agent

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from forum_reader.definition.site import Site

_KEPT = "site_headers"  # in meta, while a request is at the downloader: its headers before


class SitePoliteness:
    """Gives each site a separate download slot with the pace of its file, and applies `obey_robots`.

    The pace is that of one crawler process: three crawlers send three times as many requests to a site.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._agent = "" if project_agent(crawler.settings) else USER_AGENT

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Create the middleware. It needs the downloader at the first request."""
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        """Set the slot, the User-Agent, and obedience to robots.txt."""
        if not isinstance(name := request.meta.get("site"), str):
            return
        site = site_in_use(name)
        request.meta["download_slot"] = self._slot(site)
        if site.politeness.obey_robots:
            request.meta.pop("dont_obey_robotstxt", None)
        else:
            request.meta["dont_obey_robotstxt"] = True
        if agent := user_agent(site) or self._agent:
            request.headers["User-Agent"] = agent  # robots.txt may have rules for it

    def _slot(self, site: Site) -> str:
        key = f"site:{site.name}"
        set_pace(self._crawler, key, concurrency=site.politeness.concurrency, delay_s=site.politeness.delay_s)
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
