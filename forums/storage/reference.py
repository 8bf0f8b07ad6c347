"""Generator of `docs/reference/database.md` from the tables: `python -m forums.storage.reference`."""

from __future__ import annotations

import sys
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Integer, Table

from .schema.tables import metadata
from .schema.times import UtcDateTime
from .schema.version import VERSION

_HEAD = f"""# The database

Made from `forums/storage/schema/tables.py` by `make docs`. The tables have version {VERSION}; `trawl db check` prints that of a
database. Stored data can be exported (`trawl export`) and queried in place; write only to tables of your own.

- One row of `posts` or `comments` is the newest state that was seen. Each other text that it had is a row of `revisions`
  (`kind`, `site`, `id`).
- Rows that were removed on their site stay, with the time in `deleted_at`: `WHERE deleted_at IS NULL` leaves them out.
- In `gaps`, a null `closed_at` means that threads of that forum may be missing.
- Times are UTC: `timestamp with time zone` in PostgreSQL, `DATETIME(6)` in MySQL and MariaDB, text such as
  `2026-01-02T03:04:05.000000Z` in SQLite, which sorts as time does. Ids and names sort by their bytes in all of them.
- In MySQL and MariaDB every text has the collation `utf8mb4_0900_bin` or `utf8mb4_nopad_bin`: "a", "A" and "a " differ.
  The tests run on MariaDB 10.11; MySQL (from 8.0.17) has not been tried.
- There are no foreign keys: a comment may be stored before its post. `comments.post_id` is `posts.id`, `posts.forum_id` is
  `forums.id`, each with an equal `site`.

## Reading by SQL

`trawl sql` runs one SELECT or VALUES, also behind WITH, in a transaction that only reads and is rolled back. It streams
the rows, `--limit` of them at most, and ends after `--seconds`. An SQLite file is opened for reading. In PostgreSQL the
statement is that of a cursor, and the user must have no power over the server: superusers are refused, and members of
`pg_execute_server_program`, `pg_write_server_files`, `pg_signal_backend` and `pg_checkpoint`. The owner of the tables
may run it, but could end the fleet's connections by `pg_terminate_backend`; a user who can only read could not.
`deploy/compose.postgres.yml` has such a user. Elsewhere the owner of the database makes it with

    CREATE ROLE trawl_reader LOGIN PASSWORD '…';
    GRANT SELECT ON ALL TABLES IN SCHEMA public TO trawl_reader;
    ALTER DEFAULT PRIVILEGES FOR ROLE trawl GRANT SELECT ON TABLES TO trawl_reader;

and `TRAWL_READING_URL=postgresql+psycopg://trawl_reader:…@host/trawl` names it. In MySQL and MariaDB words are refused
that write files or lock rows; give `TRAWL_READING_URL` a user with SELECT alone there, too.

"""


def reference() -> str:
    """Return the whole document."""
    return _HEAD + "\n".join(_table(table) for table in metadata.tables.values())


def _table(table: Table[Any]) -> str:
    lines = [f"## `{table.name}`", "", str(table.info["title"]), "", "| column | type | meaning |", "|---|---|---|"]
    lines += [f"| {_name(column)} | {_type(column)} | {column.comment} |" for column in table.columns]
    indexes = sorted(", ".join(f"`{column.name}`" for column in index.columns) for index in table.indexes)
    if indexes:
        lines += ["", "Indexes in addition to the key: " + "; ".join(f"({names})" for names in indexes) + "."]
    return "\n".join(lines) + "\n"


def _name(column: Column[Any]) -> str:
    return f"**`{column.name}`**" if column.primary_key else f"`{column.name}`"


def _type(column: Column[Any]) -> str:
    names = {UtcDateTime: "time", Boolean: "boolean", BigInteger: "integer (64 bits)", Integer: "integer"}
    kind = next((name for known, name in names.items() if isinstance(column.type, known)), "text")
    return kind + (" or null" if column.nullable else "")


if __name__ == "__main__":
    sys.stdout.write(reference())
