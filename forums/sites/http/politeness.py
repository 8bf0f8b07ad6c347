"""What each request to a site has in common: its pace, its headers and cookies, and whether robots.txt is asked.

Both are downloader middlewares, and find the site by `meta["site"]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from scrapy.utils.url import add_http_if_no_scheme

from forums.sites.definition.load import site_in_use
from forums.sites.definition.origins import may_have_secrets

from .scrapy_internals import set_pace
from .user_agent import USER_AGENT, project_agent, user_agent

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from forums.sites.definition.site import Site

_KEPT = "site_headers"  # in meta, while a request is at the downloader: the headers that it had before


class Manners:
    """Gives each site a separate download slot with the pace of its file, and says whether robots.txt counts.

    The pace is that of one crawler process: a site that three crawlers work on is asked three times as often.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._agent = "" if project_agent(crawler.settings) else USER_AGENT

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """The downloader is asked at the first request."""
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        """Its slot, its User-Agent, and what counts for robots.txt."""
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
    """Adds headers and cookies of the site's file right before a request is sent, and takes them off right after.

    They may be secrets: they go to the places that the file trusts with them and no other, whoever chose the URL (a redirect, a
    row of a list, a link, a writer of Redis), and nothing that has them may be written to Redis, as a retry or a redirect is.
    That is why this is the innermost middleware.
    """

    def process_request(self, request: Request) -> None:
        """Put them on."""
        if not isinstance(name := request.meta.get("site"), str):
            return
        proxy = request.meta.get("proxy")
        headers = headers_for(site_in_use(name), request.url, add_http_if_no_scheme(str(proxy)) if proxy else None)
        if headers:
            request.meta[_KEPT] = {header: request.headers.getlist(header) for header in headers}
            for header, value in headers.items():
                request.headers[header] = value

    def process_response(self, request: Request, response: Response) -> Response:
        """Take them off."""
        self._restore(request)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:  # noqa: ARG002 - so it is called
        """Take them off."""
        self._restore(request)

    @staticmethod
    def _restore(request: Request) -> None:
        for header, values in request.meta.pop(_KEPT, {}).items():
            if values:
                request.headers.setlist(header, values)
            else:
                request.headers.pop(header, None)


def headers_for(site: Site, url: str, proxy: str | None = None) -> dict[str, str]:
    """The headers of a request of this site for this URL, with the cookies among them: none where they may not be seen."""
    return headers_of(site) if may_have_secrets(site, url, proxy) else {}


def headers_of(site: Site) -> dict[str, str]:
    """The headers of each request to a trusted place, with the cookies among them. They may be secret."""
    headers = {name: value.get_secret_value() for name, value in site.headers.items()}
    if site.cookies:
        headers["Cookie"] = "; ".join(f"{name}={value.get_secret_value()}" for name, value in site.cookies.items())
    return headers
