"""Differences of MySQL and MariaDB from SQLite and PostgreSQL, for everything that writes into them. Their usual collations take
"A" for "a", "ß" for "ss" and "x " for "x": two keys would be one. Here each text has the binary collation that does not ignore
spaces at the end either; the two servers call it by different names. Characters sort by their code points, and so by their
bytes. Tables that are there have these types: they must not change.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import URL, Connection, text
from sqlalchemy.dialects import mysql
from sqlalchemy.ext.compiler import compiles

MYSQL = ("mysql", "mariadb")
"""The names of both servers in a URL."""
DRIVER = "mysql+pymysql"  # also of MariaDB: SQLAlchemy finds out which of them it is
CONNECT_ARGS = {"sql_mode": "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION", "charset": "utf8mb4"}
"""Arguments of the driver: a value that does not fit is an error, not cut; the server's settings may be others."""
# null, duplicate, out of range, no default, wrong value, too long, a trigger's or CHECK's refusal, a row that is too large
ROW_CODES = frozenset(
    {1048, 1062, 1118, 1138, 1139, 1169, 1264, 1265, 1292, 1364, 1366, 1367, 1406, 1411, 1416, 1441, 1452, 1644, 1690, 3819, 4025}
)
"""Error numbers for a bad row, as opposed to a failing database."""


def has_other_driver(url: URL) -> bool:
    """Return True if the URL names a driver that is not PyMySQL."""
    return url.drivername.partition("+")[2] not in ("", "pymysql")


def error_code(error: object) -> int | None:
    """Return MySQL's number of an error of its driver, which has it in the arguments only; None without a number."""
    arguments = getattr(error, "args", ())
    code = arguments[0] if type(error).__module__.startswith("pymysql.") and arguments else None
    return code if isinstance(code, int) and code else None


def collation(*, is_mariadb: bool) -> str:
    """Return the binary collation for all texts."""
    return "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"


class Varchar(mysql.VARCHAR):
    """A short text, which may be in an index: of all its columns together that may have 3,072 bytes, 4 for a character."""


class LongText(mysql.LONGTEXT):
    """A text of up to 4 GB; TEXT ends after 64 KiB."""


@compiles(Varchar, "mysql")
def _varchar(type_: Varchar, compiler: Any, **_: object) -> str:
    return f"VARCHAR({type_.length}) {_characters(compiler)}"


@compiles(LongText, "mysql")
def _long_text(type_: LongText, compiler: Any, **_: object) -> str:  # noqa: ARG001 - SQLAlchemy's signature
    return f"LONGTEXT {_characters(compiler)}"


def _characters(compiler: Any) -> str:
    return f"CHARACTER SET utf8mb4 COLLATE {collation(is_mariadb=compiler.dialect.is_mariadb)}"


OTHERS = 65_536
"""Bytes of a statement that are not values."""
_CELL = 32  # bytes of a number, and of the signs around a value
_LONGEST = 4  # bytes of a character
_ESCAPED = (b"\0", b"\n", b"\r", b"\x1a", b'"', b"'", b"\\")  # one byte more each


def most_bytes(connection: Connection) -> int:
    """Return the most bytes of the values in one statement."""
    known = connection.info  # of the driver's connection, for as long as it is open
    if "max_allowed_packet" not in known:
        known["max_allowed_packet"] = connection.execute(text("SELECT @@max_allowed_packet")).scalar_one()
    return int(known["max_allowed_packet"]) - OTHERS


def sent_bytes(values: Iterable[Any], most: int) -> int:
    """Return the bytes of values in a statement: exactly where that may be over `most`, else an upper bound."""
    values = list(values)
    texts = [value for value in values if isinstance(value, str)]
    others = _CELL * len(values)
    bound = others + _LONGEST * sum(map(len, texts))
    return bound if bound <= most else others + sum(map(_of_text, texts))


def why_too_large(size: int, most: int) -> str:
    """Return the reason for refusing a row of this size."""
    return f"it has {size:,} bytes, and the server takes {most:,} in one statement (max_allowed_packet)"


def _of_text(value: str) -> int:
    raw = value.encode("utf-8", "replace")
    return len(raw) + sum(map(raw.count, _ESCAPED))
