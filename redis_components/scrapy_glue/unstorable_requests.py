"""Requests that cannot be stored: they live in this process's memory, like in Scrapy's own scheduler, and the page on which one
was found stays leased until it is finished. So do those about which a dupefilter could not be asked, until it can.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from .page_tracker import Page, current_page

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request

    from redis_components.frontier.frontier import Frontier

logger = logging.getLogger(__name__)


class UnstorableRequests:
    """First in, first out."""

    def __init__(self) -> None:
        self._requests: deque[tuple[Request, Page | None]] = deque()
        self._reasons: set[str] = set()

    def __len__(self) -> int:
        """Return the number of requests that wait."""
        return len(self._requests)

    def add(self, request: Request, reason: str) -> None:
        """Keep `request` as a part of the page that is at work now."""
        field = reason.partition(":")[0]
        if field not in self._reasons:
            self._reasons.add(field)
            logger.warning(
                "%s is kept in memory: no other crawler gets it, and after a crash or a stop its page is crawled again: %s"
                " (logged once for each field)",
                request,
                reason,
            )
        self.wait(request)

    def wait(self, request: Request) -> None:
        """Keep `request` until it can be stored, as a part of the page that is at work now."""
        found_on = current_page.get()
        if found_on is not None:
            found_on.parts += 1
        self._requests.append((request, found_on))

    def take(self, but_not: Callable[[Request], bool] = lambda request: False) -> tuple[Request, Page | None] | None:
        """Return the next request that `but_not` does not exclude, and the page that it is a part of; None where
        there is none.
        """
        for place, (request, _) in enumerate(self._requests):
            if not but_not(request):
                found = self._requests[place]
                del self._requests[place]
                return found
        return None

    @property
    def pages(self) -> set[Page]:
        """The pages of the requests that wait."""
        return {page for _, page in self._requests if page is not None}

    def release_pages(self, frontier: Frontier) -> None:
        """Give the pages of these requests back, to be crawled again, as the process ends."""
        if not self._requests:
            return
        logger.warning(
            "%d requests that could not be stored end with this process; the %d pages they came from will be crawled again",
            len(self._requests),
            len(self.pages),
        )
        for page in self.pages:
            page.release(frontier)
