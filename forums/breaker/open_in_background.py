"""Opens a breaker from a crawl in a thread, because Redis may be slow and the reactor must not wait."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import redis

from redis_components import connection
from redis_components.errors import TrawlError
from redis_components.scheduler import scheduler_of
from redis_components.scrapy_glue.engine import frontier_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)


def in_background(crawler: Crawler, site: str, work: Callable[[redis.Redis, str], object]) -> None:
    """Call `work` with a Redis client and the name of this process. A failure is logged; the next bad answer of the site, in any
    process, tries again.
    """
    by = frontier_of(crawler).owner if scheduler_of(crawler) is not None else crawler.spidercls.name

    def run() -> None:
        try:
            with connection.from_settings(crawler.settings) as client:
                work(client, by)
        except (redis.RedisError, TrawlError, OSError) as error:
            logger.error("the breaker of site %s could not be opened: %s", site, error)

    threading.Thread(target=run, name=f"breaker of {site}", daemon=True).start()
