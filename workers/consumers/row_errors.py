"""Distinguishes a row that a database refuses from a database that fails: the first is set aside, the second is waited for.

A failing database taken for a refused row would throw good items away: an unknown error counts as a failing database.
"""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, StatementError

from .mysql_dialect import ROW_CODES, error_code

# data exception, integrity violation, program limit (index row too long), raised by a trigger
_SQLSTATES = ("22", "23", "54", "P0")
_SQLITE_CODES = (sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH)


def is_of_a_row(error: Exception) -> bool:
    """Return True if the database refused a row, and the others may be stored without it."""
    cause = cause_of(error)
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return False
    sqlstate = getattr(cause, "sqlstate", None)
    sqlite_code = getattr(cause, "sqlite_errorcode", None)
    if sqlstate is not None:
        return bool(sqlstate.startswith(_SQLSTATES))
    if code := error_code(cause):
        return code in ROW_CODES
    if sqlite_code is not None:
        return sqlite_code & 0xFF in _SQLITE_CODES  # the low byte is the class of the extended code
    # the driver, or a column's type, could not convert the value for the database
    return isinstance(error, DataError | IntegrityError) or isinstance(cause, ValueError | OverflowError | TypeError)


def cause_of(error: Exception) -> BaseException:
    """Return the driver's own exception."""
    return error.orig if isinstance(error, StatementError) and error.orig is not None else error
