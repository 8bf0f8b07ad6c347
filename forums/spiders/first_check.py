"""First check of a site file in the fleet, by the pages that are read anyway.

`sites new` and `trawl sites check` check a file before it is used. One that is mounted or copied was checked by nobody: the first
list page and the first whole thread that a crawler reads by it are compared with what the reader without a site file finds there.
What does not fit is an error of the fleet, once for each content of the file; the site is crawled on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import redis

from forum_reader.readers.file_faults import faults_of_list, faults_of_thread, seen_without_file
from forum_reader.reading.read_page import CommentsPage, ListedThread, ListPage
from forums.records.items import file_digest
from forums.sites import Site
from forums.state.keys import ForumFleetKeys
from redis_components.server.untrusted_values import as_text
from workers.state.registry import Registry

if TYPE_CHECKING:
    from scrapy.http import Response

    from .base import ForumSpider
    from .thread_reading import Reading

_known: dict[tuple[str, str], str] = {}
"""Digests of the files that this process has seen checked, by site and kind of page."""


async def check_list(spider: ForumSpider, site: Site, page: ListPage, response: Response) -> None:
    """Check the file by a list page, if it was not checked yet."""
    by_activity = site.pages.list.order == "activity"
    if page.threads:
        await _check(
            spider,
            site,
            "list",
            response,
            lambda: faults_of_list(page, seen_without_file(response), by_activity=by_activity),
        )


async def check_thread(spider: ForumSpider, site: Site, read: Reading, page: CommentsPage, response: Response) -> None:
    """Check the file by a thread's page, if that is the first one and it was not checked yet."""
    listed = ListedThread(id=read.thread, token="", url=read.url, reply_count=read.replies)

    def faults() -> Iterable[str]:
        seen = seen_without_file(response)
        return faults_of_thread(listed, page, set(), seen, response.text if seen is not None else "")

    if page.comments and read.page == 1:
        await _check(spider, site, "comments", response, faults)


async def _check(spider: ForumSpider, site: Site, kind: str, response: Response, faults: Callable[[], Iterable[str]]) -> None:
    digest = file_digest(site)
    if spider.server is None or _known.get((site.name, kind)) == digest:  # None: it crawls apart from Redis
        return
    _known[site.name, kind] = digest  # before the question to Redis: other pages come meanwhile
    if not await spider.in_thread(lambda: _is_new(spider.server, site.name, kind, digest)):
        return
    if found := await spider.in_thread(lambda: next(iter(faults()), "")):
        what = f"its file reads {response.url} wrongly: {found}; `trawl sites check {site.name} --live` reports all"
        await spider.in_thread(lambda: Registry(spider.server).report_error(f"site {site.name}", what))


def _is_new(client: redis.Redis, site: str, kind: str, digest: str) -> bool:
    """Return True for a content of the file by which no page of this kind was checked; note it."""
    key, field = ForumFleetKeys().checked_files(), f"{site}/{kind}"
    if as_text(client.hget(key, field) or b"") == digest:
        return False
    client.hset(key, field, digest)
    return True
