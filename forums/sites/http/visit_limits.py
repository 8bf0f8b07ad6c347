"""Limits of a site, for pages that are fetched outside of a crawl: they count against the limits, and wait for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import redis

from redis_components.errors import TrawlError
from redis_components.politeness.limits import LanePermits, default_lane, lane_names

LONGEST_WAIT_S = 10.0
"""Seconds to wait for a turn; a site whose limits allow no request for longer is not visited now."""
ASKS_S = 0.1
"""Between two questions: who does not ask loses its turn to the crawls of the site (`lib/pacing.lua`)."""

logger = logging.getLogger(__name__)


class NotNow(TrawlError):
    """The limits of the site allow no request now; `wait_s`: the least time to wait."""

    def __init__(self, message: str, wait_s: float) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class VisitLimits:
    """Limits of one visitor, which sends one request at a time. `site`: name of the site's file, if any; `lane` is from it."""

    def __init__(self, permits: LanePermits, site: str | None = None, lane: str | None = None) -> None:
        self._permits = permits
        self._meta: dict[str, Any] = {"site": site, "lane": lane}
        self._lane = ""

    async def begin(self, url: str) -> None:
        """Wait for the time at which this request may be sent. Raises NotNow."""
        names, waited = list(lane_names(self._meta, url)), 0.0
        while True:
            permit = await self._quietly(lambda: self._permits.ask(names))
            if permit is None:
                return
            if not permit.is_granted and waited + permit.wait_s > LONGEST_WAIT_S:
                wait = f"{permit.wait_s:.0f} s" if permit.wait_s < 120 else f"{permit.wait_s / 60:.0f} min"
                raise NotNow(
                    f"{url}: {permit.lane} may not be asked for {wait} by its limits: trawl lanes shows why", permit.wait_s
                )
            pause_s = permit.wait_s if permit.is_granted else min(permit.wait_s + 0.01, ASKS_S)
            await asyncio.sleep(pause_s)
            waited += pause_s
            if permit.is_granted:
                self._lane = permit.lane
                return

    async def end(self) -> None:
        """End the request."""
        lane, self._lane = self._lane, ""
        if lane:
            await self._quietly(lambda: self._permits.end(lane))

    async def refused(self, url: str, seconds: float | None) -> None:
        """Report the site's refusal, which every crawler obeys."""
        lane = self._lane or default_lane(self._meta, url)
        if lane:
            await self._quietly(lambda: self._permits.refused(lane, seconds))

    async def _quietly(self, call: Callable[[], Any]) -> Any:
        """Call Redis; None if it fails: no crawler runs without it, and a page may be fetched with the visitor's own delay."""
        try:
            return await asyncio.to_thread(call)
        except redis.RedisError as error:
            logger.debug("limits of the site cannot be read from Redis: %s", error)
            return None
