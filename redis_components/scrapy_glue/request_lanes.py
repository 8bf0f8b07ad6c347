"""The lanes of the requests that a crawler stores, starts and gives back: how Scrapy's side keeps the limits of sites."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redis_components.errors import Unserializable
from redis_components.frontier.messages import QueueOrder
from redis_components.server.untrusted_values import LATEST

if TYPE_CHECKING:
    from scrapy import Request

    from redis_components.frontier.frontier import Frontier
    from redis_components.frontier.messages import Lease

    from .page_tracker import PageTracker


class RequestLanes:
    """A queue class of the user's orders requests as it wants: then no limits are kept, and `not_before` does not count."""

    def __init__(self, frontier: Frontier, book: PageTracker) -> None:
        self._frontier = frontier
        self._limits = frontier.limits
        self._book = book
        self._kept = frontier.config.order is not QueueOrder.ADVISED

    def pace_of(self, request: Request) -> tuple[str, float]:
        """Return lane ("" without limits) and time (epoch s, 0.0 for any) of a request to store. Raises Unserializable for a
        `meta["not_before"]` that is not a time.
        """
        lane = self._limits.lane_of(request.meta, request.url) if self._limits.lanes and self._kept else ""
        value = request.meta.get("not_before")
        if value is None:
            return lane, 0.0
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < LATEST:
            return lane, float(value)
        raise Unserializable(f"not_before: {value!r} is not a time; write seconds since 1970, as time.time() has them")

    def shelves(self, lease: Lease, request: Request) -> bool:
        """Set a lease from READY aside whose site has limits; whether it has."""
        if not self._limits.lanes or lease.lane or not self._kept:
            return False
        lane = self._limits.lane_of(request.meta, request.url)
        if lane:
            self._frontier.shelve(lease.id, lane)
        return bool(lane)

    def leave_alone(self) -> None:
        """Give back requests that wait in the downloader for their turn when limits have changed, to be sent when
        they allow it.
        """
        if self._limits.lanes and self._kept:
            self._book.take_back(lambda request: bool(self._limits.lane_of(request.meta, request.url)))

    def put_off(self, request: Request, *, sent: bool) -> bool:
        """Give the lease of `request` back once Scrapy is done with it, with no attempt counted, as its site asks to be left
        alone. False where it has no lease.
        """
        return self._kept and self._book.put_off(request, sent=sent)
