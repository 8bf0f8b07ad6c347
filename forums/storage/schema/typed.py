"""Typed Core tables: SQLAlchemy's own since 2.1, and here for 2.0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy

if TYPE_CHECKING or hasattr(sqlalchemy, "TypedColumns"):
    from sqlalchemy import Named, Table, TypedColumns
else:
    Named = Any

    class TypedColumns:
        """Columns of a table by their names; an annotation with None makes one nullable."""

    def Table(name: str, metadata: sqlalchemy.MetaData, columns: type, **options: Any) -> sqlalchemy.Table:  # noqa: N802
        """Return the table with the columns of a class."""
        found = {key: one for key, one in vars(columns).items() if isinstance(one, sqlalchemy.Column)}
        for key, column in found.items():
            column.name = column.key = key
            column.nullable = not column.primary_key and "None" in columns.__annotations__[key]
        return sqlalchemy.Table(name, metadata, *found.values(), **options)


__all__ = ["Named", "Table", "TypedColumns"]
