"""Migration steps that may be repeated.

MySQL and MariaDB commit each statement that changes tables. A migration that dies half-way is run again from the first line of
its script, and existing objects are kept. SQLite and PostgreSQL roll the whole migration back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op


def create_table(name: str, *parts: Any, **options: Any) -> None:
    """Create a table, unless it may exist and does."""
    if not (_may_be_there() and sa.inspect(op.get_bind()).has_table(name)):
        op.create_table(name, *parts, **options)


def add_column(table: str, column: sa.Column[Any]) -> None:
    """Add a column to a table, unless it may exist and does."""
    if not (_may_be_there() and column.name in {one["name"] for one in sa.inspect(op.get_bind()).get_columns(table)}):
        op.add_column(table, column)


def create_index(name: str, table: str, columns: Sequence[str], **options: Any) -> None:
    """Create an index, unless it may exist and does."""
    if not (_may_be_there() and name in {one["name"] for one in sa.inspect(op.get_bind()).get_indexes(table)}):
        op.create_index(name, table, columns, **options)


def drop_index(name: str, table: str) -> None:
    """Drop an index, unless it may be gone and is."""
    if not _may_be_there() or name in {one["name"] for one in sa.inspect(op.get_bind()).get_indexes(table)}:
        op.drop_index(name, table)


def _may_be_there() -> bool:
    return op.get_bind().dialect.name == "mysql"
