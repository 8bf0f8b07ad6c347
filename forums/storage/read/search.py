"""Full-text search of stored data by words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, func, literal, or_, select, union_all

from forums.storage.database import Database
from forums.storage.schema.tables import comments, posts
from redis_components.errors import ConfigError

AROUND = 60  # characters of text before and after the first matching word
MOST_WORDS = 16  # different words: each is searched in the whole of every text


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


def search(database: Database, text: str, *, site: str | None = None, author: str | None = None, limit: int = 20) -> list[Hit]:
    """Return posts and comments with every word of `text` in title or body, the newest first, without removed ones.

    `author`: only this author's, by the whole name, ASCII letters in either case; then `text` may be empty.

    A word also matches within another word, since Chinese has no spaces. ASCII letters match in either case. The whole table is
    read: some seconds for a million rows. Raises ConfigError for a text without words, or with more than MOST_WORDS.
    """
    words = list({word.encode("utf-8", "replace").lower(): word for word in text.split()}.values())  # lower: ASCII alone
    if not words and author is None:
        raise ConfigError("there is nothing to look for: give a word, such as trawl search 'redis 队列'")
    if len(words) > MOST_WORDS:
        raise ConfigError(f"{len(words):,} different words are looked for, at most {MOST_WORDS} can be: leave common ones out")

    def has_all(*columns: Any) -> ColumnElement[bool]:
        return and_(
            literal(value=True), *(or_(*(column.icontains(word, autoescape=True) for column in columns)) for word in words)
        )

    def of(table: Any) -> ColumnElement[bool]:
        of_site = table.c.site == site if site is not None else literal(value=True)
        if author is None:
            return of_site
        return and_(of_site, func.lower(table.c.author) == func.lower(literal(author)))

    p, c = posts.c, comments.c
    found = union_all(
        select(
            literal("post").label("kind"), p.site, p.id, p.title, p.author, p.created_at, p.url, p.body, p.id.label("thread")
        ).where(has_all(p.title, p.body), of(posts), p.deleted_at.is_(None)),
        select(
            *(literal("comment").label("kind"), c.site, c.id, literal("").label("title"), c.author, c.created_at, c.url, c.body),
            c.post_id,
        ).where(has_all(c.body), of(comments), c.deleted_at.is_(None)),
    ).subquery()
    query = select(found).order_by(found.c.created_at.is_(None), found.c.created_at.desc(), found.c.site, found.c.id).limit(limit)
    with database.translated(), database.engine.connect() as connection:
        rows = connection.execute(query).all()
    return [
        Hit(
            kind=row.kind,
            site=row.site,
            id=row.id,
            title=row.title,
            author=row.author,
            created_at=row.created_at,
            url=row.url,
            excerpt=excerpt(row.body, words),
            thread=row.thread,
        )
        for row in rows
    ]


def excerpt(body: str, words: list[str]) -> str:
    """Return the text around the first of the words, in one line."""
    text = " ".join(body.split())
    lowered = text.lower()
    places = [place for word in words if (place := lowered.find(word.lower())) >= 0]
    at = min(places, default=0)
    begin, end = max(0, at - AROUND), at + AROUND
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"
