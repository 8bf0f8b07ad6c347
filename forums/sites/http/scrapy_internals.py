"""What the forum crawl uses of Scrapy's internals: see `redis_components/scrapy_glue/internals.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

ASSUMES = {
    "Downloader.per_slot_settings": "read when a download slot is made: its `concurrency` and `delay`",
    "Downloader.slots": "by key; each has `concurrency` and `delay`, which are read at each request",
    "CookiesMiddleware": 'keeps the cookies of a request in the jar that its `meta["cookiejar"]` names',
}
"""What is used -> what is assumed of it."""


def set_pace(crawler: Crawler, key: str, *, concurrency: int, delay_s: float) -> None:
    """How many requests at a time, and how far apart, a download slot sends; also of one that is at work."""
    downloader = crawler.engine.downloader if crawler.engine else None
    wanted = {"concurrency": concurrency, "delay": delay_s}
    if downloader is not None and downloader.per_slot_settings.get(key) != wanted:
        downloader.per_slot_settings[key] = wanted
        if slot := downloader.slots.get(key):  # the file was changed while the site is crawled
            slot.concurrency, slot.delay = concurrency, delay_s
