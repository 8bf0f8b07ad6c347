"""The limits of a site, for pages that are fetched outside of a crawl: they count against them, and wait for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import redis

from redis_components.errors import TrawlError
from redis_components.frontier.limits import default_lane, lane_names
from redis_components.frontier.permits import LanePermits

LONGEST_WAIT_S = 10.0
"""For a turn; a site that may not be asked for longer is not visited now."""

logger = logging.getLogger(__name__)


class NotNow(TrawlError):
    """The limits of the site allow no request now; `wait_s`: for how long at least."""

    def __init__(self, message: str, wait_s: float) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class VisitLimits:
    """Of one visitor, who sends one request at a time. `site` names the site's file, where one is known; `lane` is from it."""

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
                    f"{url}: {permit.lane} may not be asked for {wait} by its limits: trawl lanes says why", permit.wait_s
                )
            await asyncio.sleep(permit.wait_s)
            waited += permit.wait_s
            if permit.is_granted:
                self._lane = permit.lane
                return

    async def end(self) -> None:
        """The request has ended."""
        lane, self._lane = self._lane, ""
        if lane:
            await self._quietly(lambda: self._permits.end(lane))

    async def refused(self, url: str, seconds: float | None) -> None:
        """The site asked to be left alone: every crawler obeys."""
        lane = self._lane or default_lane(self._meta, url)
        if lane:
            await self._quietly(lambda: self._permits.refused(lane, seconds))

    async def _quietly(self, call: Callable[[], Any]) -> Any:
        """Without Redis nobody crawls, and a page may be looked at with the visitor's own delay."""
        try:
            return await asyncio.to_thread(call)
        except redis.RedisError as error:
            logger.debug("Redis does not say whether a site may be asked: %s", error)
            return None
