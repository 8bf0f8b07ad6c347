"""How many requests of one site a crawler process works on. Pure: told what begins and what ends.

Scrapy counts a request as at work while it waits for its turn at its site, so the requests of one slow site would take all of
CONCURRENT_REQUESTS. Here a site has as many places as it can use; what is beyond waits beside the buffer, and others go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .frontier import Frontier


class SitePlaces:
    """`most` says how many requests of a site may be sent at a time; None: any number. There are half as many places more, for
    pages that are read while the next ones are fetched.
    """

    def __init__(self, by: str, most: Callable[[str], int | None], frontier: Frontier) -> None:
        self.by = by
        """Field of a request's `meta` that names its site."""
        self._most = most
        self._frontier = frontier
        self._at_work: dict[str, int] = {}

    def enter(self, site: str) -> bool:
        """Whether a request of `site` has a place; it is taken then."""
        busy, places = self._at_work.get(site, 0), self._places(site)
        if places is not None and busy >= places:
            return False
        self._at_work[site] = busy + 1
        return True

    def leave(self, site: str) -> None:
        """A request of `site` is finished: those that waited for its place are among the others again."""
        left = self._at_work.pop(site, 1) - 1
        if left:
            self._at_work[site] = left
        if not self._frontier.deferred(site):
            return
        places = self._places(site)
        free = max(1, places - left) if places is not None else self._frontier.deferred(site)
        for _ in range(free):
            if not self._frontier.recall(site):
                break

    def full(self) -> list[str]:
        """The sites of which no start task is wanted: as many requests wait here as are at work."""
        return [
            site
            for site, busy in self._at_work.items()
            if (places := self._places(site)) is not None and busy + self._frontier.deferred(site) >= 2 * places
        ]

    def _places(self, site: str) -> int | None:
        most = self._most(site)
        return None if most is None else most + (most + 1) // 2
