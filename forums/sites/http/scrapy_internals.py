"""Use of Scrapy's internals by the forum crawl: see `redis_components/scrapy_glue/internals.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

ASSUMES = {
    "Downloader.per_slot_settings": "read when a download slot is made: its `concurrency` and `delay`",
    "Downloader.slots": "by key; each has `concurrency` and `delay`, which are read at each request",
    "CookiesMiddleware": 'keeps the cookies of a request in the jar that its `meta["cookiejar"]` names',
}
"""Internal -> assumption."""


def set_pace(crawler: Crawler, key: str, *, concurrency: int, delay_s: float) -> None:
    """Set the concurrency and the delay of a download slot; also of one in use."""
    downloader = crawler.engine.downloader if crawler.engine else None
    wanted = {"concurrency": concurrency, "delay": delay_s}
    if downloader is not None and downloader.per_slot_settings.get(key) != wanted:
        downloader.per_slot_settings[key] = wanted
        if slot := downloader.slots.get(key):  # the file was changed while the site is crawled
            slot.concurrency, slot.delay = concurrency, delay_s
