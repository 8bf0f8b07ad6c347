"""The tables, as typed Core tables. Each column's comment is stored in PostgreSQL too (`\\d+ posts`).

There are no foreign keys: a comment may arrive before its post, and a site may remove a post whose comments we keep.
`info["version"]` names the column that decides which of two rows with the same key is the newer one.

Whoever changes a table raises `schema.VERSION`. A new table that older versions need not know
does not: `schema.complete` adds it.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, Named, Table, Text, TypedColumns
from sqlalchemy.dialects import postgresql

from .times import UtcDateTime

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

# Names and ids sort by their bytes, as in SQLite: a locale's order is slower, differs between machines, and a new version of the
# C library that changes it corrupts PostgreSQL's indexes.
_NAME = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


class PostColumns(TypedColumns):
    site: Named[str] = Column(_NAME, primary_key=True, comment="Name of the site file.")
    id: Named[str] = Column(_NAME, primary_key=True, comment="Id of the post (thread) on its site.")
    forum_id: Named[str] = Column(_NAME, comment="Id of the forum that the post is in.")
    title: Named[str] = Column(Text, comment="Title as plain text.")
    body: Named[str] = Column(Text, comment="Text of the opening post.")
    author: Named[str | None] = Column(Text, comment="Name of the author; null when the site hides it.")
    created_at: Named[datetime | None] = Column(UtcDateTime, comment="When it was posted, by the site's clock.")
    views: Named[int | None] = Column(BigInteger, comment="Views, when the site tells.")
    reply_count: Named[int | None] = Column(BigInteger, comment="Replies, by the site's own count.")
    last_reply_at: Named[datetime | None] = Column(UtcDateTime, comment="Time of the newest reply, by the site's clock.")
    url: Named[str] = Column(Text, comment="Where it was fetched.")
    fetched_at: Named[datetime] = Column(UtcDateTime, comment="When this state was fetched; only a newer one overwrites it.")
    first_seen_at: Named[datetime] = Column(UtcDateTime, comment="When the first state that we stored was fetched.")


class CommentColumns(TypedColumns):
    site: Named[str] = Column(_NAME, primary_key=True, comment="Name of the site file.")
    id: Named[str] = Column(_NAME, primary_key=True, comment="Id of the comment (reply) on its site.")
    post_id: Named[str] = Column(_NAME, comment="Id of the post that it belongs to; the post may not be stored yet.")
    parent_id: Named[str | None] = Column(_NAME, comment="Id of the comment that it answers; null: it answers the post.")
    author: Named[str | None] = Column(Text, comment="Name of the author; null when the site hides it.")
    body: Named[str] = Column(Text, comment="Text of the comment.")
    created_at: Named[datetime | None] = Column(UtcDateTime, comment="When it was posted, by the site's clock.")
    url: Named[str] = Column(Text, comment="Where it was fetched.")
    fetched_at: Named[datetime] = Column(UtcDateTime, comment="When this state was fetched; only a newer one overwrites it.")
    first_seen_at: Named[datetime] = Column(UtcDateTime, comment="When the first state that we stored was fetched.")


class ScanColumns(TypedColumns):
    site: Named[str] = Column(_NAME, primary_key=True, comment="Name of the site file.")
    forum_id: Named[str] = Column(_NAME, primary_key=True, comment="Id of the forum that was scanned.")
    started_at: Named[datetime] = Column(UtcDateTime, primary_key=True, comment="When the scan began, by the crawler's clock.")
    finished_at: Named[datetime] = Column(UtcDateTime, comment="When it ended, by the crawler's clock.")
    pages: Named[int] = Column(Integer, comment="List pages read.")
    threads: Named[int] = Column(Integer, comment="Threads seen on them.")
    outcome: Named[str] = Column(Text, comment="complete or failed.")
    reason: Named[str | None] = Column(Text, comment="Why it failed.")


class RunColumns(TypedColumns):
    id: Named[str] = Column(
        _NAME, primary_key=True, comment="Id of the crawler process: spider/slot#token.n, or who ran it by hand."
    )
    spider: Named[str] = Column(_NAME, comment="Name of the spider.")
    by: Named[str] = Column(Text, comment="fleet, hand or once: who ran it.")
    number: Named[int | None] = Column(Integer, comment="Number of its slot.")
    token: Named[int | None] = Column(BigInteger, comment="Fencing token of its slot.")
    node: Named[str] = Column(Text, comment="The worker that supervised it, or the host.")
    pid: Named[int] = Column(BigInteger, comment="Process id on its node.")
    started_at: Named[datetime] = Column(UtcDateTime, comment="When it was started, by its node's clock.")
    told_at: Named[datetime] = Column(UtcDateTime, comment="Which moment this state is of; only a later one overwrites it.")
    ended_at: Named[datetime | None] = Column(UtcDateTime, comment="When it ended; null: it goes on, or nobody knows.")
    outcome: Named[str | None] = Column(Text, comment="How it ended; lost: nobody knows; null: it goes on.")
    exit_code: Named[int | None] = Column(Integer, comment="Its exit code; negative: the signal that ended it.")
    reason: Named[str | None] = Column(Text, comment="Why, for people.")
    pages: Named[int] = Column(BigInteger, comment="Responses received.")
    scraped: Named[int] = Column(BigInteger, comment="Items scraped.")
    peak_rss_bytes: Named[int] = Column(BigInteger, comment="Highest resident memory that was heard of; 0: not known.")


class SchemaColumns(TypedColumns):
    id: Named[int] = Column(Integer, primary_key=True, autoincrement=False, comment="Always 1: there is one row.")
    version: Named[int] = Column(Integer, comment="Version of these tables, counted in workers/storage/schema.py.")
    created_at: Named[datetime] = Column(UtcDateTime, comment="When the tables were made.")


posts = Table("posts", metadata, PostColumns, info={"version": "fetched_at"})
comments = Table("comments", metadata, CommentColumns, info={"version": "fetched_at"})
scans = Table("scans", metadata, ScanColumns, info={"version": "finished_at"})
crawler_runs = Table("crawler_runs", metadata, RunColumns, info={"version": "told_at"})
trawl_schema = Table("trawl_schema", metadata, SchemaColumns)

Index(None, posts.c.site, posts.c.forum_id, posts.c.last_reply_at)
Index(None, comments.c.site, comments.c.post_id)
Index(None, crawler_runs.c.started_at)

DATA = {table.name: table for table in (posts, comments, scans)}
"""The tables that hold what was crawled, by name."""
