"""Types of texts, for each kind of database. Migrations use them too: what is here must not change.

SQLite and PostgreSQL have texts of any length everywhere. MySQL and MariaDB cannot index those, and their usual collations take
"A" for "a", "ß" for "ss" and "x " for "x": two ids of a site would be one. Here each text has the binary collation that does not
ignore spaces at the end either; the two call it by different names. Characters sort by their code points, and so by their bytes.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Text
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.types import TypeEngine

NAME_CHARS = 255  # in MySQL at most 1,020 bytes: three of them fit into an index row (3,072 bytes), with any ids
_WORD_CHARS = 64


def mysql_collation(*, is_mariadb: bool) -> str:
    """The binary collation for all texts."""
    return "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"


class _Varchar(mysql.VARCHAR):
    """A short text of MySQL or MariaDB."""


class _LongText(mysql.LONGTEXT):
    """A text of MySQL or MariaDB of up to 4 GB; its TEXT ends after 64 KiB."""


@compiles(_Varchar, "mysql")
def _varchar(type_: _Varchar, compiler: Any, **_: object) -> str:
    return f"VARCHAR({type_.length}) {_characters(compiler)}"


@compiles(_LongText, "mysql")
def _long_text(type_: _LongText, compiler: Any, **_: object) -> str:  # noqa: ARG001 - SQLAlchemy's signature
    return f"LONGTEXT {_characters(compiler)}"


def _characters(compiler: Any) -> str:
    return f"CHARACTER SET utf8mb4 COLLATE {mysql_collation(is_mariadb=compiler.dialect.is_mariadb)}"


# Names and ids sort by their bytes, as in SQLite: a locale's order is slower, differs between machines, and a new version of the
# C library that changes it corrupts PostgreSQL's indexes.
_BYTES = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

NAME: TypeEngine[str] = _BYTES.with_variant(_Varchar(NAME_CHARS), "mysql")
"""A name or an id."""
SHORT_NAME: TypeEngine[str] = _BYTES.with_variant(_Varchar(_WORD_CHARS), "mysql")
"""A part of a key that is one of our own words, or a hash."""
TEXT: TypeEngine[str] = Text().with_variant(_LongText(), "mysql")
"""Any text that is not looked for by an index."""
WORD: TypeEngine[str] = Text().with_variant(_Varchar(_WORD_CHARS), "mysql")
"""One of our own words, in a column that has a default: MySQL has none for long texts."""
