"""Place of a request or start task, and the end of the last reading of a thread, each in one sentence."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import redis

from redis_components.crawl_admin.find_entries import Entry, Place
from redis_components.keys import CrawlKeys

from .why_refused import lane_of


def describe_entry(service: str, entry: Entry, now: float, client: redis.Redis, keys: CrawlKeys) -> str:
    """Describe the place of an entry in one sentence; `now` is Redis's time. Raises `redis.RedisError`."""
    name = f"a start task ({entry.fields.get('mode') or 'url'})" if entry.is_task else f"the request for {entry.url}"
    what = f"{service}: {name}"
    tried = f"; {entry.attempts} crawlers died with it" if entry.attempts else ""
    since = f", stored {instant(entry.stored_at)}" if entry.stored_at else ""
    match entry.place:
        case Place.READY:
            return f"{what} is ready{since}{_turn(entry, now, client, keys)}{tried}"
        case Place.LATER:
            return f"{what} waits for its time, {span((entry.at_s or now) - now)} from now{since}{tried}"
        case Place.LEASED:
            leased = f" since {instant(entry.at_s)} ({span(now - entry.at_s)})" if entry.at_s else ""
            return f"{what} is leased by {entry.owner}{leased}{_taken_back(entry, now, client, keys)}{since}{tried}"
        case Place.PARKED:
            return f"{what} is set aside while its site is held{since}{tried}"
        case Place.WAITING:
            place = "" if entry.before is None else f", {entry.before:,} come first"
            return f"{what} waits in {entry.key}{place}"
        case Place.DEAD:
            return f"{what} was given up {span(now - (entry.at_s or now))} ago: {entry.reason} (trawl dead replay)"


def _taken_back(entry: Entry, now: float, client: redis.Redis, keys: CrawlKeys) -> str:
    expires = client.zscore(keys.owners(), entry.owner)
    return "" if expires is None else f", whose leases are taken back in {span(float(str(expires)) / 1000 - now)} if it is dead"


def _turn(entry: Entry, now: float, client: redis.Redis, keys: CrawlKeys) -> str:
    """Describe its position, and for a lane with a rate the estimated wait."""
    before, name = entry.before or 0, entry.key.partition(f"{keys.ready()}:lane:")[2]
    lane = lane_of(client, keys, name, now) if name else None
    if lane is None:
        return f", {before:,} come first"
    wait = (lane.next_s or 0.0) + (before / lane.rate_now if lane.rate_now else 0.0)
    rate = f" at {lane.rate_now:.3g} a second" if lane.rate_now else ""
    return f", in lane {name} ({lane.condition.value}{rate}), {before:,} come first: its turn comes in about {span(wait)}"


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
