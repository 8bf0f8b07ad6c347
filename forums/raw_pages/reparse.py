"""Second parsing of stored raw pages, after the selectors of a site file were fixed, and storage of the result.

The parser of the crawl is used, and each item has the time at which its page was fetched. So it replaces the wrong result, is not
stored as an edit by the author, and never overwrites a later fetch. Scans and checks are not made, because a message that is
missing on an old page was not necessarily removed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from scrapy import Request
from scrapy.http import Headers, TextResponse
from scrapy.responsetypes import responsetypes

from forum_reader.definition.origins import elsewhere, place_of
from forum_reader.reading import isolated
from forum_reader.reading.asked_page import Asked
from forum_reader.reading.read_page import CommentsPage, FieldCount, IndexPage, ReadPost, ThreadPage
from forums.records.items import comment_item, forum_item, post_item
from forums.sites import Site, UnreadablePage
from forums.sites.http import soft_block
from forums.storage import Database, InvalidItem, Item, parse
from forums.storage.compare import differences
from redis_components.errors import ConfigError

from . import RawPage
from .read import Broken, read_pages

KINDS = ("index", "list", "thread", "comments", "more")
BATCH = 1000
"""Items in memory, and in one transaction."""
MOST_REASONS = 20
"""Different reasons of unreadable pages that are counted separately."""


@dataclass(kw_only=True)
class ReparseReport:
    """Result of reparsing the pages of one site."""

    site: str
    pages: Counter[str] = field(default_factory=Counter)  # read, by kind
    rows: Counter[str] = field(default_factory=Counter)  # found on them, by kind of page
    fields: dict[str, Counter[str]] = field(default_factory=dict)  # kind of page -> field -> rows with a value
    changes: Counter[tuple[str, str]] = field(default_factory=Counter)  # (table, effect) -> number
    bad: Counter[str] = field(default_factory=Counter)  # reason -> unreadable pages
    refused: Counter[str] = field(default_factory=Counter)  # reason -> items that could not be stored
    cut_off: list[str] = field(default_factory=list)  # unreadable parts of files
    items: int = 0
    seconds: float = 0.0

    def lost(self) -> Iterator[str]:
        """Yield an error for each kind of page without any text, which is nearly always caused by a wrong selector."""
        for kind, fields in self.fields.items():
            if self.rows[kind] and "body" in fields and not fields["body"]:
                yield f"body is empty in all {self.rows[kind]:,} rows of {kind}: mend pages.{kind}.fields.body"

    def count_bad(self, reason: str) -> None:
        """Count an unreadable page."""
        self.bad[reason if reason in self.bad or len(self.bad) < MOST_REASONS else "other reasons"] += 1


def reparse(
    database: Database,
    folder: Path,
    site: Site,
    *,
    since: datetime | None = None,
    kinds: Collection[str] = KINDS,
    dry_run: bool = False,
    force: bool = False,
    progress: Callable[[ReparseReport], None] = lambda report: None,
) -> ReparseReport:
    """Parse the stored pages of `site` in `folder`, fetched from `since` on, and store the items.

    `dry_run`: only count the changes. Needs memory for `BATCH` items. Raises StorageError; items stored before stay, and the
    call may be repeated. Raises ConfigError, before anything is stored, if the first batch has a kind of page without any body,
    unless `force`.
    """
    report, started = ReparseReport(site=site.name), time.monotonic()
    waiting: list[Item] = []

    def flush() -> None:
        report.changes.update(differences(database, waiting))
        if not dry_run:
            if not force and not report.items and (lost := next(report.lost(), None)):
                raise ConfigError(f"nothing is stored: {lost}, or add --force")
            for refused in database.write(waiting):
                report.refused[refused.reason] += 1
        report.items += len(waiting)
        report.seconds = time.monotonic() - started
        waiting.clear()
        progress(report)

    for page in read_pages(folder, site.name, since):
        if isinstance(page, Broken):
            report.cut_off.append(f"{page.path}: {page.reason}")
            continue
        if page.page.get("kind") not in kinds:
            continue
        waiting += _items(site, page, report)
        if len(waiting) >= BATCH:
            flush()
    flush()
    return report


def _items(site: Site, page: RawPage, report: ReparseReport) -> Iterator[Item]:
    try:
        found = list(_read(site, page, report))
    except UnreadablePage as error:
        report.count_bad(error.reason)
        return
    for item in found:
        try:
            yield parse(msgspec.json.encode(item))
        except InvalidItem as error:
            report.refused[str(error)] += 1


def _read(site: Site, page: RawPage, report: ReparseReport) -> Iterator[dict[str, Any]]:
    """Yield the items of one page, built as in the spiders. Raises UnreadablePage."""
    if place_of(page.url) != place_of(page.request_url) and (wrong := elsewhere(site, page.url, page.request_url)) is not None:
        raise UnreadablePage(wrong)  # the site may have moved since, but a redirect to another site was never its page
    response, kind = response_of(page), page.page["kind"]
    if getattr(site.pages, kind) is None:
        raise UnreadablePage(f"the site file has no [pages.{kind}] any more")
    if (wall := soft_block.verdict(response, site.page(kind).answer)) is not None:
        raise UnreadablePage(wall.reason)
    given = {name: page.page[name] for name in ("forum", "thread", "url", "comment", "more") if page.page.get(name)}
    asked = Asked(kind=kind, number=page.page["number"], **given)
    read = isolated.read(site, response, asked)
    _count(report, kind, read.fields)
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


def _count(report: ReparseReport, kind: str, fields: Mapping[str, FieldCount]) -> None:
    report.pages[kind] += 1
    report.rows[kind] += max((count.rows for count in fields.values()), default=0)
    filled = report.fields.setdefault(kind, Counter())
    for name, count in fields.items():
        filled[name] += count.rows - count.empty


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
