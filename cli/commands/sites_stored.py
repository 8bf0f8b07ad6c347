"""What `trawl sites check --live` read of a thread, stored in a temporary database and read from it: as a crawl would have it."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import URL, select

from forums.records.items import comment_item, post_item, stamp, utc_now, with_listed
from forums.spiders.thread_reading import Reading, with_own_id
from forums.storage import Database, InvalidItem, parse
from forums.storage.tables import comments, posts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forums.records.stored import Stored
    from forums.sites import Site
    from forums.sites.check import TriedThread

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
    """What a database has of a thread that was read: its numbers of rows, the first ones, and what could not be stored."""

    posts: int
    comments: int
    rows: tuple[StoredRow, ...]
    refused: tuple[str, ...]


def store_sample(site: Site, thread: TriedThread) -> StoredSample:
    """Store what was read of a thread in a database that is gone afterwards."""
    items: list[Stored] = []
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
            with database.translated(), database.engine.connect() as connection:
                opening = connection.execute(select(posts)).all()
                answers = connection.execute(select(comments).order_by(comments.c.position, comments.c.created_at)).all()
    rows = [_row("post", row) for row in opening] + [_row("comment", row) for row in answers[:_SHOWN]]
    return StoredSample(posts=len(opening), comments=len(answers), rows=tuple(rows), refused=tuple(refused))


def _items(site: Site, thread: TriedThread) -> Iterator[dict[str, Any]]:
    """As the spider makes them: what the page does not say of the post is the list's."""
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
