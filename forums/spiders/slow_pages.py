"""Statistics of pages that block the reactor while they are parsed: counted by site and kind of page, the slowest named."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy import Spider

SLOW_S = 0.05
"""Of CPU time. An ordinary page takes 3 ms; the first pages of a process, which learn a site's date format, 20."""

logger = logging.getLogger(__name__)


@contextmanager
def noticed(spider: Spider, site: str, kind: str, url: str) -> Iterator[None]:
    """Count a page that takes more than `SLOW_S` in the stats `sites/<site>/<kind>/slow`, with `…/slowest_ms` and, for this
    process, `…/slowest_url`. The first slow page of a site is also logged.
    """
    begun = time.thread_time()
    try:
        yield
    finally:
        spent = time.thread_time() - begun
        if spent > SLOW_S:
            _note(spider, f"sites/{site}/{kind}", url, round(spent * 1000))


def _note(spider: Spider, name: str, url: str, spent_ms: int) -> None:
    stats = spider.crawler.stats
    slowest = stats.get_value(f"{name}/slowest_ms", 0)
    stats.inc_value(f"{name}/slow")
    if spent_ms > slowest:
        stats.max_value(f"{name}/slowest_ms", spent_ms)
        stats.set_value(f"{name}/slowest_url", url)
    if not slowest:
        logger.info("%s took %d ms of CPU to be read; further slow pages are in the stats %s/slow", url, spent_ms, name)
