"""Reasons against fetching a page now: the site's robots.txt as the fleet keeps it, and the limits of its lane."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import redis

from forums.sites import Site
from forums.sites.http.politeness import USER_AGENT, user_agent
from redis_components.admin.find_entries import Entry, EntryLocation
from redis_components.admin.lanes import LaneCondition, LaneView, look
from redis_components.keys import CrawlKeys
from redis_components.politeness.robots_cache import FileKind, stored_file

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


def describe_entry(service: str, entry: Entry, now: float) -> str:
    """Describe the place of an entry in one sentence; `now` is Redis's time."""
    name = f"a start task ({entry.fields.get('mode') or 'url'})" if entry.is_task else f"the request for {entry.url}"
    what = f"{service}: {name}"
    tried = f"; {entry.attempts} crawlers died with it" if entry.attempts else ""
    since = f", stored {instant(entry.stored_at)}" if entry.stored_at else ""
    match entry.place:
        case EntryLocation.READY:
            return f"{what} is ready{since}{tried}"
        case EntryLocation.LATER:
            return f"{what} waits for its time, {span((entry.at_s or now) - now)} from now{since}{tried}"
        case EntryLocation.LEASED:
            leased = f" since {instant(entry.at_s)} ({span(now - entry.at_s)})" if entry.at_s else ""
            return f"{what} is leased by {entry.owner}{leased}{since}{tried}"
        case EntryLocation.PARKED:
            return f"{what} is set aside while its site is held{since}{tried}"
        case EntryLocation.WAITING:
            return f"{what} waits in {entry.key}"
        case EntryLocation.DEAD:
            return f"{what} was given up {span(now - (entry.at_s or now))} ago: {entry.reason} (trawl dead replay)"


def describe_reading(row: Any) -> str:
    """Describe a row of `checks`. It has no column for the status: an unsuccessful page ends a reading, with its reason."""
    plural = "" if row.requests == 1 else "s"
    pages = f"page {row.first_page}" if row.first_page == row.last_page else f"pages {row.first_page} to {row.last_page}"
    read = f"{pages} in {row.requests:,} request{plural}, {row.comments:,} comments"
    if row.reason is not None:
        status = f"{row.reason}{', so it is gone' if row.gone else ''}"
    elif row.listed is None and not row.whole and not row.consistent and row.mode == "check":
        status = "nothing had changed (HTTP 304, or the same page)"
    else:
        status = f"HTTP 200, {'whole' if row.whole else 'not whole'}"
    return f"last reading ({row.mode}) ended {instant(row.finished_at)}: {status}; {read}"


def instant(moment: datetime | float) -> str:
    """Format a time or epoch seconds, as `2026-01-31 12:00:00Z`."""
    found = moment if isinstance(moment, datetime) else datetime.fromtimestamp(moment, UTC)
    return found.strftime("%Y-%m-%d %H:%M:%SZ")


def span(seconds: float) -> str:
    """Format a duration, as `90 s`, `12 min`, `5 h`, `9 d`."""
    size, unit = next(
        ((size, unit) for limit, size, unit in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")) if seconds < limit),
        (86_400, "d"),
    )
    return f"{max(0.0, seconds) / size:.0f} {unit}"
