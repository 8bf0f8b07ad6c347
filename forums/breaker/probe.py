"""Probes of sites with an open breaker: the forum part of the task `probe_sites`.

A probe reads the kind of page that opened the breaker, with as few requests as possible: the first list page of a forum, and for
threads or comments one thread of that list. It is fetched by the node that runs the task, so if a site blocks a single node's
address, the breaker may close too early; it soon opens again, and its back-off continues.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import redis
from msgspec.structs import replace
from scrapy import Request
from scrapy.http import TextResponse

from forum_reader.definition.fields import NEEDED
from forum_reader.definition.page_requests import PageRequest
from forum_reader.definition.pages import PageKind
from forum_reader.page import soft_block
from forum_reader.page.soft_block import Cause
from forum_reader.reading.page_records import Asked, CommentsPage, FieldCount, IndexPage, ListedThread, ListPage, ThreadPage
from forums.sites import Site, SiteError, UnreadablePage, isolated, load_all, load_site, site_names
from forums.sites.http.fetch import FetchFailed, NotNow, VisitLimits, Visitor
from forums.state.keys import ForumFleetKeys
from redis_components.items.stream import give_back
from redis_components.keys import limits_key
from redis_components.politeness.limits import LanePermits
from redis_components.server.printable import in_words
from redis_components.server.untrusted_values import server_time
from workers.breaker.state import close_breaker, due
from workers.state.holds import HOST, Breaker, Breakers

from .state import FILE_PROBE_S, after_probe, is_given_up

MOST_PROBES = 50
"""Probes in one round; each takes seconds, and they run concurrently."""
PROBE_S = 15.0
"""Time-out of a probe, after which the site counts as not answering."""
LOCK_S = 70
"""Expiry of the lock, longer than the task may take: at most one process of the node hangs on slow sites."""

Found = str | NotNow | None
"""The fault that a probe found; None for a page of the site."""

_careful: ContextVar[bool] = ContextVar("trawl_careful_probe", default=False)
"""True if a page of the site hung a crawler: the probe then parses in a child process."""

logger = logging.getLogger(__name__)


def probe_sites(client: redis.Redis) -> dict[str, str]:
    """Probe the sites that are due, and close the breakers of sites that are well; return the outcome by site.

    Does nothing while another process runs it. Raises `redis.RedisError`.
    """
    lock, began = ForumFleetKeys().probing(), time.monotonic()
    if not client.set(lock, os.getpid(), nx=True, ex=LOCK_S):
        if client.ttl(lock) == -1:  # a lock without expiry has no owner and would block probes for ever
            client.expire(lock, LOCK_S)
        return {}
    try:
        return _round(client)
    finally:
        give_back(lambda: client.delete(lock), "the lock of probes", held_s=began + LOCK_S - time.monotonic())


def _round(client: redis.Redis) -> dict[str, str]:
    sites = {site.name: site for site in load_all()[0]}
    files = set(site_names())
    done: dict[str, str] = {}
    breakers = Breakers(client)
    known, now = breakers.all(), server_time(client)
    for site, breaker in known.items():
        if is_given_up(breaker) and site in sites:  # its file is valid again
            breakers.put(site, None)
    taken = {}
    of_sites = [one for one in due(client, known, now) if one[1].kind != HOST]
    for site, breaker in of_sites[:MOST_PROBES]:
        if breaker.cause == Cause.SITE_FILE:
            done[site] = _look_at_file(client, breakers, site, breaker, now)
        elif site not in files:
            done[site] = "its site file is gone"
            close_breaker(client, site, done[site])
        elif site in sites and breakers.put(site, _claimed(breaker, now)):  # no other process probes it now
            taken[site] = _claimed(breaker, now)
    found = (
        asyncio.run(_probe_all(client, [(sites[name], breaker.kind, breaker.cause) for name, breaker in taken.items()]))
        if taken
        else {}
    )
    now = server_time(client)
    for site, breaker in taken.items():
        done[site] = _settle(client, breakers, sites[site], breaker, found[site], now)
    return done


def _look_at_file(client: redis.Redis, breakers: Breakers, site: str, breaker: Breaker, now: float) -> str:
    try:
        load_site(site)
    except SiteError as error:
        wrong = error.in_a_line
        after = replace(
            breaker, reason=wrong, probes=breaker.probes + 1, last_probe="not right yet", next_probe_at=now + FILE_PROBE_S
        )
        breakers.put(site, after)
        return f"open: {wrong}"
    close_breaker(client, site, "its site file is right")
    if (known := breakers.get(site)) is not None and not known.is_open:
        breakers.put(site, None)
    return "closed"


def _settle(client: redis.Redis, breakers: Breakers, site: Site, breaker: Breaker, found: Found, now: float) -> str:
    if isinstance(found, NotNow):  # no request was sent
        breakers.put(site.name, replace(breaker, next_probe_at=now + found.wait_s))
        return "its limits allow no probe now"
    after = after_probe(breaker, found, site.breaker, now, random.random())  # noqa: S311 - jitter
    if not breakers.put(site.name, after):
        return "another process has changed it"
    if found is not None:
        logger.info("the breaker of site %s stays open: %s; next probe in %.0f s", site.name, found, after.next_probe_at - now)
        return f"open: {found}"
    if after.good < site.breaker.good_probes:
        return f"{after.good} of {site.breaker.good_probes} good probes"
    close_breaker(client, site.name, f"{after.good} probes in a row found pages of the site")
    return "closed"


def _claimed(breaker: Breaker, now: float) -> Breaker:
    """Postpone the next probe by the time that a probe may take, so that no other process starts one."""
    return replace(breaker, next_probe_at=now + PROBE_S + 20)


async def _probe_all(client: redis.Redis, sites: Sequence[tuple[Site, str, str]]) -> dict[str, Found]:
    async def one(site: Site, kind: str, cause: str) -> Found:
        _careful.set(cause == Cause.HUNG)
        limits = VisitLimits(LanePermits(client, limits_key()), site.name, site.politeness.lane)
        try:
            return await asyncio.wait_for(probe(site, kind, limits), PROBE_S)
        except NotNow as not_asked:
            return not_asked
        except TimeoutError:
            return f"no answer within {PROBE_S:.0f} s"
        except FetchFailed as error:
            return str(error)
        except Exception as error:  # a page of one site must not end the probes of the others
            logger.exception("the probe of site %s failed", site.name)
            return f"the probe failed: {in_words(error)}"

    found = await asyncio.gather(*(one(site, kind, cause) for site, kind, cause in sites))
    return {site.name: result for (site, _, _), result in zip(sites, found, strict=True)}


async def probe(site: Site, kind: str, limits: VisitLimits | None = None) -> str | None:
    """Probe a site with pages of this kind; return the fault, or None if it answers with its pages.

    Raises FetchFailed, and NotNow if its limits allow no request.
    """
    async with Visitor(site, limits=limits) as visitor:
        try:
            if site.breaker.probe_url is not None:
                response = await _get(visitor, PageRequest(url=str(site.breaker.probe_url)))
                return _wrong(response, None) or (f"HTTP {response.status}" if response.status >= 400 else None)
            return await _read_list(visitor, site, kind)
        except _Wrong as wrong:
            return str(wrong)


class _Wrong(Exception):
    """The fault of a response that is not a page of the site."""


async def _read_list(visitor: Visitor, site: Site, kind: str) -> str | None:
    forum = next(iter(site.forums), None) or await _a_forum(visitor, site)
    if kind == "index" and site.forums and site.pages.index is not None:
        await _a_forum(visitor, site)
    response = await _get_good(visitor, site, "list", site.list_url(forum))
    page: ListPage = await _read(site, response, Asked(kind="list", forum=forum))
    if not page.threads:
        found = soft_block.without_rows(response)
        return found.reason if found else "a list without threads"
    if kind in ("thread", "comments"):
        return _lacks("list", page.fields) or await _read_one(visitor, site, kind, forum, page.threads)
    return _lacks("list", page.fields)


async def _a_forum(visitor: Visitor, site: Site) -> str:
    """Return the largest forum of the index, for sites whose file names none."""
    response = await _get_good(visitor, site, "index", site.url("index"))
    page: IndexPage = await _read(site, response, Asked(kind="index"))
    if not page.forums:
        raise _Wrong("an index without forums")
    return max(page.forums, key=lambda forum: forum.threads or 0).id


async def _read_one(visitor: Visitor, site: Site, kind: str, forum: str, threads: tuple[ListedThread, ...]) -> str | None:
    """Read the thread of the list with the most replies; return the fault, or None."""
    thread = max(threads, key=lambda one: one.reply_count or 0)
    if kind == "thread" and site.pages.thread is not None:
        post = await _get_good(visitor, site, "thread", site.url("thread", forum=forum, thread=thread.id, url=thread.url))
        opening: ThreadPage = await _read(site, post, Asked(kind="thread", thread=thread.id))
        return _lacks("thread", opening.fields)
    response = await _get_good(visitor, site, "comments", site.url("comments", forum=forum, thread=thread.id, url=thread.url))
    page: CommentsPage = await _read(site, response, Asked(kind="comments", thread=thread.id, forum=forum, url=thread.url))
    return _lacks("comments", page.fields)


async def _read(site: Site, response: TextResponse, asked: Asked) -> Any:
    try:
        return await (isolated.apart if _careful.get() else isolated.read_soon)(site, response, asked)
    except UnreadablePage as error:
        raise _Wrong(soft_block.unreadable(response, error.reason).reason) from error


async def _get_good(visitor: Visitor, site: Site, kind: PageKind, url: str) -> TextResponse:
    """Return a page that may be the site's. Raises _Wrong for any other."""
    response = await _get(visitor, site.asking(kind, url))
    if wrong := _wrong(response, site.page(kind).answer) or (f"HTTP {response.status}" if response.status >= 400 else None):
        raise _Wrong(wrong)
    return response


def _wrong(response: TextResponse, expects: str | None) -> str | None:
    found = soft_block.verdict(response, expects)
    return None if found is None else found.reason


async def _get(visitor: Visitor, page: PageRequest) -> TextResponse:
    """Return the response with its request and redirects set as in a crawler."""
    response = await visitor.get(page)
    before = {"redirect_urls": [page.url]} if response.url != page.url else {}
    return response.replace(request=Request(page.url, meta=before))


def _lacks(kind: str, fields: Mapping[str, FieldCount]) -> str | None:
    """Return the fault if a required field is empty in every row, else None."""
    gone = [name for name in NEEDED[kind] if name in fields and 0 < fields[name].rows == fields[name].empty]
    return f"{gone[0]} is empty in each row of the {kind} page" if gone else None
