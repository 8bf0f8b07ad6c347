"""Search: words and an author in stored posts; feeds of it; pages of stored threads.

Site files are read with Scrapy and lxml, which the exporter's own image lacks: the pages report that.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, PlainTextResponse
from markupsafe import Markup
from pydantic import BaseModel, Field, model_validator

from forums.overview import forum_sites
from forums.storage.read.search import MOST_LOOKED_AT, MOST_WORDS, Hit, Results, Wanted, find
from monitoring.pages.rendering import rendered, web_address
from monitoring.pages.routes import HEADERS, Desk
from monitoring.pages.views import Reading
from redis_components.errors import ConfigError, TrawlError
from redis_components.server.printable import in_one_line, printable

from . import data, pages


class NotInstalled(TrawlError):
    """A package of the fleet is not installed where this exporter runs; the message names the substitute."""


@contextmanager
def whole_installation(command: str) -> Iterator[None]:
    """Raise NotInstalled where an import in the block misses a package; the message names `command`, which does the same."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise NotInstalled(
            f"this exporter is installed without {error.name}, which reads site files: use `{command}` where workers run"
        ) from error


HITS = 50
MOST_NUMBER = 100_000  # of a thread's page
MOST_AT_ONCE = 4
"""Searches: each reads the whole database."""
_LOOK_S = 0.25  # between checks that the searching client is still connected
LONGEST = 2000  # characters of a search
WITHIN = {
    "1h": ("in the last hour", timedelta(hours=1)),
    "24h": ("in the last 24 hours", timedelta(days=1)),
    "7d": ("in the last week", timedelta(days=7)),
    "30d": ("in the last month", timedelta(days=30)),
    "365d": ("in the last year", timedelta(days=365)),
}
_AUTHOR = re.compile(r'(?:^|(?<=\s))author:(?:"([^"]+)"|(\S+))')
_places = threading.BoundedSemaphore(MOST_AT_ONCE)


class TooMany(TrawlError):
    """Too many searches run; the message asks to try again."""


@contextmanager
def _turn() -> Iterator[None]:
    """Take one of the places for searches. Raises TooMany: one that waited would hold a thread that answers everything else."""
    if not _places.acquire(blocking=False):
        raise TooMany("others are searching, and each search reads the whole database: try again")
    try:
        yield
    finally:
        _places.release()


