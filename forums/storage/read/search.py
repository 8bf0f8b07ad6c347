"""Search of stored data: by words, author and site in the index of words, by time alone in that of the times of publication."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import CTE, ColumnElement, Connection, and_, func, literal, or_, select, tuple_, union, union_all

from forums.storage.database import Database
from forums.storage.engine import keyed, rows_by_key
from forums.storage.schema.search_index import lookup, published, rows_of
from forums.storage.schema.tables import comments, posts
from redis_components.errors import ConfigError

AROUND = 100  # characters of text before and after the first matching word
MOST_WORDS = 16  # different words: each is searched in the whole of every text
MOST_LOOKED_AT = 20_000
"""Rows with common words: those that were stored last."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A search; without words, author, site and board of all rows. Raises ConfigError for more than MOST_WORDS."""

    text: str = ""
    site: str | None = None
    board: str | None = None
    author: str | None = None  # the whole name, ASCII letters in either case
    since: datetime | None = None  # published then or later
    until: datetime | None = None  # published before
    oldest_first: bool = False

    def __post_init__(self) -> None:
        if (number := len(self.words)) > MOST_WORDS:
            raise ConfigError(f"{number:,} different words are looked for, at most {MOST_WORDS} can be: leave common ones out")

    @property
    def words(self) -> list[str]:
        """The different words."""
        return list({word.encode("utf-8", "replace").lower(): word for word in self.text.split()}.values())  # lower: ASCII alone


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A post or comment that was found."""

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
    published_at: datetime  # of a row without a date, or with a later one, when it was first seen
    first_seen_at: datetime


class Results(NamedTuple):
    """One page of a search."""

    hits: list[Hit]
    number: int = 0  # of all pages
    is_cut: bool = False  # there are more than the MOST_LOOKED_AT that were looked at: those stored or published last


def find(database: Database, wanted: Wanted, *, limit: int = 20, offset: int = 0) -> Results:
    """Return posts and comments with every word in title or body, by the time of their publication, without removed ones.

    A word is found where it begins a word of the text, `*word` anywhere in it, and Chinese anywhere, since it has no spaces.
    Without an index (MySQL, MariaDB, `*word`, signs alone) the whole table is read: some seconds for a million rows.
    """
    by_time = not (wanted.words or wanted.author or wanted.site)
    with database.reading() as connection:
        keys, number, is_cut = (_by_time if by_time else _by_words)(connection, wanted, limit, offset)
        return Results(_hits(connection, keys, wanted.words), number, is_cut)


def newest(database: Database, now: float, *, limit: int) -> tuple[list[Hit], int]:
    """Return the posts and comments that were published last, and how many were in the hour before `now` (epoch s)."""
    with database.reading() as connection:
        lately = Wanted(since=datetime.fromtimestamp(now, UTC) - timedelta(hours=1))
        number = sum(_number(connection, table, lately) for table in (posts, comments))
        return _hits(connection, _last(connection, Wanted(), limit, 0), []), number


_Key = tuple[str, str, str]
"""Kind, site and id."""


def _by_time(connection: Connection, wanted: Wanted, limit: int, offset: int) -> tuple[list[_Key], int, bool]:
    number = sum(_number(connection, table, wanted) for table in (posts, comments))
    return _last(connection, wanted, limit, offset), min(number, MOST_LOOKED_AT), number > MOST_LOOKED_AT


def _number(connection: Connection, table: Any, wanted: Wanted) -> int:
    """Return the number of wanted rows of a table, at most MOST_LOOKED_AT + 1."""
    some = _of(table, wanted, (), None, connection).limit(MOST_LOOKED_AT + 1).subquery()
    return connection.execute(select(func.count()).select_from(some)).scalar() or 0


def _last(connection: Connection, wanted: Wanted, limit: int, offset: int) -> list[_Key]:
    """Return the keys of one page: of each table as many rows as may be on it are read in the order of its index."""
    most = min(offset, MOST_LOOKED_AT) + limit
    parts = []
    for table in (posts, comments):
        at = published(table, connection.dialect.name)
        part = _of(table, wanted, (), None, connection).order_by(at if wanted.oldest_first else at.desc()).limit(most)
        parts.append(select(part.subquery()))
    found = union_all(*parts).subquery()
    page = select(found).order_by(*_order(found, wanted)).limit(limit).offset(offset)
    return [(row.kind, row.site, row.id) for row in connection.execute(page)]


def _order(found: Any, wanted: Wanted) -> tuple[Any, ...]:
    c = found.c
    return (c.at if wanted.oldest_first else c.at.desc(), c.site, c.id)


def _by_words(connection: Connection, wanted: Wanted, limit: int, offset: int) -> tuple[list[_Key], int, bool]:
    of_words = lookup(wanted.words, wanted.site, wanted.author)
    indexed = rows_of(connection, of_words, MOST_LOOKED_AT + 1)
    among = None if indexed is None else indexed.cte("indexed")
    exact = wanted.words if among is None else of_words.exact
    found = union(*(_of(table, wanted, exact, among, connection) for table in (posts, comments))).subquery()
    looked_at = literal(0) if among is None else select(func.count()).select_from(among).scalar_subquery()
    page = select(found, func.count().over().label("number"), looked_at.label("looked_at"))
    rows = connection.execute(page.order_by(*_order(found, wanted)).limit(limit).offset(offset)).all()
    if not rows:
        return [], 0, False
    return [(row.kind, row.site, row.id) for row in rows], rows[0].number, rows[0].looked_at > MOST_LOOKED_AT


def _of(table: Any, wanted: Wanted, exact: Sequence[str], among: CTE | None, connection: Connection) -> Any:
    """Return the query of the keys of those rows of a table that are wanted."""
    c, is_post = table.c, table is posts
    kind = "post" if is_post else "comment"
    at = published(table, connection.dialect.name)
    query = select(literal(kind).label("kind"), c.site, c.id, at.label("at")).where(c.deleted_at.is_(None))
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
        (wanted.since, lambda value: at >= value),
        (wanted.until, lambda value: at < value),
    ]
    return query.where(*(condition(value) for value, condition in conditions if value is not None))


_OF_ROW = ("site", "id", "author", "created_at", "url", "thread", "first_seen_at")


def _hits(connection: Connection, keys: Sequence[_Key], words: list[str]) -> list[Hit]:
    """Return these rows as hits, in this order."""
    found: dict[_Key, Hit] = {}
    for kind, table in (("post", posts), ("comment", comments)):
        c, ids = table.c, [(site, id_) for one, site, id_ in keys if one == kind]
        if not ids:
            continue
        thread, at = c.id if table is posts else comments.c.post_id, published(table, connection.dialect.name)
        columns = (c.site, c.id, c.author, c.created_at, c.url, c.body, c.first_seen_at, thread.label("thread"), at.label("at"))
        if table is posts:
            query = select(*columns, posts.c.title, posts.c.forum_id)
        else:
            of_post = and_(posts.c.site == c.site, posts.c.id == comments.c.post_id)
            query = select(*columns, posts.c.title, posts.c.forum_id).outerjoin_from(table, posts, of_post)
        for _, row in rows_by_key(connection, query.where(keyed(c.id)), ids):
            found[kind, row.site, row.id] = Hit(
                kind=kind,
                title=row.title if table is posts else "",
                excerpt=excerpt(row.body, words),
                thread_title=row.title or "",
                board=row.forum_id or "",
                published_at=row.at,
                **{name: getattr(row, name) for name in _OF_ROW},
            )
    return [found[key] for key in keys if key in found]


def excerpt(body: str, words: list[str]) -> str:
    """Return the text around the first of the words, in one line."""
    text = " ".join(body.split())
    place = re.search("|".join(re.escape(word.lstrip("*")) for word in words) or "^", text, re.IGNORECASE)
    at = place.start() if place else 0
    begin, end = max(0, at - AROUND), at + AROUND * (1 if words else 2)
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"
