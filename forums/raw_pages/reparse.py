"""Stored raw pages, read again by the present site file (`trawl sites reparse`); files may be missing or damaged.

The functions of a crawl read them, and the items have the time at which their page was fetched: so they replace what was read
wrongly, are not edits by an author, and never overwrite what was fetched since. Scans and checks are not made: what is missing on
an old page proves no removal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import msgspec
from scrapy import Request
from scrapy.http import Headers, TextResponse
from scrapy.responsetypes import responsetypes

from forum_reader.definition.page_requests import elsewhere, place_of
from forum_reader.page import soft_block
from forum_reader.reading.page_records import Asked, CommentsPage, IndexPage, ReadPost, ThreadPage
from forums.records.stored import Comment, InvalidItem, Item, Post
from forums.records.tasks_and_items import comment_item, forum_item, post_item
from forums.sites import Site, UnreadablePage, isolated
from forums.storage import Database, parse
from redis_components.errors import ConfigError
from workers.raw_pages.store import Broken, RawPage, days_of, files_of, read_file


def stored_days(folder: Path, site: str, since: datetime | None = None) -> list[date]:
    """Return the days that may have pages of `site` from `since` on."""
    first = since.astimezone(UTC).date() if since else date.min
    return [day for day in days_of(folder, site) if day >= first]


def read_pages(folder: Path, site: str, since: datetime | None = None) -> Iterator[RawPage | Broken]:
    """Yield the pages of `site`, day by day and file by file; within a file in the order of writing.

    The last record of a file is truncated if its process was killed or is still writing; it is yielded as Broken.
    """
    for day in stored_days(folder, site, since):
        for path in files_of(folder, site, day):
            for page in read_file(path):
                if isinstance(page, Broken) or since is None or datetime.fromisoformat(page.fetched_at) >= since:
                    yield page


BATCH = 1000
"""Items in memory, and in one transaction."""
MOST_REASONS = 20
"""Different reasons that are counted separately."""


@dataclass(kw_only=True)
class ReparseReport:
    """Result of reparsing the pages of one site."""

    site: str
    pages: int = 0  # read
    items: int = 0  # stored
    faults: Counter[str] = field(default_factory=Counter)  # reason -> pages not read, items refused, parts of files cut off

    def count_bad(self, reason: str) -> None:
        """Count a page, an item or a part of a file that could not be used."""
        self.faults[reason if reason in self.faults or len(self.faults) < MOST_REASONS else "other reasons"] += 1


def reparse(database: Database, folder: Path, site: Site, *, since: datetime | None = None) -> ReparseReport:
    """Parse the stored pages of `site` in `folder`, fetched from `since` on, and store the items.

    Needs memory for `BATCH` items. Raises StorageError; items stored before stay, and the call may be repeated. Raises
    ConfigError, before anything is stored, if the first batch has not one text.
    """
    report = ReparseReport(site=site.name)
    waiting: list[Item] = []

    def flush() -> None:
        texts = [one.body for one in waiting if isinstance(one, Post | Comment)]
        if texts and not report.items and not any(texts):
            raise ConfigError(f"nothing is stored: none of {len(texts):,} posts and comments has a text: mend the fields `body`")
        for refused in database.write(waiting):
            report.count_bad(refused.reason)
        report.items += len(waiting)
        waiting.clear()

    for page in read_pages(folder, site.name, since):
        if isinstance(page, Broken):
            report.count_bad(f"{page.path}: {page.reason}")
            continue
        waiting += _items(site, page, report)
        if len(waiting) >= BATCH:
            flush()
    flush()
    return report


def _items(site: Site, page: RawPage, report: ReparseReport) -> Iterator[Item]:
    try:
        found = list(_read(site, page))
    except UnreadablePage as error:
        report.count_bad(error.reason)
        return
    report.pages += 1
    for item in found:
        try:
            yield parse(msgspec.json.encode(item))
        except InvalidItem as error:
            report.count_bad(str(error))


def _read(site: Site, page: RawPage) -> Iterator[dict[str, Any]]:
    """Yield the items of one page, built as in the spiders. Raises UnreadablePage."""
    if place_of(page.url) != place_of(page.request_url) and (wrong := elsewhere(site, page.url, page.request_url)) is not None:
        raise UnreadablePage(wrong)  # the site may have moved since, but a redirect to another site was never its page
    response, kind = response_of(page), page.page["kind"]
    if getattr(site.pages, kind) is None:
        raise UnreadablePage(f"the site file has no [pages.{kind}] any more")
    if (wall := soft_block.verdict(response, site.page(kind).answer)) is not None:
        raise UnreadablePage(wall.reason)
    given = {name: page.page[name] for name in ("forum", "thread", "url", "comment", "more", "opening") if page.page.get(name)}
    asked = Asked(kind=kind, number=page.page["number"], **given)
    read = isolated.read(site, response, asked)
    if isinstance(read, ThreadPage):
        yield _post(read.post, site, page, asked)
    elif isinstance(read, CommentsPage):
        own = page.page.get("own")
        if read.post is not None:
            yield _post(read.post, site, page, asked)
        for one in read.comments:
            yield comment_item(
                one, site=site.name, thread=_thread(read.post, own, asked), url=page.url, fetched_at=page.fetched_at
            )
    elif isinstance(read, IndexPage):
        for forum in read.forums:
            yield forum_item(forum, site=site.name, fetched_at=page.fetched_at)


def _post(post: ReadPost, site: Site, page: RawPage, asked: Asked) -> dict[str, Any]:
    url = asked.url or page.url
    thread = _thread(post, page.page.get("own"), asked)
    return post_item(post, site=site.name, thread=thread, forum=asked.forum or None, url=url, fetched_at=page.fetched_at)


def _thread(post: ReadPost | None, own: str | None, asked: Asked) -> str:
    """Return the id under which a thread is stored: from its page, else `own`, its id in an earlier reading, else the list's."""
    return (post.id if post else None) or own or asked.thread


def response_of(page: RawPage) -> TextResponse:
    """Return the response as a crawler had it. Raises UnreadablePage if it is not text."""
    headers = Headers()
    for name, value in page.headers:
        headers.appendlist(name, value)
    request = Request(page.request_url, meta={"redirect_urls": [page.request_url]} if page.url != page.request_url else {})
    kind = responsetypes.from_args(headers=headers, url=page.url, body=page.body)
    response = kind(page.url, status=page.status, headers=headers, body=page.body, request=request)
    if not isinstance(response, TextResponse):
        raise UnreadablePage(f"no text: {kind.__name__}")
    return response
