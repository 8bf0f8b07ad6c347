"""Storage of crawled data: typed records, tables, idempotent bulk upserts and export, on SQLite, PostgreSQL, MySQL and
MariaDB.
"""

from forums.records.tasks_and_items import parse

from .database import Database
from .errors import StorageError
from .schema.tables import checks, comments, posts, revisions, scans

__all__ = ["Database", "StorageError", "checks", "comments", "parse", "posts", "revisions", "scans"]
