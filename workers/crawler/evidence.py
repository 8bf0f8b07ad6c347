"""Evidence for the verdict on a member of a run: statuses of the pages that its callbacks were given, walls, redirects to other
hosts, fields of the items, and the first error, in the shared stats, from which `workers.jobs.verdict` finds it.

The first page of each fault is stored among the raw pages of the node, also where the project stores none.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from itemadapter import ItemAdapter
from scrapy import signals

from redis_components.frontier.stock import shared_clock
from redis_components.server.names import crawl_name, service_name
from workers.breaker.hosts import first_url, verdict_on
from workers.raw_pages.store import RawPage, RawPageStats, prune, raw_dir
from workers.state.group_runs import (
    ELSEWHERE,
    ERROR,
    FIELDS,
    KEPT_AS,
    LOST,
    MOST_FIELDS,
    PAGES,
    RAISED,
    URL,
    WALL,
    WALLS,
)

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

KEEP_DAYS = 30.0
_MOST_ERROR = 1500


class Evidence:
    """Spider middleware, nearest to the engine: it is given each response before Scrapy leaves out those with a bad status."""

    def __init__(self, crawler: Crawler) -> None:
        assert crawler.stats is not None
        self._stats = crawler.stats
        self._name = service_name(crawl_name(crawler.spidercls))
        self._fields: set[str] = set()
        self._kept: set[str] = set()
        self._raw = RawPageStats(lambda *_: None, rounds=lambda: prune(raw_dir(), {KEPT_AS: KEEP_DAYS}))

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Return a new instance that listens to the crawl."""
        evidence = cls(crawler)
        crawler.signals.connect(evidence._item, signals.item_scraped)
        crawler.signals.connect(evidence._raised, signals.spider_error)
        crawler.signals.connect(evidence._lost, signals.item_error)
        crawler.signals.connect(evidence._raw.close, signals.spider_closed)
        return evidence

    def process_spider_input(self, response: Response, spider: Spider | None = None) -> None:  # noqa: ARG002
        """Count the response."""
        self._stats.inc_value(f"{PAGES}{response.status}")
        if wall := self._wall(response):
            self._stats.inc_value(WALLS)
            self._first("wall", response)
            self._stats.set_value(WALL, wall)
        elif response.status >= 400:
            self._first(str(response.status), response)
        else:
            if response.request is not None and _host(response.url) != _host(first_url(response.request)):
                self._stats.inc_value(ELSEWHERE)
                self._first("elsewhere", response)
            self._first("page", response)

    def _wall(self, response: Response) -> str:
        found = verdict_on(response)
        return found.reason[:300] if found is not None and found.cause in ("challenge", "login") else ""

    def _first(self, fault: str, response: Response) -> None:
        """Store the first page of a fault, and its URL."""
        if fault in self._kept:
            return
        self._kept.add(fault)
        self._stats.set_value(f"{URL}{fault}", response.url[:2000])
        if response.body and response.request is not None:
            at = datetime.fromtimestamp(shared_clock.time(), UTC).isoformat(timespec="milliseconds")
            self._raw.keep(RawPage.of(response, KEPT_AS, {"kind": fault, "job": self._name}, at))

    def _item(self, item: Any) -> None:
        try:
            fields = ItemAdapter(item).items()
        except TypeError:  # of a class that only the project's pipelines know
            return
        for name, value in fields:
            if value is None or (isinstance(value, str | bytes | list | tuple | dict | set) and not value):
                continue
            if name in self._fields or len(self._fields) < MOST_FIELDS:
                self._fields.add(name)
                self._stats.inc_value(f"{FIELDS}{str(name)[:100]}")

    def _raised(self, failure: Failure, response: Response) -> None:
        self._stats.inc_value(RAISED)
        self._failed(failure, response)

    def _lost(self, failure: Failure, response: Response | None) -> None:
        self._stats.inc_value(LOST)
        self._failed(failure, response)

    def _failed(self, failure: Failure, response: Response | None) -> None:
        if "raised" not in self._kept:
            self._stats.set_value(ERROR, str(failure.getTraceback()).strip()[-_MOST_ERROR:])
        if response is not None:  # an item of the spider's start has none
            self._first("raised", response)


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""
