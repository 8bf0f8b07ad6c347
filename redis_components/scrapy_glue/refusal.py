"""A crawl that cannot run as configured ends with one line, not with the traceback that Scrapy logs for an exception.

Scrapy ends a crawl in good order only for CloseSpider, and only where the spider is being opened. The finish reason is
`refused`, the exit code of `scrapy crawl` 1.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakSet

from scrapy import signals
from scrapy.exceptions import CloseSpider

from redis_components.errors import TrawlError

from .in_thread import sleep

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

REASON = "refused"

logger = logging.getLogger(__name__)
_refused: WeakSet[Crawler] = WeakSet()
_failed: WeakSet[Crawler] = WeakSet()


def fail(crawler: Crawler, why: str = "") -> None:
    """Let `scrapy crawl` end with exit code 1: so does Scrapy where the crawl has no spider at its end. `why` is logged once."""
    if crawler in _failed:
        return
    _failed.add(crawler)
    if why:
        logger.error("%s: the crawl ends with an exit code that is not 0", why)

    async def forget_spider() -> None:
        await sleep(0)  # other receivers of the signal find the spider until then
        crawler.spider = None

    crawler.signals.connect(forget_spider, signals.spider_closed, weak=False)


def is_refused(crawler: Crawler) -> bool:
    """Return True if this crawl is ending already, because another component could not start."""
    return crawler in _refused


@contextmanager
def refusing(crawler: Crawler) -> Iterator[None]:
    """Turn a TrawlError in the block into one line of the log and CloseSpider."""
    try:
        yield
    except TrawlError as error:
        logger.error("%s", error)
        _refused.add(crawler)
        fail(crawler)
        raise CloseSpider(REASON) from error
