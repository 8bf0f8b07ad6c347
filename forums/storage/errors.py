"""Errors of the database, for operators: one line with the database, the driver's message, and the fix.

Two kinds are kept apart. A *row* that the database refuses (a NUL byte in PostgreSQL, a CHECK constraint added by the operator)
is set aside, and the other rows are stored. A failed *database* (away, locked, full, read-only) stops the writer, and all items
stay in the stream. Mistaking the second for the first would discard good items, so unknown errors count as the second.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from sqlalchemy import URL
from sqlalchemy.exc import NoSuchModuleError

from fleet_operations.consumers.database_rows import cause_of, is_of_a_row
from fleet_operations.consumers.mysql_dialect import error_code
from redis_components.errors import TrawlError

_SECRET_OPTIONS = ("password", "sslpassword")
EXAMPLES = "sqlite:///data/trawl.sqlite, postgresql+psycopg://user:password@host/database or mysql+pymysql://… (also MariaDB)"

# Pattern in the driver's message -> fix for the operator. The first match is taken.
_FIXES = (
    (r"No module named 'psycopg", "install the driver: pip install 'trawl-fleet[postgres]'"),
    (r"No module named 'pymysql", "install the driver: pip install 'trawl-fleet[mysql]'"),
    (r"No module named|Can't load plugin", f"use {EXAMPLES}"),
    (r"to database|command denied|permission denied for", "grant this user the rights to create and write the tables"),
    (r"Unknown database|database \S+ does not exist", "create it first, or correct its name in TRAWL_DATABASE_URL"),
    (r"Deadlock found|Record has changed since last read", "it is tried again"),
    (r"[Dd]isk (is )?full|No space left|could not extend|The table .{0,200} is full|disk I/O error", "make room on its disk"),
    (r"[Rr]ead-?only|READ ONLY|unable to open|Permission denied|Not a directory|File exists",
     "name a place or a server that this user may write, in TRAWL_DATABASE_URL"),
    (r"locked|Lock wait timeout", "another process holds a lock: find it (fuser FILE, SHOW FULL PROCESSLIST) and let it finish"),
    (r"not a database|malformed", "the file is not a sound SQLite database: move it away, or name another in TRAWL_DATABASE_URL"),
    (r"no such (table|column)|(relation|column) .{0,200} does not exist|Table .{0,200} doesn't exist|Unknown column",
     "its tables are not those that Trawl made: name an empty database in TRAWL_DATABASE_URL"),
    (r"[Cc]onnect(ion)?\b|Access denied|authentication|no password supplied|role .{0,200} does not exist|server has gone away",
     "check that the server runs, and that host, port, user and password in TRAWL_DATABASE_URL are right"),
)  # fmt: skip


class StorageError(TrawlError):
    """The database cannot be opened, read or written; the message names it (its password masked) and how to mend it."""


def masked(url: URL | str) -> str:
    """Return the URL for people and logs, without its password."""
    if isinstance(url, str):  # could not be parsed: the text after the first colon may be a password
        return re.sub(r"(:/*).*", r"\1***", url, flags=re.DOTALL)
    secret = {name: "***" for name in _SECRET_OPTIONS if name in url.query}
    shown = url.update_query_dict(secret).render_as_string(hide_password=True)
    # A path is shown decoded: %E6%88%91 is unreadable, 我 is not.
    return unquote(shown) if url.get_backend_name() == "sqlite" else shown


def storage_error(url: URL | str, error: Exception) -> StorageError:
    """Return a StorageError with one line for `error`, a failure of the database."""
    detail = first_line(error)
    if isinstance(url, URL) and url.password:
        detail = detail.replace(str(url.password), "***")
    fix = next((fix for pattern, fix in _FIXES if re.search(pattern, detail)), "see the database's own log")
    return unfit(url, f"{detail}; {fix}")


def unfit(url: URL | str, what: str) -> StorageError:
    """Return the error for a database that cannot serve, without its password; `what` has the reason and the fix."""
    return StorageError(f"database {masked(url)}: {what}")


def first_line(error: Exception) -> str:
    """Return the driver's message in one line, without SQLAlchemy's statement and parameters."""
    if isinstance(error, NoSuchModuleError):
        return str(error).partition("\n")[0]
    cause = cause_of(error)
    if isinstance(cause, OSError) and cause.strerror:
        return f"{cause.strerror}: {cause.filename}"
    if code := error_code(cause):
        return f"{' '.join(str(cause.args[-1]).split())} ({code})"
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    return lines[0].strip()


def row_refusal(error: Exception) -> str | None:
    """Return the reason if the database refused a row, None if the database failed."""
    return f"the database refused it: {first_line(error)}" if is_of_a_row(error) else None
