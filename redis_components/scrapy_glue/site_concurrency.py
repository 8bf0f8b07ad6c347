"""The number of requests of one site that a crawler process works on. Pure: each begin and end is passed in.

Scrapy counts a request as at work while it waits for its turn at its site, so the requests of one slow site would take all of
CONCURRENT_REQUESTS. Here a site has as many places as requests may be sent to it at a time; further ones wait apart from the
buffer, and others go on. Scrapy's own limit for a download slot does not hold either: requests that reach the slot in one turn
of the event loop are all sent (`Downloader._process_queue` of 2.19 counts them only when their tasks run).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from redis_components.frontier.frontier import Frontier

HOST = "host"
"""The field that need not be there: the URL has it."""


class SitePlaces:
    """`most` returns how many requests of a site may be at work here; None: any number. No site has more than three quarters of
    `concurrency` places, so one that hangs leaves room for the others with any `most`.
    """

    def __init__(self, by: str, most: Callable[[str], int | None], frontier: Frontier) -> None:
        self._by = by
        self._most = most
        self._frontier = frontier
        self._bound = max(1, frontier.config.concurrency * 3 // 4)
        self._at_work: dict[str, int] = {}

    def name_of(self, meta: Mapping[str, Any], url: str) -> str:
        """Return the site of a request: the field of its `meta`, else where that is `host` the host and port of its URL; "" for
        none.
        """
        if isinstance(named := meta.get(self._by), str):
            return named
        return urlsplit(url).netloc.rpartition("@")[2].lower() if self._by == HOST else ""

    def enter(self, site: str) -> bool:
        """Take a place for a request of `site`; False where there is none."""
        busy = self._at_work.get(site, 0)
        if busy >= self._places(site):
            return False
        self._at_work[site] = busy + 1
        return True

    def leave(self, site: str) -> None:
        """Free the place of a finished request of `site`: requests that waited for it are among the others again."""
        left = self._at_work.pop(site, 1) - 1
        if left:
            self._at_work[site] = left
        if self._frontier.deferred(site):
            for _ in range(max(1, self._places(site) - left)):
                if not self._frontier.recall(site):
                    break

    def room(self) -> dict[str, int]:
        """Return how many more requests are wanted of each site that is worked on here: with twice as many waiting as are at
        work, a site's places are filled until the next start tasks come.
        """
        return {
            site: max(0, 3 * self._places(site) - busy - self._frontier.deferred(site)) for site, busy in self._at_work.items()
        }

    def _places(self, site: str) -> int:
        most = self._most(site)
        return self._bound if most is None else min(most, self._bound)
