"""Reading stored data by words, and by SQL that cannot change anything."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, literal, or_, select, union_all
from sqlalchemy.exc import DBAPIError

from redis_components.errors import ConfigError

from .database import Database
from .tables import comments, posts

AROUND = 60  # characters of text before and after the first word that was found

_READS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}

_MYSQL_READS = re.compile(r"[\s(]*(SELECT|WITH|SHOW|EXPLAIN|DESCRIBE|DESC|TABLE|VALUES)\b", re.IGNORECASE)
_MYSQL_FILES = re.compile(r"\b(OUTFILE|DUMPFILE)\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A post or comment that has all the words."""

    kind: str  # post, comment
    site: str
    id: str
    title: str  # "" of a comment
    author: str | None
    created_at: datetime | None
    url: str
    excerpt: str


def search(database: Database, text: str, *, site: str | None = None, author: str | None = None, limit: int = 20) -> list[Hit]:
    """Posts and comments with every word of `text` in title or body, the newest first; removed ones are left out.

    `author`: only theirs, by the whole name, ASCII letters in either case; then `text` may be empty.

    A word is found anywhere, also within another: Chinese needs no spaces. ASCII letters match in either case. The whole
    table is read: some seconds for a million rows. Raises ConfigError for a text without words.
    """
    words = text.split()
    if not words and author is None:
        raise ConfigError("there is nothing to look for: give a word, such as trawl query 'redis 队列'")

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
        select(literal("post").label("kind"), p.site, p.id, p.title, p.author, p.created_at, p.url, p.body).where(
            has_all(p.title, p.body), of(posts), p.deleted_at.is_(None)
        ),
        select(
            literal("comment").label("kind"), c.site, c.id, literal("").label("title"), c.author, c.created_at, c.url, c.body
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
        )
        for row in rows
    ]


def excerpt(body: str, words: list[str]) -> str:
    """The text around the first of the words, in one line."""
    text = " ".join(body.split())
    places = [place for word in words if (place := text.lower().find(word.lower())) >= 0]
    at = min(places, default=0)
    begin, end = max(0, at - AROUND), at + AROUND
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"


def read_sql(database: Database, statement: str, *, limit: int) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names and at most `limit` rows of one statement that only reads. Raises ConfigError for one that would do more."""
    with database.translated(), database.engine.connect() as connection, _reading(connection):
        driver: Any = connection.connection.dbapi_connection
        cursor = driver.cursor()
        try:
            if connection.dialect.name == "postgresql":
                cursor.execute(statement, prepare=True)  # a prepared one is one statement: not `COMMIT; DELETE …`
            elif connection.dialect.name == "mysql":
                cursor.execute(_only_reads(statement))  # one statement: this driver sends no others
            else:
                cursor.execute(statement)
            if cursor.description is None:
                raise ConfigError("the statement returns no rows: write a SELECT")
            return [column[0] for column in cursor.description], [tuple(row) for row in cursor.fetchmany(limit)]
        except connection.dialect.loaded_dbapi.Error as error:
            if getattr(driver, "closed", False) or not getattr(driver, "open", True):  # the connection is lost
                raise DBAPIError(statement, None, error) from error
            said = " ".join(str(error.args[-1] if error.args else error).split()).rstrip(".")
            raise ConfigError(
                f"the database refused: {said}; write one SELECT, tables and columns are in docs/database.md"
            ) from error
        finally:
            cursor.close()


def _only_reads(statement: str) -> str:
    """A statement of MySQL or MariaDB as it is. A transaction that reads only does not keep an administrator from SHUTDOWN, or
    from writing a file. Raises ConfigError.
    """
    if not _MYSQL_READS.match(statement) or _MYSQL_FILES.search(statement):
        raise ConfigError("the statement does not only read: write one SELECT, tables and columns are in docs/database.md")
    return statement


@contextmanager
def _reading(connection: Connection) -> Iterator[None]:
    """Let this connection read only, for every statement."""
    if connection.dialect.name == "mysql":
        connection.exec_driver_sql("SET SESSION TRANSACTION READ ONLY")
        connection.exec_driver_sql("START TRANSACTION READ ONLY")
        try:
            yield
        finally:
            connection.invalidate()  # with all that was set in it
        return
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")
        yield
        return
    connection.exec_driver_sql("SELECT 1")  # begins the transaction
    driver: Any = connection.connection.dbapi_connection
    driver.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY)
    try:
        yield
    finally:
        driver.set_authorizer(None)
