"""The spans of a page, for any spider: `fetch` while the site answers, `read` while its callback works.

A callback's results follow from its page: requests carry the traceparent in `meta`, and items where the spider has
`items_carry_traceparent = True`. `add_page_spans` puts both middlewares into a crawl where spans are on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from scrapy import Request, signals

from redis_components.scrapy_glue.engine import ForCrawler
from redis_components.server.url import masked

from . import traces
from .traces import TRACEPARENT, Span

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import Settings

INNERMOST = 990
"""Order of both kinds of middleware: outer ones count neither to the site's time, nor to the callback's."""
LONGEST = 2000
"""Characters of a URL."""

_fetched: WeakKeyDictionary[Request, str] = WeakKeyDictionary()


def add_page_spans(settings: Settings) -> None:
    """Add both middlewares where spans are on. Raises ConfigError."""
    if traces.is_on():
        settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", FetchSpans, INNERMOST)
        settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", ReadSpans, INNERMOST)


class FetchSpans(ForCrawler):
    """Downloader middleware: from the moment a request leaves the queue of its host until the answer is there."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        assert crawler.spider is not None
        self._spider = crawler.spider.name
        self._open: WeakKeyDictionary[Request, Span] = WeakKeyDictionary()
        crawler.signals.connect(self._begin, signals.request_reached_downloader)

    def _begin(self, request: Request) -> None:
        attributes = {"http.request.method": request.method, **_place(request, request.url, self._spider)}
        if span := traces.begin("fetch", attributes, request.meta.get(TRACEPARENT), kind="client"):
            self._open[request] = span

    def process_response(self, request: Request, response: Response) -> Response:
        """End the span: the site has answered."""
        if span := self._open.pop(request, None):
            span.note({"http.response.status_code": response.status, "http.response.body.size": len(response.body)})
            span.end(str(response.status) if response.status >= 400 else "")
            _fetched[request] = span.traceparent
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """End the span with an error: the site has not answered."""
        if span := self._open.pop(request, None):
            span.end(type(exception).__name__)


class ReadSpans(ForCrawler):
    """Spider middleware: the callback, with all that it yields."""

    def __init__(self, crawler: Crawler) -> None:
        assert crawler.spider is not None
        super().__init__(crawler)
        self._spider = crawler.spider.name
        self._marks_items = bool(getattr(crawler.spider, "items_carry_traceparent", False))
        self._open: WeakKeyDictionary[Response, Span] = WeakKeyDictionary()

    def process_spider_input(self, response: Response) -> None:
        """Begin the callback's span."""
        request = response.request
        assert request is not None
        parent = _fetched.pop(request, None) or request.meta.get(TRACEPARENT)
        if span := traces.begin("read", _place(request, response.url, self._spider), parent):
            self._open[response] = span
            request.meta[TRACEPARENT] = span.traceparent
            traces.work_on(span)

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Pass on the callback's results, and count them."""
        span, items, requests = self._open.get(response), 0, 0
        try:
            async for one in result:
                if isinstance(one, Request):
                    requests += 1
                    if span:
                        one.meta.setdefault(TRACEPARENT, span.traceparent)
                else:
                    items += 1
                    if span and self._marks_items and isinstance(one, dict):
                        one[TRACEPARENT] = span.traceparent
                yield one
        finally:
            if span:
                span.note({"trawl.items": items, "trawl.requests": requests})
            self._end(response)

    def process_spider_exception(self, response: Response, exception: Exception) -> None:
        """End the callback's span with its error."""
        self._end(response, type(exception).__name__)

    def _end(self, response: Response, error: str = "") -> None:
        if span := self._open.pop(response, None):
            span.end(error)


def _place(request: Request, url: str, spider: str) -> dict[str, str | int | float | None]:
    """Return a page's attributes: from `meta` its `site`, and of `page` the kind, forum, thread and number."""
    page = request.meta.get("page")
    found = {"site": request.meta.get("site"), **(page if isinstance(page, dict) else {})}
    values = {f"trawl.{name}": found.get(name) for name in ("site", "kind", "forum", "thread", "number")}
    known = {name: value for name, value in values.items() if isinstance(value, str | int) and value != ""}
    return {"url.full": masked(url)[:LONGEST], "trawl.spider": spider, **known}
