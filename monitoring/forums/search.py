"""Search: a URL, with the history of its page, or words and an author in stored posts.

Site files are read with Scrapy and lxml, which the exporter's own image lacks: the pages report that.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import format_datetime
from typing import Annotated, Literal
from urllib.parse import urlsplit
from xml.etree import ElementTree

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, PlainTextResponse

from forums.storage.read.read_sql import NoData
from forums.storage.read.search import Hit
from forums.storage.read.search import search as find
from monitoring.pages.rendering import web_address
from monitoring.pages.routes import HEADERS, Desk
from monitoring.pages.views import Reading
from redis_components.errors import TrawlError
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
MOST_AT_ONCE, MOST_WAITING = 2, 6
"""Searches: each reads the whole database, and one that waits holds one of the 40 threads that answer everything else, too."""
WAIT_S = 20.0
_LOOK_S = 0.25  # also between checks that the searching client is still connected
LONGEST = 2000  # characters of a search
_AUTHOR = re.compile(r'(?:^|(?<=\s))author:(?:"([^"]+)"|(\S+))')
_running = threading.BoundedSemaphore(MOST_AT_ONCE)
_there = threading.BoundedSemaphore(MOST_AT_ONCE + MOST_WAITING)


class TooMany(TrawlError):
    """Too many searches run; the message asks to try again."""


@contextmanager
def _turn(gone: threading.Event) -> Iterator[None]:
    with _one_of(_there, 0.0, gone), _one_of(_running, WAIT_S, gone):
        yield


@contextmanager
def _one_of(places: threading.Semaphore, wait_s: float, gone: threading.Event) -> Iterator[None]:
    deadline = time.monotonic() + wait_s
    while not places.acquire(timeout=min(wait_s, _LOOK_S)):
        if gone.is_set() or time.monotonic() >= deadline:
            raise TooMany("others are searching, and each search reads the whole database: try again")
    try:
        yield
    finally:
        places.release()


@dataclass(kw_only=True)
class Found:
    """The result of a search: of a URL its story, of words the posts, the newest first; or why there is none."""

    text: str
    author: str
    story: object = None
    hits: list[Hit] = field(default_factory=list)
    trouble: str = ""


def search(reading: Reading, text: str, author: str, gone: threading.Event) -> Found:
    """Search; ends early once the client is `gone`. Raises `redis.RedisError`."""
    text, author = text.strip()[:LONGEST], author.strip()[:LONGEST]
    if not author and (named := _AUTHOR.search(text)) is not None:  # as filters of events have it
        author, text = (named[1] or named[2]).strip(), _AUTHOR.sub(" ", text, count=1).strip()
    found = Found(text=text, author=author)
    try:
        if is_url(text):
            with _turn(gone):
                found.story = _why(reading, text, gone)
        elif text or author:
            with _turn(gone), data.stored_data(gone) as database:
                found.hits = find(database, text, author=author or None, limit=HITS)
    except TrawlError as error:
        found.trouble = str(error)
    return found


def _page(reading: Reading, found: Found) -> str:
    values = {"text": found.text, "author": found.author, "found": found.story, "hits": found.hits, "trouble": found.trouble}
    return reading.html("search.html", "Search", **values, most=HITS)


def rss(title: str, address: str, hits: Iterable[Hit]) -> bytes:
    """Return the hits as RSS 2.0."""
    root = ElementTree.Element("rss", version="2.0")
    channel = ElementTree.SubElement(root, "channel")
    for name, value in (("title", title), ("link", address), ("description", title)):
        ElementTree.SubElement(channel, name).text = printable(value)
    for one in hits:
        item = ElementTree.SubElement(channel, "item")
        date = format_datetime(one.created_at) if one.created_at else ""
        values = {"title": _title(one), "link": web_address(one.url), "description": one.excerpt, "pubDate": date}
        for name, value in values.items():
            if value:
                ElementTree.SubElement(item, name).text = printable(value)
        ElementTree.SubElement(item, "guid", isPermaLink="false").text = printable(_id(one))
    text: bytes = ElementTree.tostring(root, "utf-8", xml_declaration=True)
    return text


def json_feed(title: str, address: str, hits: Iterable[Hit]) -> bytes:
    """Return the hits as JSON Feed 1.1 (https://www.jsonfeed.org)."""
    items = [
        {
            "id": _id(one),
            "url": web_address(one.url),
            "title": _title(one),
            "content_text": one.excerpt,
            **({"date_published": one.created_at.isoformat()} if one.created_at else {}),
            **({"authors": [{"name": one.author}]} if one.author else {}),
        }
        for one in hits
    ]
    return json.dumps(
        {"version": "https://jsonfeed.org/version/1.1", "title": title, "feed_url": address, "items": items}
    ).encode()


def _title(one: Hit) -> str:
    return one.title or f"{one.author or 'an answer'} in thread {one.thread}"


def _id(one: Hit) -> str:
    return f"{one.site}/{one.kind}/{one.id}"


FEEDS = {"rss": (rss, "application/rss+xml"), "json": (json_feed, "application/feed+json")}


def is_url(text: str) -> bool:
    """Return True if the text is the whole address of a page."""
    try:
        known = urlsplit(text)
    except ValueError:
        return False
    return known.scheme in ("http", "https") and bool(known.netloc) and not any(map(str.isspace, text))


def _why(reading: Reading, url: str, gone: threading.Event) -> object:
    with whole_installation("trawl why"):
        from forums.overview.why import why
    try:
        with data.stored_data(gone) as database:
            return why(reading.client, database, url)
    except NoData:
        return why(reading.client, None, url)


def search_routes(desk: Desk) -> APIRouter:
    """Return the routes of stored threads and of the search, which ends when its client is gone."""
    routes = APIRouter()

    @routes.get("/thread/{site}/{name:path}")
    def thread(request: Request, site: str, name: str, page: Annotated[int, Query(ge=1, le=MOST_NUMBER)] = 1) -> Response:
        return desk.answer(request, ("thread", site, name, page), lambda reading: pages.thread(reading, site, name, page))

    @routes.get("/search")
    async def find(request: Request, q: str = "", author: str = "", format: Literal["", "rss", "json"] = "") -> Response:
        gone = threading.Event()

        def found() -> Response:
            if refused := desk.refused(request):
                return refused
            if not format:
                html, code = desk.made(request, lambda reading: _page(reading, search(reading, q, author, gone)))
                return HTMLResponse(html, code, headers=HEADERS)
            of_url = Found(
                text=q, author=author, trouble="a feed has the posts with some words, or of an author: a URL has a story"
            )
            result = of_url if is_url(q.strip()) else search(desk.reading(request), q, author, gone)
            if result.trouble:
                return PlainTextResponse(f"{in_one_line(result.trouble)}\n", 503, headers=HEADERS)
            write, kind = FEEDS[format]
            words = " ".join(filter(None, (result.text, result.author and f"author:{result.author}")))
            return Response(write(f"Trawl: {words}", str(request.url), result.hits), media_type=kind, headers=HEADERS)

        made = asyncio.ensure_future(run_in_threadpool(found))
        while not (await asyncio.wait({made}, timeout=_LOOK_S))[0]:
            if await request.is_disconnected():
                gone.set()
        return await made

    return routes
