"""`trawl sites check`: a page of each kind as read with a site file, and a thread as a temporary database stores it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from rich.text import Text
from sqlalchemy import URL, select

from cli.names import visit_limits
from cli.views.output import counted, echo, print_json, working
from cli.views.tables import Columns, console, shortened, show
from forums.records.items import comment_item, post_item, stamp, utc_now, with_listed
from forums.records.stored import Item
from forums.sites import Site
from forums.sites.check import Trial, TriedField, TriedPage, TriedThread
from forums.sites.http.fetch import Visitor
from forums.sites.load import load_file
from forums.spiders.thread_reading import Reading, with_own_id
from forums.storage import Database, InvalidItem, parse
from forums.storage.schema.tables import comments, posts

from .sites import path_of

_SHOWN = 5  # comments


class StoredRow(msgspec.Struct, frozen=True, kw_only=True):
    """A post or comment, as the database has it."""

    kind: str
    id: str
    parent_id: str | None
    author: str | None
    created_at: str | None
    body: str


class StoredSample(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of a thread in a database: their numbers, the first rows, and items that could not be stored."""

    posts: int
    comments: int
    rows: tuple[StoredRow, ...]
    refused: tuple[str, ...]


def store_sample(site: Site, thread: TriedThread) -> StoredSample:
    """Store the items of a thread in a temporary database; return its rows."""
    items: list[Item] = []
    refused: list[str] = []
    for given in _items(site, thread):
        try:
            items.append(parse(json.dumps(given).encode()))
        except InvalidItem as error:
            refused.append(f"{given['kind']} {given['id']}: {error}")
    with TemporaryDirectory(prefix="trawl-check-") as folder:
        url = URL.create("sqlite", database=str(Path(folder) / "check.sqlite"))
        with Database.from_url(url.render_as_string(hide_password=False)) as database:
            for one in database.write(items):
                item: Any = items[one.place]
                refused.append(f"{type(item).__name__.lower()} {item.id}: {one.reason}")
            with database.reading() as connection:
                opening = connection.execute(select(posts)).all()
                answers = connection.execute(select(comments).order_by(comments.c.position, comments.c.created_at)).all()
    rows = [_row("post", row) for row in opening] + [_row("comment", row) for row in answers[:_SHOWN]]
    return StoredSample(posts=len(opening), comments=len(answers), rows=tuple(rows), refused=tuple(refused))


def _items(site: Site, thread: TriedThread) -> Iterator[dict[str, Any]]:
    """Yield items as the spider makes them: fields that the page of a post lacks are those of the list."""
    now, listed = utc_now(), thread.listed
    created, last = listed.created_at, listed.last_activity
    reading = Reading(
        started_at=now,
        thread=listed.id,
        replies=listed.reply_count,
        author=listed.author,
        created_at=stamp(created) if created else None,
        last_activity=stamp(last) if last else None,
    )
    if thread.post is not None:
        reading = with_own_id(reading, thread.post)
    name = reading.own or reading.thread
    if thread.post is not None:
        post = with_listed(thread.post, reading)
        yield post_item(post, site=site.name, thread=name, forum=thread.forum, url=thread.url, fetched_at=now)
    for comment in thread.comments:
        yield comment_item(comment, site=site.name, thread=name, url=thread.comments_url, fetched_at=now)


def _row(kind: str, row: Any) -> StoredRow:
    created = row.created_at.isoformat(timespec="minutes") if row.created_at else None
    parent = row.parent_id if kind == "comment" else None
    return StoredRow(kind=kind, id=row.id, parent_id=parent, author=row.author, created_at=created, body=row.body)


_EXAMPLE = 60  # characters
_TEXT = 40  # characters of a row that was stored


def run(site: str, *, live: bool, forum: str | None, thread: str | None, as_json: bool) -> int:
    """Check a site; return the exit code, 0 or 1. Raises SiteError with all faults of the file."""
    path = path_of(site)
    known = load_file(path)
    tried: list[TriedPage] = []
    stored: StoredSample | None = None
    if live:
        with working(f"reading a page of each kind at {known.base_url}", shown=not as_json):
            tried, stored = asyncio.run(_try(known, forum, thread))
    bad = any(page.problem for page in tried) or bool(stored and stored.refused)
    if as_json:
        print_json(_as_json(path, known, tried, stored))
        return int(bad)
    echo(f"{path} is right: {_summary(known)}")
    for page in tried:
        _show(page)
    if stored:
        _show_stored(stored)
    return int(bad)


async def _try(site: Site, forum: str | None, thread: str | None) -> tuple[list[TriedPage], StoredSample | None]:

    async with Visitor(site, limits=visit_limits(str(site.base_url), site.name)) as visitor:
        trial = Trial(site, visitor)
        tried = await trial.run(forum, thread)
    read = trial.thread
    if read is None or (read.post is None and not read.comments):
        return tried, None

    return tried, await asyncio.to_thread(store_sample, site, read)


def _as_json(path: Path, site: Site, tried: list[TriedPage], stored: StoredSample | None) -> dict[str, object]:

    fields = {"file": str(path), "site": site.name, "pages": msgspec.to_builtins(tried)}
    return fields | ({"stored": msgspec.to_builtins(stored)} if stored else {})


def _summary(site: Site) -> str:
    forums = counted(len(site.forums), "forum") if site.forums else ""
    watched = " and ".join(part for part in (forums, "what the index lists" if site.discover else "") if part)
    return f"{watched} of {site.base_url}{f', profile {site.profile}' if site.profile else ''}"


def _show(page: TriedPage) -> None:

    echo(f"\n{page.kind}: {page.url}")
    if page.fields:
        found = [page.what if page.rows == 1 and page.kind in ("thread", "post") else f"{page.rows} {page.what}"]
        found += [f"{page.pages} pages"] if page.pages is not None else []
        found += [f"{page.total} in all"] if page.total is not None else []
        found += [f"next: {page.next}"] if page.next else []
        echo("  " + ", ".join(found))
        columns: Columns = {
            "  field": lambda field: f"  {field.name}",
            "empty": _empty,
            "example": lambda field: shortened(field.example or "", _EXAMPLE),
        }
        show(page.fields, columns, False)
    if page.problem:
        console().print(Text(f"  wrong: {page.problem}", style="red"))
    if page.hint:
        console().print(Text(f"  but: {page.hint}", style="yellow"))


def _empty(field: TriedField) -> Text:
    share = f"{100 * field.empty / field.rows:.0f} %" if field.rows else "-"
    return Text(share, style="red" if field.rows == field.empty else "yellow" if field.empty else "")


def _show_stored(stored: StoredSample) -> None:

    echo(f"\nstored in a temporary database: {counted(stored.posts, 'post')}, {counted(stored.comments, 'comment')}")
    columns: Columns = {
        "  kind": lambda row: f"  {row.kind}",
        "id": "id",
        "answers": lambda row: row.parent_id or "",
        "author": lambda row: row.author or "",
        "date": lambda row: (row.created_at or "")[:16],
        "text": lambda row: shortened(row.body, _TEXT),
    }
    show(stored.rows, columns, False)
    for reason in stored.refused:
        console().print(Text(f"  wrong: it cannot be stored: {reason}", style="red"))
