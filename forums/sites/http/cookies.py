"""Cookies that sites set, for crawls with COOKIES_ENABLED: each is sent back to the place that set it, and to no other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.cookies import CookiesMiddleware

from forum_reader.definition.origins import place_of

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.http import Response
    from scrapy.http.cookies import CookieJar

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
