"""The time by which posts and comments are sorted: that of their publication, and its index.

A row without a date counts as published when it was first seen; so does one with a date after that, which is wrong: a clock of
the site, or a zone. The index is outside of `tables.py`, since MariaDB has none of an expression: there it is one of a generated
column, in MySQL, too.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, inspect, literal_column

from .tables import comments, posts
from .times import UtcDateTime

_COLUMN = "published_at"
_EXPRESSION = "CASE WHEN created_at < first_seen_at THEN created_at ELSE first_seen_at END"
_INDEXES = {
    "ix_posts_published": (posts.name, ""),
    "ix_posts_site_published": (posts.name, "site, "),
    "ix_comments_published": (comments.name, ""),
}


def published(table: Any, dialect: str) -> ColumnElement[datetime]:
    """Return the time of publication of the rows of `posts` or `comments`."""
    if dialect == "mysql":
        return literal_column(f"{table.name}.{_COLUMN}", UtcDateTime)
    c = table.c
    return case((c.created_at < c.first_seen_at, c.created_at), else_=c.first_seen_at)


def create(connection: Connection) -> None:
    """Make the indexes, unless they are there."""
    expression, there = f"({_EXPRESSION})", inspect(connection)
    if connection.dialect.name == "mysql":  # commits each statement: a former upgrade may have died here
        expression = _COLUMN
        for table in (posts.name, comments.name):
            if _COLUMN not in {one["name"] for one in there.get_columns(table)}:
                connection.exec_driver_sql(
                    f"ALTER TABLE {table} ADD COLUMN {_COLUMN} DATETIME(6) GENERATED ALWAYS AS ({_EXPRESSION}) VIRTUAL"
                )
    known = (
        {one["name"] for table in (posts.name, comments.name) for one in there.get_indexes(table)}
        if expression == _COLUMN
        else ()
    )
    for name, (table, before) in _INDEXES.items():
        if name not in known:
            connection.exec_driver_sql(f"CREATE INDEX {name} ON {table} ({before}{expression})")
    if connection.dialect.name == "postgresql":  # else it estimates the expression by a constant until a tenth has changed
        connection.exec_driver_sql(f"ANALYZE {posts.name}, {comments.name}")
