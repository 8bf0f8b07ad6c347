"""Text types for each kind of database. Migrations use them too, so the types here must not change.

SQLite and PostgreSQL index texts of any length. MySQL and MariaDB do not (`mysql_dialect.py`).
"""

from __future__ import annotations

from sqlalchemy import Text
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import TypeEngine

from workers.consumers.mysql_dialect import LongText, Varchar

_NAME_CHARS = 255  # in MySQL at most 1,020 bytes: three of them fit into an index row, with any ids
_WORD_CHARS = 64

# Names and ids sort by their bytes, as in SQLite: a locale's order is slower, differs between machines, and a new version of the
# C library that changes it corrupts PostgreSQL's indexes.
_BYTES = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

NAME: TypeEngine[str] = _BYTES.with_variant(Varchar(_NAME_CHARS), "mysql")
"""A name or an id."""
SHORT_NAME: TypeEngine[str] = _BYTES.with_variant(Varchar(_WORD_CHARS), "mysql")
"""A part of a key: an enumeration value of Trawl, or a hash."""
TEXT: TypeEngine[str] = Text().with_variant(LongText(), "mysql")
"""Any text without an index."""
WORD: TypeEngine[str] = Text().with_variant(Varchar(_WORD_CHARS), "mysql")
"""An enumeration value of Trawl, in a column with a default: MySQL has no defaults for long texts."""
