"""State of a URL in Redis, the database and the site files, and the reasons for it. Only reads; there is no extra trail.

The thread or board of an address is found by matching the URL templates of the site file. The state of a page is known as long as
something holds it: the queue, a lease, the dead letters, the record of its thread, its rows. For a page that nothing holds, the
scan that should have shown it is named.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

import redis
from sqlalchemy import Table, func, or_, select

from fleet_operations.overview.model import Overview
from fleet_operations.overview.reader import OverviewReader
from forum_reader.definition.page_requests import place_of, shown
from forums import FORUM_DETAIL, FORUM_LIST
from forums.records.tasks_and_items import thread_id
from forums.sites import Site, load_all
from forums.state.database_state import ThreadRecord, look_up
from forums.storage import Database, checks, comments, posts
from redis_components.admin.find_entries import Entry, EntryLocation, Search, find
from redis_components.keys import CrawlRecords
from redis_components.server.printable import span
from redis_components.server.untrusted_values import server_time

from .model import forum_sites

_LONGEST = 2_000  # characters of a path: two places in it that may hold anything cost the square
_PLACE = re.compile(r"\{(\w+)(:path)?\}")
_NUMBERS = frozenset({"page", "page0", "offset"})


def thread_at(site: Site, url: str) -> str | None:
    """Return the id of the thread as the site's list has it; None if the templates do not show it, as with `{url}`."""
    if place_of(url) not in site.places:
        return None
    for page in (site.pages.thread, site.pages.comments):
        templates = [] if page is None else [page.url, getattr(page, "first_url", None)]
        for template in filter(None, templates):
            found = _pattern(str(template)).fullmatch(_target(url))
            if found and found.groupdict().get("thread"):
                return unquote(found["thread"])
    return None


def board_at(site: Site, url: str) -> str | None:
    """Return the id of the forum whose list is at this address."""
    page = site.pages.list
    for template in filter(None, [page.url, page.first_url]):
        found = _pattern(str(template)).fullmatch(_target(url))
        if found and found.groupdict().get("forum"):
            return unquote(found["forum"])
    return None


def _target(url: str) -> str:
    """Return path and query."""
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return target if len(target) <= _LONGEST else ""


def _pattern(template: str) -> re.Pattern[str]:
    """Compile a pattern for path and query of the addresses that the template makes."""
    if template.startswith(("http://", "https://")):
        template = re.sub(r"^https?://[^/]*", "", template) or "/"
    parts, last, named = [], 0, set[str]()
    for place in _PLACE.finditer(template):
        parts.append(re.escape(template[last : place.start()]))
        name, last = place[1], place.end()
        value = r"\d{1,12}" if name in _NUMBERS else "[^?#]+?" if place[2] else "[^/?&#]+?"
        parts.append(f"(?:{value})" if name in named else f"(?P<{name}>{value})")
        named.add(name)
    parts.append(re.escape(template[last:]))
    return re.compile("".join(parts))


MOST_ROWS = 5  # of comments that are shown


