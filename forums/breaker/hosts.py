"""Former place of `workers.breaker.hosts.HostWatch`, for settings of projects; for one release."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from workers.breaker import hosts

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class HostWatch(hosts.HostWatch):
    """The same middleware, with a warning."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        logging.getLogger(__name__).warning("forums.breaker.hosts.HostWatch is now workers.breaker.hosts.HostWatch: write that")
