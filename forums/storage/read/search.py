"""Full-text search of stored data by words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import CTE, ColumnElement, Connection, and_, func, literal, or_, select, tuple_, union

from forums.storage.database import Database
from forums.storage.schema.search_index import lookup, rows_of
from forums.storage.schema.tables import comments, posts
from redis_components.errors import ConfigError

AROUND = 100  # characters of text before and after the first matching word
MOST_WORDS = 16  # different words: each is searched in the whole of every text
MOST_LOOKED_AT = 20_000
"""Rows with common words: those that were stored last."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A search. Raises ConfigError for one without words and author, or with more than MOST_WORDS."""

    text: str = ""
    site: str | None = None
    board: str | None = None
    author: str | None = None  # the whole name, ASCII letters in either case
    since: datetime | None = None  # published then or later
    until: datetime | None = None  # published before
    oldest_first: bool = False

    def __post_init__(self) -> None:
        if not self.words and not self.author:
            raise ConfigError("there is nothing to look for: give a word, such as trawl search 'redis 队列'")
        if (number := len(self.words)) > MOST_WORDS:
            raise ConfigError(f"{number:,} different words are looked for, at most {MOST_WORDS} can be: leave common ones out")

    @property
    def words(self) -> list[str]:
        """The different words."""
        return list({word.encode("utf-8", "replace").lower(): word for word in self.text.split()}.values())  # lower: ASCII alone


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A post or comment with all words."""

    kind: str  # post, comment
    site: str
    id: str
    title: str  # "" for a comment
    author: str | None
    created_at: datetime | None
    url: str
    excerpt: str
    thread: str  # id of the post
    thread_title: str = ""  # "": the post is not stored yet
    board: str = ""


class Results(NamedTuple):
    """One page of a search."""

    hits: list[Hit]
    number: int = 0  # of all pages
    is_cut: bool = False  # more rows have the words: only the MOST_LOOKED_AT that were stored last were looked at


def search(database: Database, text: str, *, site: str | None = None, author: str | None = None, limit: int = 20) -> list[Hit]:
    """Return the newest hits. Raises ConfigError."""
    return find(database, Wanted(text=text, site=site, author=author), limit=limit).hits


def find(database: Database, wanted: Wanted, *, limit: int = 20, offset: int = 0) -> Results:
    """Return posts and comments with every word in title or body, by the time of their publication, without removed ones.

    A word is found where it begins a word of the text, `*word` anywhere in it, and Chinese anywhere, since it has no spaces.
    Without an index (MySQL, MariaDB, `*word`, signs alone) the whole table is read: some seconds for a million rows.
    """
    with database.translated(), database.engine.connect() as connection:
        of_words = lookup(wanted.words, wanted.site, wanted.author)
        indexed = rows_of(connection, of_words, MOST_LOOKED_AT + 1)
        among = None if indexed is None else indexed.cte("indexed")
        exact = wanted.words if among is None else of_words.exact
        found = union(*(_of(table, wanted, exact, among) for table in (posts, comments))).subquery()
        looked_at = literal(0) if among is None else select(func.count()).select_from(among).scalar_subquery()
        c = found.c
        by_time = (c.created_at, c.site, c.id) if wanted.oldest_first else (c.created_at.desc(), c.site, c.id)
        page = select(found, func.count().over().label("number"), looked_at.label("looked_at"))
        rows = connection.execute(page.order_by(c.created_at.is_(None), *by_time).limit(limit).offset(offset)).all()
        hits = _hits(connection, [(row.kind, row.site, row.id) for row in rows], wanted.words)
    return Results(hits, rows[0].number, rows[0].looked_at > MOST_LOOKED_AT) if rows else Results([])


def _of(table: Any, wanted: Wanted, exact: Sequence[str], among: CTE | None) -> Any:
    """Return the query of the keys of those rows of a table that are wanted."""
    c, is_post = table.c, table is posts
    kind = "post" if is_post else "comment"
    query = select(literal(kind).label("kind"), c.site, c.id, c.created_at).where(c.deleted_at.is_(None))
    if among is not None:
        keys = select(among.c.site, among.c.id).where(among.c.kind == kind)  # no join: SQLite would read every row of the table
        query = query.where(tuple_(c.site, c.id).in_(keys))
    elif wanted.author:
        query = query.where(func.lower(c.author) == func.lower(literal(wanted.author)))
    texts = (posts.c.title, posts.c.body) if is_post else (comments.c.body,)
    for word in exact:
        sought = word[1:] if among is None and word.startswith("*") and len(word) > 1 else word
        query = query.where(or_(*(one.icontains(sought, autoescape=True) for one in texts)))
    if wanted.board is not None and not is_post:
        query = query.join(posts, and_(posts.c.site == c.site, posts.c.id == c.post_id))
    conditions: list[tuple[Any, Callable[[Any], ColumnElement[bool]]]] = [
        (wanted.site, lambda value: c.site == value),
        (wanted.board, lambda value: posts.c.forum_id == value),
        (wanted.since, lambda value: c.created_at >= value),
        (wanted.until, lambda value: c.created_at < value),
    ]
    return query.where(*(condition(value) for value, condition in conditions if value is not None))


def _hits(connection: Connection, keys: Sequence[tuple[str, str, str]], words: list[str]) -> list[Hit]:
    """Return these rows as hits, in this order."""
    found: dict[tuple[str, str, str], Hit] = {}
    for kind, table in (("post", posts), ("comment", comments)):
        c, ids = table.c, [(site, id_) for one, site, id_ in keys if one == kind]
        if not ids:
            continue
        thread = c.id if table is posts else comments.c.post_id
        columns = (c.site, c.id, c.author, c.created_at, c.url, c.body, thread.label("thread"))
        if table is posts:
            query = select(*columns, posts.c.title, posts.c.forum_id)
        else:
            of_post = and_(posts.c.site == c.site, posts.c.id == comments.c.post_id)
            query = select(*columns, posts.c.title, posts.c.forum_id).outerjoin_from(table, posts, of_post)
        of_sites = {site: [id_ for one, id_ in ids if one == site] for site, _ in ids}  # of pairs SQLite would read every row
        for row in connection.execute(query.where(or_(*(and_(c.site == site, c.id.in_(of)) for site, of in of_sites.items())))):
            found[kind, row.site, row.id] = Hit(
                kind=kind,
                site=row.site,
                id=row.id,
                title=row.title if table is posts else "",
                author=row.author,
                created_at=row.created_at,
                url=row.url,
                excerpt=excerpt(row.body, words),
                thread=row.thread,
                thread_title=row.title or "",
                board=row.forum_id or "",
            )
    return [found[key] for key in keys if key in found]


def excerpt(body: str, words: list[str]) -> str:
    """Return the text around the first of the words, in one line."""
    text = " ".join(body.split())
    place = re.search("|".join(re.escape(word.lstrip("*")) for word in words) or "^", text, re.IGNORECASE)
    at = place.start() if place else 0
    begin, end = max(0, at - AROUND), at + AROUND
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"