@dataclass(frozen=True, kw_only=True)
class StoredRow:
    """A row of the database that came from the page."""

    row: str  # post or comment
    id: str
    version: int
    fetched_at: datetime
    deleted_at: datetime | None
    shown: str  # beginning of its title or text


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One fact about the page, for people; `state` is a word for programs."""

    state: str
    sentence: str


@dataclass(kw_only=True)
class Why:
    """All facts about a URL."""

    url: str
    site: str | None = None
    thread: str | None = None
    board: str | None = None
    findings: list[Finding] = field(default_factory=list)  # the first one is its present state
    rows: list[StoredRow] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)  # keys with more entries than were searched

    def add(self, state: str, sentence: str) -> None:
        """Add a finding."""
        self.findings.append(Finding(state=state, sentence=sentence))

    @property
    def is_known(self) -> bool:
        """True if anything holds the page."""
        return bool(self.rows) or any(one.state not in _UNKNOWN for one in self.findings)


_LIST = "it is a page of a board's list: scans read it, and store the threads that it shows, not the page"
_UNKNOWN = frozenset({"never seen", "no site", "held", "board", "seeding", "wrong file"})
_FIRST = (
    EntryLocation.LEASED,
    EntryLocation.READY,
    EntryLocation.LATER,
    EntryLocation.PARKED,
    EntryLocation.WAITING,
    EntryLocation.DEAD,
)


def why(client: redis.Redis, database: Database | None, url: str) -> Why:
    """Return the facts about `url`. Raises `redis.RedisError`, StorageError."""
    found = Why(url=url)
    sites, wrong = load_all()
    mine = [one for one in sites if place_of(url) in one.places]
    for site in mine:  # of several sites with this origin, the one whose templates match
        if (thread := thread_at(site, url)) or board_at(site, url):
            found.site, found.thread, found.board = site.name, thread, board_at(site, url)
            break
    else:
        found.site = mine[0].name if mine else None
    row = _row_of(database, found)
    if row is not None:
        found.thread, found.board = row
    _entries(client, found)
    _record(client, found)
    _rows(database, found)
    if found.site is None:
        _no_site(found, sites, list(wrong))
    else:
        _seeding(OverviewReader(client).read_sites(found.site), found)
    if found.board is not None and found.thread is None:
        found.findings.insert(0, Finding(state="list", sentence=_LIST))
    elif not found.is_known:
        found.findings.insert(0, Finding(state="never seen", sentence=_never(found)))
    return found


def _row_of(database: Database | None, found: Why) -> tuple[str, str | None] | None:
    """Return thread and forum by the address of a stored row."""
    if database is None or found.site is None:
        return None
    of_post = select(posts.c.id, posts.c.forum_id).where(posts.c.site == found.site)
    known = posts.c.url == found.url if found.thread is None else or_(posts.c.id == found.thread, posts.c.url == found.url)
    for row in database.rows(of_post.where(known).limit(1)):
        return row[0], row[1] or found.board
    of_comment = select(comments.c.post_id).where(comments.c.site == found.site, comments.c.url == found.url)
    for row in database.rows(of_comment.limit(1)):
        return row[0], found.board
    return None


# Redis


def _entries(client: redis.Redis, found: Why) -> None:
    """Add the place of its request, or of the start task of its thread."""
    needles = [found.url.encode()]
    if found.thread is not None:
        needles += [f'"{found.thread}"'.encode(), found.thread.encode()]
    records = CrawlRecords(client)
    names = dict.fromkeys((FORUM_LIST, FORUM_DETAIL, *records.all()))
    entries: list[tuple[str, Entry]] = []
    for name, keys in records.keys_of_all(names).items():
        search: Search = find(client, keys, needles, partial(_fits, found))
        entries += [(name, entry) for entry in search.entries]
        found.cut += search.cut
    now = server_time(client)
    for name, entry in sorted(entries, key=lambda one: _FIRST.index(one[1].place)):
        found.add(entry.place.value, describe_entry(name, entry, now))


def _fits(found: Why, fields: dict[str, Any]) -> bool:
    """Return True for the same URL, or a page, or the start task, of the same thread."""
    if found.url in (fields.get("u"), fields.get("url")):
        return True
    if found.thread is None:
        return False
    if fields.get("site") == found.site and fields.get("post") == found.thread:
        return True
    meta = fields.get("t")
    page = meta.get("page") if isinstance(meta, dict) and meta.get("site") == found.site else None
    return isinstance(page, dict) and page.get("thread") == found.thread


def _record(client: redis.Redis, found: Why) -> None:
    """Add the record of its thread."""
    if found.site is None or found.thread is None:
        return
    name = thread_id(found.site, found.thread)
    keys = CrawlRecords(client).keys_of(FORUM_DETAIL)
    record: ThreadRecord | None = look_up(client, keys, [name])[name]
    if record is None:
        if client.hexists(keys.start_tokens(), name):
            found.add("seen", f"a scan has seen thread {name} and made a start task of it; no report of a reading is stored yet")
        return
    at = datetime.fromtimestamp(record.hour * 3600, UTC).strftime("%Y-%m-%d, in the hour from %H:00Z")
    if record.is_gone:
        found.add("gone", f"thread {name} was gone when it was read last, {at}: its site has no such page any more")
    else:
        found.add(
            "done", f"thread {name} was read last {at}: {record.comments:,} comments; unchanged lists do not lead to it again"
        )


# the database


def _rows(database: Database | None, found: Why) -> None:
    if database is None or found.site is None:
        return
    wanted = or_(posts.c.url == found.url, posts.c.id == (found.thread or ""))
    found.rows = _stored(database, found.site, "post", posts, posts.c.title, wanted)
    of_page = comments.c.url == found.url
    found.rows += _stored(database, found.site, "comment", comments, comments.c.body, of_page)
    if found.thread is not None:
        check = select(checks).where(checks.c.site == found.site, checks.c.post_id == found.thread)
        for row in database.rows(check.limit(1)):
            found.add("checked", describe_reading(row))


def _stored(database: Database, site: str, kind: str, table: Table[Any], text: Any, wanted: Any) -> list[StoredRow]:
    columns = (table.c.id, table.c.version, table.c.fetched_at, table.c.deleted_at, func.substr(text, 1, 80))
    query = select(*columns).where(table.c.site == site, wanted).order_by(table.c.id).limit(MOST_ROWS)
    return [
        StoredRow(row=kind, id=id_, version=version, fetched_at=at, deleted_at=gone, shown=begin)
        for id_, version, at, gone, begin in database.rows(query)
    ]


# the scans that should have shown it


def _no_site(found: Why, sites: Sequence[Site], wrong: Sequence[str]) -> None:
    place, known = shown(place_of(found.url)), ", ".join(one.name for one in sites) or "none"
    also = f"; the files of {', '.join(wrong)} are wrong (trawl sites check)" if wrong else ""
    found.add(
        "no site", f"no site file has {place}, so the forum services refuse it (sites: {known}{also}): add it to `also_allowed`"
    )


def _seeding(view: Overview, found: Why) -> None:
    """Add the site's state, and the scans that show its boards."""
    breaker = view.sites.breakers.get(found.site or "")
    if breaker is not None:
        found.add("held", f"site {found.site} is not crawled since {instant(breaker.since)}: {breaker.reason}")
    boards = [one for one in forum_sites(view).boards if found.board in (None, one.watched.forum)]
    if not boards:
        found.add("seeding", f"no board of site {found.site} was scanned or seeded yet: trawl seed, trawl forums {found.site}")
    for one in sorted(boards, key=lambda one: one.watched.due_at)[:MOST_ROWS]:
        scanned = "never scanned" if one.state.scanned_at is None else f"last scanned {instant(one.state.scanned_at)}"
        reason = f": {one.why}" if one.why else ""
        found.add("board", f"board {one.name} is {one.word}, {scanned}, due {instant(one.watched.waits_from)}{reason}")
    if len(boards) > MOST_ROWS:
        found.add("board", f"and {len(boards) - MOST_ROWS:,} more boards: trawl forums {found.site}")


def _never(found: Why) -> str:
    if found.site is None:
        return "nothing in Redis or in the database holds this URL, and no site file names its place"
    thread = f"thread {found.thread}" if found.thread else "this URL"
    where = f"board {found.board}" if found.board else "its board (below)"
    return (
        f"nothing in Redis or in the database holds {thread}: no scan has shown it. A scan of {where} should; it may stand deeper"
        " than scans go (trawl forums backfill), or its board is not listed"
    )


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
