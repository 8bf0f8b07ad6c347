"""Repetition of a request: the same request in its state before it was sent."""

from __future__ import annotations

from scrapy import Request

from redis_components.frontier.redis_time import shared_clock

BLOCKED = "blocked"
"""Key in `meta`: how many times this page was blocked."""
WAIT_S = 1.0
"""Delay of a page whose site has just been held. A hold reaches a crawler within 2 s; without the delay the page would come back
at once, again and again, and be given up, or stored as removed, before the hold applies.
"""
_OF_ONE_FETCH = ("retry_times", "redirect_times", "redirect_ttl", "redirect_urls", "redirect_reasons", "fetched_at")


def sent_again(request: Request, blocks: int, *, waits: bool = False) -> Request:
    """Return the request at a lower priority, behind other repeated ones; with `waits` it is sent after `WAIT_S`."""
    meta = {name: value for name, value in request.meta.items() if name not in _OF_ONE_FETCH}
    if waits:
        meta["not_before"] = shared_clock.time() + WAIT_S
    meta[BLOCKED] = blocks
    return request.replace(url=first_url(request), meta=meta, dont_filter=True, priority=request.priority - 1)


def first_url(request: Request) -> str:
    """Return the requested URL, before redirects."""
    urls = request.meta.get("redirect_urls")
    return urls[0] if isinstance(urls, list) and urls and isinstance(urls[0], str) else request.url
