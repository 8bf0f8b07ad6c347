"""Stored raw pages, read again by the present site file (`trawl sites reparse`); files may be missing or damaged.

The functions of a crawl read them, and the items have the time at which their page was fetched: so they replace what was read
wrongly, are not edits by an author, and never overwrite what was fetched since. Scans and checks are not made: what is missing on
an old page proves no removal.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import msgspec
from scrapy import Request
from scrapy.http import Headers, TextResponse
from scrapy.responsetypes import responsetypes
from sqlalchemy import Table, select

from forum_reader.definition.origins import elsewhere, place_of
from forum_reader.page import soft_block
from forum_reader.reading.asked_page import Asked
from forum_reader.reading.read_page import CommentsPage, FieldCount, IndexPage, ReadPost, ThreadPage
from forums.records.items import comment_item, forum_item, post_item
from forums.records.stored import Comment, Post
from forums.sites import Site, UnreadablePage, isolated
from forums.storage import Database, InvalidItem, Item, parse
from forums.storage.engine import keyed, rows_by_key
from forums.storage.schema.tables import comments, posts
from redis_components.errors import ConfigError
from workers.raw_pages.store import Broken, RawPage, days_of, files_of, read_file

_TABLES: tuple[tuple[type[Post | Comment], Table[Any]], ...] = ((Post, posts), (Comment, comments))
_LEFT_OUT = frozenset({"site", "id", "fetched_at", "deleted"})


def differences(database: Database, items: Sequence[Any]) -> Counter[tuple[str, str]]:
    """Count the effects of storing `items`, by table and effect: (`comments`, `new`), (…, `same`), (…, `older than stored`), and
    for each field (…, `body gained`), (…, `body lost`), (…, `body changed`).

    Of several states of one row the newest counts. Raises StorageError.
    """
    found: Counter[tuple[str, str]] = Counter()
    for kind, table in _TABLES:
        newest: dict[tuple[str, str], Post | Comment] = {}
        for item in items:
            if type(item) is kind and not item.deleted:
                known = newest.get((item.site, item.id))
                if known is None or item.fetched_at >= known.fetched_at:
                    newest[item.site, item.id] = item
        if newest:
            stored = _stored(database, table, newest)
            for key, item in newest.items():
                found.update((table.name, what) for what in _changes(item, stored.get(key)))
    return found


def _changes(item: Post | Comment, row: dict[str, Any] | None) -> list[str]:
    if row is None:
        return ["new"]
    if row["fetched_at"] > item.fetched_at:
        return ["older than stored"]
    changes = []
    for name, before in row.items():
        after = getattr(item, name, before)
        if name in _LEFT_OUT or after == before or (name == "forum_id" and after is None):  # the stored forum is kept then
            continue
        how = "gained" if before in (None, "") else "lost" if after in (None, "") else "changed"
        changes.append(f"{name} {how}")
    return changes or ["same"]


def _stored(database: Database, table: Table[Any], keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Any]]:
    query = select(table).where(keyed(table.c.id))
    with database.reading() as connection:
        return {(site, row.id): dict(row._mapping) for site, row in rows_by_key(connection, query, keys)}


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
    not_read: Counter[str] = field(default_factory=Counter)  # reason -> unreadable pages
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
        self.not_read[reason if reason in self.not_read or len(self.not_read) < MOST_REASONS else "other reasons"] += 1


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
    given = {name: page.page[name] for name in ("forum", "thread", "url", "comment", "more", "opening") if page.page.get(name)}
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
