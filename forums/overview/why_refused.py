"""Reasons against fetching a page now: the site's robots.txt as the fleet keeps it, and the limits of its lane."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import redis

from forums.sites import Site
from forums.sites.http.user_agent import USER_AGENT, user_agent
from redis_components.crawl_admin.lanes import LaneCondition, LaneView, look
from redis_components.frontier.robots_cache import FileKind, stored_file
from redis_components.keys import CrawlKeys

_SLOWER = (LaneCondition.LEFT_ALONE, LaneCondition.QUIET, LaneCondition.SLOWED)


def refused_by_robots(client: redis.Redis, keys: CrawlKeys, site: Site, url: str) -> str:
    """Return why the site's robots.txt forbids the page; "" if it does not, or the fleet does not obey or have it."""
    if not site.politeness.obey_robots:
        return ""
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    file = stored_file(client, keys, origin)
    if file is None:
        return ""
    if file.kind is FileKind.UNREACHABLE:
        return f"{origin}/robots.txt was answered by 5xx or 429: nothing is fetched until it can be read"
    from scrapy.robotstxt import ProtegoRobotParser

    agent = user_agent(site) or USER_AGENT
    if file.kind is FileKind.NONE or ProtegoRobotParser(file.body, None).allowed(url, agent):
        return ""
    return f"{origin}/robots.txt forbids it to {agent.split('/')[0]}: it is not fetched"


def lane_of(client: redis.Redis, keys: CrawlKeys, lane: str, now: float) -> LaneView | None:
    """Return one lane as it is now; None without limits."""
    return next((one for one in look(client, keys.all_limits(), [keys], now, first=[lane], most=1) if one.lane == lane), None)


def slowed_by_limits(lane: LaneView) -> Iterator[str]:
    """Yield why requests of the lane are delayed, if they are."""
    if lane.condition in _SLOWER or lane.waiting:
        rate = "" if lane.rate_now is None else f" at {lane.rate_now:.3g} requests a second"
        why = f", {lane.why}" if lane.why else ""
        yield f"lane {lane.lane} is {lane.condition.value}{rate}{why}; {lane.waiting:,} requests wait in it"
