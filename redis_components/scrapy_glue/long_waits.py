"""Requests that wait long for their site do not count against CONCURRENT_REQUESTS, so sites that hang hold back no other one.

A request that waits for an answer, or for its turn at its site, costs a connection and next to no memory. Each still counts as
one of its site's places (`SitePlaces`), so no site gets more requests for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from scrapy import Request
from scrapy.utils.asyncio import call_later

LONG_S = 0.75
LOOK_S = 0.25
MOST_TIMES = 2
"""In all so many times CONCURRENT_REQUESTS: on a machine that is too busy to read answers in time, all wait long."""


class Downloading(Protocol):
    """The attributes of Scrapy's downloader that are used (`internals.py`)."""

    active: set[Request]
    total_concurrency: int


class LongWaits:
    """Raises the downloader's limit by the number of requests that it has worked on for more than LONG_S; `wake` makes the
    engine ask for requests. Nothing is done while fewer than half of the usual number are at work.
    """

    def __init__(
        self,
        downloader: Downloading,
        wake: Callable[[], None],
        now: Callable[[], float],
        later: Callable[[float, Callable[[], None]], object] = call_later,
    ) -> None:
        self._downloader = downloader
        self._wake = wake
        self._now = now
        self._later = later
        self._usual = downloader.total_concurrency
        self._since: dict[Request, float] = {}
        self._is_looking = False

    def begin(self) -> None:
        """Begin to look when half of the downloader's places are taken; called for each request handed to it."""
        if not self._is_looking and 2 * len(self._downloader.active) >= self._usual:
            self._is_looking = True
            self._look()

    def _look(self) -> None:
        now, downloader = self._now(), self._downloader
        self._since = {request: self._since.get(request, now) for request in downloader.active}
        long = sum(now - since >= LONG_S for since in self._since.values())
        before, downloader.total_concurrency = downloader.total_concurrency, min(self._usual + long, MOST_TIMES * self._usual)
        if downloader.total_concurrency > before:
            self._wake()
        self._is_looking = 2 * len(self._since) >= self._usual
        if self._is_looking:
            self._later(LOOK_S, self._look)
