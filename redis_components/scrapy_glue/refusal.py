"""A crawl that cannot run as configured ends with one line, not with the traceback that Scrapy logs for an exception.

Scrapy ends a crawl in good order only for CloseSpider, and only where the spider is being opened. The finish reason is
`refused`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakSet

from scrapy.exceptions import CloseSpider

from redis_components.errors import TrawlError

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

REASON = "refused"

logger = logging.getLogger(__name__)
_refused: WeakSet[Crawler] = WeakSet()


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
        raise CloseSpider(REASON) from error
