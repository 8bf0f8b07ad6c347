"""Migrations of the tables as Alembic scripts, run by `schema.prepare`. A new database is made from `tables.py`, and stamped with
the last of them.

Scripts never change after their release, so they name columns and types themselves and import nothing of `tables.py`.
They hold no column comments: `schema.prepare` sets them from `tables.py` after the last step.

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


def create_index(name: str, table: str, columns: Sequence[str], **options: Any) -> None:
    """Create an index, unless it may exist and does."""
    if not (_may_be_there() and name in {one["name"] for one in sa.inspect(op.get_bind()).get_indexes(table)}):
        op.create_index(name, table, columns, **options)


def _may_be_there() -> bool:
    return op.get_bind().dialect.name == "mysql"
