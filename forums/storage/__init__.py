"""Storage of crawled data: typed records, tables, idempotent bulk upserts and export, on SQLite, PostgreSQL, MySQL and
MariaDB.
"""

from forums.records.stored import Check, Comment, Forum, InvalidItem, Item, Post, Scan
from forums.records.tasks_and_items import parse, task_of_scan

from .database import Database, default_url
from .errors import StorageError
from .history import RunHistory
from .read.export import export
from .schema.tables import checks, comments, forums, gaps, metadata, posts, revisions, run_members, scans, sites
from .write.reports import Rechecks
from .write.upsert import Refused

__all__ = [  # noqa: RUF022 - in groups
    # the database
    "Database",
    "Rechecks",
    "RunHistory",
    "StorageError",
    "default_url",
    "export",
    # what it stores
    "Check",
    "Comment",
    "Forum",
    "InvalidItem",
    "Item",
    "Post",
    "Refused",
    "Scan",
    "parse",
    "task_of_scan",
    # its tables, for queries
    "checks",
    "comments",
    "forums",
    "gaps",
    "metadata",
    "posts",
    "revisions",
    "run_members",
    "scans",
    "sites",
]
