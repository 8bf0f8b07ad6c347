"""Search: a URL, with the history of its page, or words and an author in stored posts.

Site files are read with Scrapy and lxml, which the exporter's own image lacks: the pages report that.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse

from forums.storage.existing import NoData
from forums.storage.read.search import search as find
from monitoring.pages.routes import HEADERS, Desk
from monitoring.pages.views import Reading
from redis_components.errors import TrawlError

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


def search(reading: Reading, text: str, author: str, gone: threading.Event) -> str:
    """Return the page of results, the newest first; of a URL, why it is stored or is not. Ends early once the client is `gone`.
    Raises `redis.RedisError`.
    """
    text, author = text.strip()[:LONGEST], author.strip()[:LONGEST]
    if not author and (named := _AUTHOR.search(text)) is not None:  # as filters of events have it
        author, text = (named[1] or named[2]).strip(), _AUTHOR.sub(" ", text, count=1).strip()
    found, hits, trouble = None, [], ""
    try:
        if is_url(text):
            with _turn(gone):
                found = _why(reading, text, gone)
        elif text or author:
            with _turn(gone), data.stored_data(gone) as database:
                hits = find(database, text, author=author or None, limit=HITS)
    except TrawlError as error:
        trouble = str(error)
    return reading.html("search.html", "Search", text=text, author=author, found=found, hits=hits, trouble=trouble, most=HITS)


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
    async def find(request: Request, q: str = "", author: str = "") -> Response:
        gone = threading.Event()

        def found() -> Response:
            if refused := desk.refused(request):
                return refused
            html, code = desk.made(request, lambda reading: search(reading, q, author, gone))
            return HTMLResponse(html, code, headers=HEADERS)

        made = asyncio.ensure_future(run_in_threadpool(found))
        while not (await asyncio.wait({made}, timeout=_LOOK_S))[0]:
            if await request.is_disconnected():
                gone.set()
        return await made

    return routes
