"""Logs how many requests a DEPTH_LIMIT has cut off: Scrapy drops them silently above the level DEBUG."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy import signals

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

IGNORED = "depth/request_ignored_count"
"""The stat in which Scrapy's DepthMiddleware counts them; shared, it is the sum over all processes."""


def watch_depth_limit(crawler: Crawler) -> None:
    """Let the crawl warn once, when it closes, how many requests this process has ignored, where there are any."""

    def warn() -> None:
        assert crawler.stats is not None
        ignored = crawler.stats.get_value(IGNORED, 0)
        if ignored:
            logger.warning(
                "DEPTH_LIMIT = %s: %s requests that lie deeper were ignored by this process (stat %s);"
                " each page of a chain lies one deeper than the page before, so raise the limit or set it to 0",
                crawler.settings.get("DEPTH_LIMIT"),
                ignored,
                IGNORED,
            )

    crawler.signals.connect(warn, signals.spider_closed, weak=False)
