"""A page that is asked for once more: the same request, as it was before it was sent."""

from __future__ import annotations

from scrapy import Request

from redis_components.frontier.redis_time import shared_clock

BLOCKED = "blocked"
"""In `meta`: how many times this page was blocked."""
WAIT_S = 1.0
"""A page of a site that is held from now on: a hold reaches a crawler within 2 s, and until then such a page would come back at
once, again and again, and be given up, or taken for removed, before the hold keeps it.
"""
_OF_ONE_FETCH = ("retry_times", "redirect_times", "redirect_ttl", "redirect_urls", "redirect_reasons", "fetched_at")


def sent_again(request: Request, blocks: int, *, waits: bool = False) -> Request:
    """The request, behind what waits for the same reason; with `waits` it is not sent before `WAIT_S` have passed."""
    meta = {name: value for name, value in request.meta.items() if name not in _OF_ONE_FETCH}
    if waits:
        meta["not_before"] = shared_clock.time() + WAIT_S
    meta[BLOCKED] = blocks
    return request.replace(url=first_url(request), meta=meta, dont_filter=True, priority=request.priority - 1)


def first_url(request: Request) -> str:
    """The URL that was asked for, before redirects."""
    urls = request.meta.get("redirect_urls")
    return urls[0] if isinstance(urls, list) and urls and isinstance(urls[0], str) else request.url
