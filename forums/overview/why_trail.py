"""Reasons against fetching a page now: the site's robots.txt as the fleet keeps it, and the limits of its lane."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import redis
from sqlalchemy import func, select

from forums.sites import Site
from forums.sites.http.politeness import USER_AGENT, user_agent
from forums.storage import Database, posts, revisions, scans
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


def describe_entry(service: str, entry: Entry, now: float, client: redis.Redis, keys: CrawlKeys) -> str:
    """Describe the place of an entry in one sentence; `now` is Redis's time. Raises `redis.RedisError`."""
    name = f"a start task ({entry.fields.get('mode') or 'url'})" if entry.is_task else f"the request for {entry.url}"
    what = f"{service}: {name}"
    tried = f"; {entry.attempts} crawlers died with it" if entry.attempts else ""
    since = f", stored {instant(entry.stored_at)}" if entry.stored_at else ""
    match entry.place:
        case EntryLocation.READY:
            return f"{what} is ready{since}{_turn(entry, now, client, keys)}{tried}"
        case EntryLocation.LATER:
            return f"{what} waits for its time, {span((entry.at_s or now) - now)} from now{since}{tried}"
        case EntryLocation.LEASED:
            leased = f" since {instant(entry.at_s)} ({span(now - entry.at_s)})" if entry.at_s else ""
            return f"{what} is leased by {entry.owner}{leased}{_taken_back(entry, now, client, keys)}{since}{tried}"
        case EntryLocation.PARKED:
            return f"{what} is set aside while its site is held{since}{tried}"
        case EntryLocation.WAITING:
            place = "" if entry.before is None else f", {entry.before:,} come first"
            return f"{what} waits in {entry.key}{place}"
        case EntryLocation.DEAD:
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


MOST_REVISIONS = 10
_NEIGHBOURS = 30  # ids to search on both sides of a thread's number
_NUMBERED = re.compile(r"(.*?)(\d{1,15})(\D*)")


def first_shown(database: Database, site: str, thread: str) -> str:
    """Describe when a thread was seen first, and by which scan; "" if it is not stored."""
    known = database.rows(select(posts.c.forum_id, posts.c.first_seen_at).where(posts.c.site == site, posts.c.id == thread))
    if not known:
        return ""
    board, seen = known[0]
    of_board = (scans.c.site == site, scans.c.forum_id == board, scans.c.started_at <= seen)
    query = select(scans.c.started_at, scans.c.mode, scans.c.pages).where(*of_board).order_by(scans.c.started_at.desc()).limit(1)
    start = f"it was stored first from a page that was fetched {instant(seen)}"
    for started_at, mode, pages in database.rows(query):
        return f"{start}; the last scan of board {site}/{board} before that ({mode}, {pages:,} pages) began {instant(started_at)}"
    return f"{start}; no scan of board {site}/{board} is kept from before"


def earlier_texts(database: Database, site: str, ids: dict[str, list[str]]) -> Iterator[str]:
    """Yield earlier texts of its rows (`post` or `comment` -> ids), the latest first."""
    for kind, names in ids.items():
        c = revisions.c
        query = select(c.id, c.first_fetched_at, c.last_fetched_at, func.substr(c.body, 1, 60))
        query = query.where(c.site == site, c.kind == kind, c.id.in_(names)).order_by(c.last_fetched_at.desc())
        for id_, first, last, text in database.rows(query.limit(MOST_REVISIONS)):
            yield f"{kind} {id_} had another text from {instant(first)} to {instant(last)}: {' '.join(text.split())}"


def place_in_list(database: Database, site: str, thread: str) -> str:
    """Describe on which page of which board's list a thread of this number should be, by threads with numbers near it; "" if none
    is known.
    """
    numbered = _NUMBERED.fullmatch(thread)
    if numbered is None:
        return ""
    before, number, after = numbered[1], int(numbered[2]), numbered[3]
    near = [f"{before}{number + step}{after}" for step in range(-_NEIGHBOURS, _NEIGHBOURS + 1)]
    c = posts.c
    found = database.rows(select(c.id, c.forum_id, c.last_reply_at, c.created_at).where(c.site == site, c.id.in_(near)))
    if not found:
        newest = database.rows(select(c.id).where(c.site == site).order_by(c.first_seen_at.desc()).limit(1))
        return f"no thread with a number near it is known; the newest one is {newest[0][0]}" if newest else ""
    id_, board, replied, created = min(found, key=lambda row: abs(_number(row[0]) - number))
    activity: datetime | None = replied or created
    if activity is None:
        return f"thread {id_}, with a number near it, is of board {site}/{board}"
    later = select(func.count()).select_from(posts).where(c.site == site, c.forum_id == board, c.last_reply_at > activity)
    page = 1 + int(database.rows(later)[0][0]) // _on_a_page(database, site, board)
    return f"thread {id_}, with a number near it, stands on about page {page:,} of the list of board {site}/{board}"


def _number(id_: str) -> int:
    numbered = _NUMBERED.fullmatch(id_)
    return int(numbered[2]) if numbered else 0


def _on_a_page(database: Database, site: str, board: str) -> int:
    """Return the number of threads on a page of its list, from its last scan."""
    s = scans.c
    last = select(s.threads, s.pages).where(s.site == site, s.forum_id == board, s.pages > 0, s.threads > 0)
    for threads, pages in database.rows(last.order_by(s.started_at.desc()).limit(1)):
        return max(1, int(threads) // int(pages))
    return 20
