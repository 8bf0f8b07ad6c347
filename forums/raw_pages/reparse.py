"""Reading kept pages once more, after the selectors of a site file were mended, and storing what they say now.

The same functions read them as in a crawl, and what is stored has the time at which its page was fetched: so it takes the
place of what was read wrongly, is not an edit by its author, and never overwrites what was fetched since. Scans and checks are
not made:
what is missing on a page of then says nothing about what was removed.
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

from forums.records.items import comment_item, forum_item, post_item
from forums.sites import Site, UnreadablePage
from forums.sites.definition.origins import elsewhere, place_of
from forums.sites.http import soft_block
from forums.sites.reading import isolated
from forums.sites.reading.asked_page import Asked
from forums.sites.reading.read_page import CommentsPage, FieldCount, IndexPage, ReadPost, ThreadPage
from forums.storage import Database, InvalidItem, Item, parse
from forums.storage.compare import differences
from redis_components.errors import ConfigError

from . import RawPage
from .read import Broken, read_pages

KINDS = ("index", "list", "thread", "comments", "more")
BATCH = 1000
"""Items that are in memory, and in one transaction."""
MOST_REASONS = 20
"""Different reasons of pages that could not be read that are told apart."""


@dataclass(kw_only=True)
class ReparseReport:
    """What became of the pages of one site."""

    site: str
    pages: Counter[str] = field(default_factory=Counter)  # read, by kind
    rows: Counter[str] = field(default_factory=Counter)  # found on them, by kind of page
    fields: dict[str, Counter[str]] = field(default_factory=dict)  # kind of page -> field -> rows in which it was not empty
    changes: Counter[tuple[str, str]] = field(default_factory=Counter)  # (table, what) -> how many
    bad: Counter[str] = field(default_factory=Counter)  # reason -> pages that could not be read
    refused: Counter[str] = field(default_factory=Counter)  # reason -> items that could not be stored
    cut_off: list[str] = field(default_factory=list)  # places in files that could not be read
    items: int = 0
    seconds: float = 0.0

    def lost(self) -> Iterator[str]:
        """Texts that no page of a kind has any more: hardly ever true of a site, and mostly a wrong selector."""
        for kind, fields in self.fields.items():
            if self.rows[kind] and "body" in fields and not fields["body"]:
                yield f"body is empty in all {self.rows[kind]:,} rows of {kind}: mend pages.{kind}.fields.body"

    def count_bad(self, reason: str) -> None:
        """One page that is none."""
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
    """Read the pages of `site` that are kept in `folder`, fetched from `since` on, and store what they say.

    With `dry_run` only what would change is counted. Needs the memory of `BATCH` items, however many pages there are. Raises
    StorageError; what was stored by then is stored, and doing it again does no harm. Raises ConfigError, and has stored nothing,
    where the first batch has not one body of a kind of page, unless `force`.
    """
    report, started = ReparseReport(site=site.name), time.monotonic()
    waiting: list[Item] = []

    def flush() -> None:
        report.changes.update(differences(database, waiting))
        if not dry_run:
            if not force and not report.items and (lost := next(report.lost(), None)):
                raise ConfigError(f"nothing is stored: {lost}, or say --force")
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
    """The items of one page, as the spiders make them. Raises UnreadablePage."""
    if place_of(page.url) != place_of(page.request_url) and (wrong := elsewhere(site, page.url, page.request_url)) is not None:
        raise UnreadablePage(wrong)  # a site may have moved since, but what a redirect brought from elsewhere never was its own
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
    """The id under which a thread is stored: its page's, else `own`, by which it was known, else the list's."""
    return (post.id if post else None) or own or asked.thread


def _count(report: ReparseReport, kind: str, fields: Mapping[str, FieldCount]) -> None:
    report.pages[kind] += 1
    report.rows[kind] += max((count.rows for count in fields.values()), default=0)
    filled = report.fields.setdefault(kind, Counter())
    for name, count in fields.items():
        filled[name] += count.rows - count.empty


def response_of(page: RawPage) -> TextResponse:
    """The response as a crawler had it. Raises UnreadablePage for one that is not text."""
    headers = Headers()
    for name, value in page.headers:
        headers.appendlist(name, value)
    request = Request(page.request_url, meta={"redirect_urls": [page.request_url]} if page.url != page.request_url else {})
    kind = responsetypes.from_args(headers=headers, url=page.url, body=page.body)
    response = kind(page.url, status=page.status, headers=headers, body=page.body, request=request)
    if not isinstance(response, TextResponse):
        raise UnreadablePage(f"no text: {kind.__name__}")
    return response
