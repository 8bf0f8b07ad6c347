"""The methods of a spider that a stored request may name as its callback or errback.

A writer to Redis must not be able to call the methods that run the crawl: `__init__` would overwrite a live spider's attributes.
A method that the user's own classes define may be named, private ones too; of the methods of Scrapy or Trawl, also where the
user overrides them, only those made to receive a response or a failure. Start tasks may name less: `start_tasks/requests.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scrapy import Spider

PLUMBING = ("scrapy.", "redis_components.", "builtins")
"""Beginnings of the modules whose classes run the crawl."""

_MADE_FOR_RESPONSES = frozenset(
    {
        *("parse", "_parse"),  # Spider
        *("parse_start_url", "parse_with_rules", "_parse_response", "_callback", "_errback"),  # CrawlSpider
        *("parse_rows", "adapt_response"),  # XMLFeedSpider, CSVFeedSpider
        "_parse_sitemap",  # SitemapSpider
        "set_aside",  # RedisSpider
    }
)


def is_plumbing(cls: type) -> bool:
    """Return True if a class belongs to Scrapy, Trawl or Python."""
    return f"{cls.__module__}.".startswith(PLUMBING)


def callback_of(spider: Spider, name: str) -> Callable[..., Any] | None:
    """Return the method of that name, or None where there is none that a stored request may name."""
    if not isinstance(name, str) or (name.startswith("__") and name.endswith("__")):
        return None
    owners = [base for base in type(spider).__mro__ if name in vars(base)]
    if name not in _MADE_FOR_RESPONSES and any(is_plumbing(base) for base in owners):
        return None
    method = getattr(spider, name, None)
    function = getattr(
        method, "__func__", None
    )  # a stored callback is a method: neither a class nor an object that can be called
    if not callable(method) or function is None:
        return None
    if not owners and str(getattr(function, "__module__", None)).startswith(PLUMBING):  # an attribute of the spider alone
        return None
    return method  # type: ignore[no-any-return]