class Asked(BaseModel):
    """The fields of the search, as they stand in its address."""

    q: str = ""
    author: str = ""
    site: str = ""
    board: str = ""
    since: str = ""  # first and last day (UTC) of publication
    until: str = ""
    within: Literal["", "1h", "24h", "7d", "30d", "365d"] = ""  # instead of the two days
    order: Literal["", "old"] = ""  # `old`: the oldest first
    page: int = Field(1, ge=1, le=MOST_NUMBER)
    format: Literal["", "rss", "atom", "json"] = ""  # of a feed

    @model_validator(mode="before")
    @classmethod
    def _of(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Return the fields without white space; `author:NAME` among the words is the author, as filters of events have it."""
        fields = {name: value.strip()[:LONGEST] if isinstance(value, str) else value for name, value in given.items()}
        text = fields.get("q", "")
        if not fields.get("author") and (named := _AUTHOR.search(text)) is not None:
            fields |= {"author": (named[1] or named[2]).strip(), "q": _AUTHOR.sub(" ", text, count=1).strip()}
        return fields

    def address(self, **changed: object) -> str:
        """Return the address of this search with other values."""
        values = self.model_dump(exclude={"format"}, exclude_defaults=True) | changed
        return f"/search?{urlencode({name: value for name, value in values.items() if value and (name, value) != ('page', 1)})}"

    @property
    def is_given(self) -> bool:
        """True if anything is asked for, be it all posts of a time."""
        return any((self.q, self.author, self.site, self.board, self.since, self.until, self.within))

    @property
    def alert(self) -> str:
        """Return the address of the form that makes an alert of this search."""
        words = [one if one.isalnum() else f'"{one}"' for one in self.q.replace('"', " ").split()]
        author = [f'author:"{self.author}"'] if self.author else []
        return f"/act/alert?{urlencode({'match': ' and '.join((*words, *author)), 'site': self.site})}"

    def wanted(self) -> Wanted:
        """Return the search for the database. Raises ConfigError."""
        since, until = _day("since", self.since), _day("until", self.until)
        if lately := WITHIN.get(self.within):
            since = max(datetime.now(UTC) - lately[1], since or _NO_DATE)
        return Wanted(
            text=self.q,
            author=self.author or None,
            site=self.site or None,
            board=self.board or None,
            since=since,
            until=until + timedelta(days=1) if until else None,
            oldest_first=self.order == "old",
        )


def _day(name: str, text: str) -> datetime | None:
    try:
        return datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC) if text else None
    except ValueError:
        raise ConfigError(f"{name} {text!r:.40}: must be a day such as 2026-01-31") from None


@dataclass(kw_only=True)
class Found:
    """The result of a search: the posts, or why there is none."""

    asked: Asked
    results: Results = field(default_factory=lambda: Results([]))
    trouble: str = ""


def search(asked: Asked, gone: threading.Event) -> Found:
    """Search; ends early once the client is `gone`."""
    found = Found(asked=asked)
    try:
        wanted = asked.wanted()
        with _turn(), data.stored_data(gone) as database:
            found.results = find(database, wanted, limit=HITS, offset=(asked.page - 1) * HITS)
    except TrawlError as error:
        found.trouble = str(error)
    return found


def marked(text: str, words: str) -> Markup:
    """Return a text, escaped, with each of the words in it marked where it is found: `*word` also within another word."""
    sought = []
    for word in words.split()[:MOST_WORDS]:
        begins = r"(?<![A-Za-z])" if word[0].isascii() and word[0].isalpha() else ""
        sought.append(begins + re.escape(word.lstrip("*") or word))
    parts = re.split(f"({'|'.join(sorted(sought, key=len, reverse=True))})", text, flags=re.IGNORECASE) if sought else [text]
    mark = Markup("<mark>{}</mark>")
    return Markup("").join(mark.format(printable(part)) if at % 2 else printable(part) for at, part in enumerate(parts))


def _page(reading: Reading, found: Found) -> str:
    asked, results = found.asked, found.results
    return reading.html(
        "search.html",
        "Search",
        asked=asked,
        results=results,
        trouble=found.trouble,
        pages=-(-results.number // HITS),
        sites=sorted({*forum_sites(reading.view).names, *filter(None, [asked.site])}),
        marked=lambda text: marked(text, asked.q),
        looked_at=MOST_LOOKED_AT,
        within=WITHIN,
        feeds=FEEDS,
    )


def rss(title: str, address: str, hits: Sequence[Hit]) -> bytes:
    """Return the hits as RSS 2.0."""
    return _xml("feed.rss.xml", title=title, address=address, hits=hits, date=format_datetime)


def atom(title: str, address: str, hits: Sequence[Hit]) -> bytes:
    """Return the hits as Atom 1.0 (RFC 4287)."""
    newest = max((one.published_at for one in hits), default=_NO_DATE)
    return _xml("feed.atom.xml", title=title, address=address, hits=hits, newest=newest, quoted=quote)


def _xml(template: str, **values: Any) -> bytes:
    return rendered(template, title_of=_title, id_of=_id, **values).encode()


def json_feed(title: str, address: str, hits: Sequence[Hit]) -> bytes:
    """Return the hits as JSON Feed 1.1 (https://www.jsonfeed.org)."""
    items = [
        {
            "id": _id(one),
            "url": web_address(one.url),
            "title": _title(one),
            "content_text": one.excerpt,
            "date_published": one.published_at.isoformat(),
            **({"authors": [{"name": one.author}]} if one.author else {}),
        }
        for one in hits
    ]
    return json.dumps(
        {"version": "https://jsonfeed.org/version/1.1", "title": title, "feed_url": address, "items": items}
    ).encode()


def _title(one: Hit) -> str:
    return one.title or (f"Re: {one.thread_title}" if one.thread_title else f"{one.author or 'an answer'} in thread {one.thread}")


def _id(one: Hit) -> str:
    return f"{one.site}/{one.kind}/{one.id}"


FEEDS = {
    "rss": (rss, "application/rss+xml"),
    "atom": (atom, "application/atom+xml"),
    "json": (json_feed, "application/feed+json"),
}
_NO_DATE = datetime(1970, 1, 1, tzinfo=UTC)


def search_routes(desk: Desk) -> APIRouter:
    """Return the routes of stored threads and of the search, which ends when its client is gone."""
    routes = APIRouter()

    @routes.get("/thread/{site}/{name:path}")
    def thread(request: Request, site: str, name: str, page: Annotated[int, Query(ge=1, le=MOST_NUMBER)] = 1) -> Response:
        return desk.answer(request, ("thread", site, name, page), lambda reading: pages.thread(reading, site, name, page))

    @routes.get("/search")
    async def find(request: Request, asked: Annotated[Asked, Query()]) -> Response:
        gone = threading.Event()

        def found() -> Response:
            if refused := desk.refused(request):
                return refused
            if not asked.format:
                empty = Found(asked=asked)
                html, code = desk.made(request, lambda reading: _page(reading, search(asked, gone) if asked.is_given else empty))
                return HTMLResponse(html, code, headers=HEADERS)
            result = search(asked, gone)
            if result.trouble:
                return PlainTextResponse(f"{in_one_line(result.trouble)}\n", 503, headers=HEADERS)
            write, kind = FEEDS[asked.format]
            words = " ".join(filter(None, (asked.q, asked.author and f"author:{asked.author}", asked.site, asked.board)))
            feed = write(f"Trawl: {words or 'newest posts'}", str(request.url), result.results.hits)
            return Response(feed, media_type=kind, headers=HEADERS)

        made = asyncio.ensure_future(run_in_threadpool(found))
        while not (await asyncio.wait({made}, timeout=_LOOK_S))[0]:
            if await request.is_disconnected():
                gone.set()
        return await made

    return routes
