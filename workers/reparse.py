"""Reading kept pages once more, after the selectors of a site file were mended, and storing what they say now.

The same functions read them as in a crawl, and what is stored has the time at which its page was fetched: so it takes the place
of what was read wrongly, is no edit by its author, and never overwrites what was fetched since. Scans and checks are not made:
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

from redis_components.errors import ConfigError

from .items import comment_item, forum_item, post_item
from .raw import RawPage
from .raw.reading import Broken, read_pages
from .sites import Site, UnreadablePage, soft_block
from .sites.reading import FieldCount, read_comments, read_index, read_list, read_thread
from .storage import Database, InvalidItem, Item, parse
from .storage.compare import differences

KINDS = ("index", "list", "thread", "comments")
BATCH = 1000
"""Items that are in memory, and in one transaction."""
MOST_REASONS = 20
"""Different reasons of pages that could not be read that are told apart."""


@dataclass(kw_only=True)
class Report:
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
    progress: Callable[[Report], None] = lambda report: None,
) -> Report:
    """Read the pages of `site` that are kept in `folder`, fetched from `since` on, and store what they say.

    With `dry_run` only what would change is counted. Needs the memory of `BATCH` items, however many pages there are. Raises
    StorageError; what was stored by then is stored, and doing it again does no harm. Raises ConfigError, and has stored nothing,
    where the first batch has not one body of a kind of page, unless `force`.
    """
    report, started = Report(site=site.name), time.monotonic()
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


def _items(site: Site, page: RawPage, report: Report) -> Iterator[Item]:
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


def _read(site: Site, page: RawPage, report: Report) -> Iterator[dict[str, Any]]:
    """The items of one page, as the spiders make them. Raises UnreadablePage."""
    response, kind = response_of(page), page.page["kind"]
    if getattr(site.pages, kind) is None:
        raise UnreadablePage(f"the site file has no [pages.{kind}] any more")
    if (wall := soft_block.verdict(response, site.page(kind).format)) is not None:
        raise UnreadablePage(wall.reason)
    asked = _Asked(**{name: page.page.get(name) or None for name in ("forum", "thread", "url")}, number=page.page["number"])
    if kind == "thread":
        read = read_thread(site, response, asked.thread or "")
        _count(report, kind, read.fields)
        yield _post(read.post, site, page, asked)
    elif kind == "comments":
        comments = read_comments(site, response, asked.thread or "", asked.number, forum=asked.forum or "", url=asked.url)
        _count(report, kind, comments.fields)
        if comments.post is not None:
            yield _post(comments.post, site, page, asked)
        for one in comments.comments:
            yield comment_item(one, site=site.name, thread=asked.thread or "", url=page.url, fetched_at=page.fetched_at)
    elif kind == "list":
        _count(report, kind, read_list(site, response, asked.forum or "", asked.number).fields)
    else:
        index = read_index(site, response, asked.number)
        _count(report, kind, index.fields)
        for forum in index.forums:
            yield forum_item(forum, site=site.name, fetched_at=page.fetched_at)


class _Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a page was fetched for."""

    forum: str | None
    thread: str | None
    url: str | None
    number: int


def _post(post: Any, site: Site, page: RawPage, asked: _Asked) -> dict[str, Any]:
    url = asked.url or page.url
    return post_item(post, site=site.name, thread=asked.thread or "", forum=asked.forum, url=url, fetched_at=page.fetched_at)


def _count(report: Report, kind: str, fields: Mapping[str, FieldCount]) -> None:
    report.pages[kind] += 1
    report.rows[kind] += max((count.rows for count in fields.values()), default=0)
    filled = report.fields.setdefault(kind, Counter())
    for name, count in fields.items():
        filled[name] += count.rows - count.empty


def response_of(page: RawPage) -> TextResponse:
    """The response as a crawler had it. Raises UnreadablePage for one that is no text."""
    headers = Headers()
    for name, value in page.headers:
        headers.appendlist(name, value)
    request = Request(page.request_url, meta={"redirect_urls": [page.request_url]} if page.url != page.request_url else {})
    kind = responsetypes.from_args(headers=headers, url=page.url, body=page.body)
    response = kind(page.url, status=page.status, headers=headers, body=page.body, request=request)
    if not isinstance(response, TextResponse):
        raise UnreadablePage(f"no text: {kind.__name__}")
    return response
