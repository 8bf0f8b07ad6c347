"""The tables, as typed Core tables. Column comments are also stored in PostgreSQL (`\\d+ posts`); `docs/reference/database.md` is
generated from this module.

There are no foreign keys: a comment may arrive before its post, and a site may remove a post whose comments are kept. Columns
that were added later stand at the end, where `ALTER TABLE` puts them.
`info["version"]` names the column that decides which of two rows with the same key is the newer one, `info["title"]` describes
its rows.

A new table or index needs a higher `VERSION` in `forums/storage/database.py`; a changed table needs a step in its `_upgrade`,
too. A test compares both.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Boolean, Column, Double, Index, Integer, MetaData, false, text

from forums.storage.engine import UtcDateTime

from .dialects import NAME, SHORT_NAME, TEXT, WORD, Named, Table, TypedColumns

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

_HASH = "Hash of the text; empty: only a removed state was seen; null: an older Trawl wrote it."
_CHANGED = "When the present text was first fetched; null: an older Trawl wrote it."
_DELETED = "When it was found to be removed; null: it is there."
_TOMBSTONE = "When the site last showed it as removed; null: never."
_SITE = "Name of the site file."
_FETCHED = "When this state was fetched; only a state as new or newer overwrites it."
_VERSION = "Number of its changes in `events`; 0: unchanged since an older Trawl wrote it."
_FIRST = "When the oldest stored state was fetched."


class SiteColumns(TypedColumns):
    name: Named[str] = Column(NAME, primary_key=True, comment=_SITE)
    first_seen_at: Named[datetime] = Column(UtcDateTime, comment="Oldest time of any data from it.")


class ForumColumns(TypedColumns):
    site: Named[str] = Column(NAME, primary_key=True, comment=_SITE)
    id: Named[str] = Column(NAME, primary_key=True, comment="Id of the forum on its site.")
    name: Named[str | None] = Column(TEXT, comment="Its name; null: no index page listed it yet.")
    url: Named[str | None] = Column(TEXT, comment="Its address.")
    parent_id: Named[str | None] = Column(NAME, comment="Id of the forum that contains it.")
    threads: Named[int | None] = Column(BigInteger, comment="Threads, by the site's own count.")
    fetched_at: Named[datetime | None] = Column(UtcDateTime, comment="When an index page last listed it; null: never.")
    first_seen_at: Named[datetime] = Column(UtcDateTime, comment="Oldest time of any data from it.")


class PostColumns(TypedColumns):
    site: Named[str] = Column(NAME, primary_key=True, comment=_SITE)
    id: Named[str] = Column(NAME, primary_key=True, comment="Id of the post (thread) on its site.")
    forum_id: Named[str] = Column(NAME, comment="Id of the forum that the post is in; empty: not known.")
    title: Named[str] = Column(TEXT, comment="Title as plain text.")
    body: Named[str] = Column(TEXT, comment="Text of the opening post.")
    author: Named[str | None] = Column(TEXT, comment="Name of the author; null when the site hides it.")
    created_at: Named[datetime | None] = Column(UtcDateTime, comment="When it was posted, by the site's clock.")
    views: Named[int | None] = Column(BigInteger, comment="Views, if the site shows them.")
    reply_count: Named[int | None] = Column(BigInteger, comment="Replies, by the site's own count.")
    last_reply_at: Named[datetime | None] = Column(UtcDateTime, comment="Time of the newest reply, by the site's clock.")
    url: Named[str] = Column(TEXT, comment="Address of the page that it was read from.")
    fetched_at: Named[datetime] = Column(UtcDateTime, comment=_FETCHED)
    first_seen_at: Named[datetime] = Column(UtcDateTime, comment=_FIRST)
    body_html: Named[str | None] = Column(TEXT, comment="The text as the site's HTML, where it is kept.")
    sticky: Named[bool] = Column(Boolean, server_default=false(), comment="True if it is pinned to the top of its forum.")
    edited_at: Named[datetime | None] = Column(UtcDateTime, comment="When it was last edited, if the site shows it.")
    content_hash: Named[str | None] = Column(TEXT, comment=_HASH)
    changed_at: Named[datetime | None] = Column(UtcDateTime, comment=_CHANGED)
    deleted_at: Named[datetime | None] = Column(UtcDateTime, comment=_DELETED)
    tombstone_at: Named[datetime | None] = Column(UtcDateTime, comment=_TOMBSTONE)
    checked_at: Named[datetime | None] = Column(UtcDateTime, comment="When the newest check of the thread ended.")
    next_check_at: Named[datetime | None] = Column(
        UtcDateTime, comment="When the next check for edits and deletions is due; null: never."
    )
    version: Named[int] = Column(Integer, server_default=text("0"), comment=_VERSION)


class CommentColumns(TypedColumns):
    site: Named[str] = Column(NAME, primary_key=True, comment=_SITE)
    id: Named[str] = Column(NAME, primary_key=True, comment="Id of the comment (reply) on its site.")
    post_id: Named[str] = Column(NAME, comment="Id of the post that it belongs to; the post may not be stored yet.")
    parent_id: Named[str | None] = Column(NAME, comment="Id of the comment that it answers; null: it answers the post.")
    author: Named[str | None] = Column(TEXT, comment="Name of the author; null when the site hides it.")
    body: Named[str] = Column(TEXT, comment="Text of the comment.")
    created_at: Named[datetime | None] = Column(UtcDateTime, comment="When it was posted, by the site's clock.")
    url: Named[str] = Column(TEXT, comment="Address of the page that it was read from.")
    fetched_at: Named[datetime] = Column(UtcDateTime, comment=_FETCHED)
    first_seen_at: Named[datetime] = Column(UtcDateTime, comment=_FIRST)
    body_html: Named[str | None] = Column(TEXT, comment="The text as the site's HTML, where it is kept.")
    edited_at: Named[datetime | None] = Column(UtcDateTime, comment="When it was last edited, if the site shows it.")
    position: Named[int | None] = Column(BigInteger, comment="Its number in the thread, if the site shows it.")
    content_hash: Named[str | None] = Column(TEXT, comment=_HASH)
    changed_at: Named[datetime | None] = Column(UtcDateTime, comment=_CHANGED)
    deleted_at: Named[datetime | None] = Column(UtcDateTime, comment=_DELETED)
    tombstone_at: Named[datetime | None] = Column(UtcDateTime, comment=_TOMBSTONE)
    version: Named[int] = Column(Integer, server_default=text("0"), comment=_VERSION)


class RevisionColumns(TypedColumns):
    site: Named[str] = Column(NAME, primary_key=True, comment=_SITE)
    kind: Named[str] = Column(SHORT_NAME, primary_key=True, comment="post or comment.")
    id: Named[str] = Column(NAME, primary_key=True, comment="Id of the post or comment on its site.")
    content_hash: Named[str] = Column(SHORT_NAME, primary_key=True, comment="Hash of this text.")
    title: Named[str | None] = Column(TEXT, comment="Title at that time; null for a comment.")
    body: Named[str] = Column(TEXT, comment="Text at that time.")
    body_html: Named[str | None] = Column(TEXT, comment="The text as the site's HTML, where it is kept.")
    author: Named[str | None] = Column(TEXT, comment="Name of the author at that time.")
    edited_at: Named[datetime | None] = Column(UtcDateTime, comment="When it had last been edited, if the site showed it.")
    first_fetched_at: Named[datetime] = Column(UtcDateTime, comment="When this text was fetched first.")
    last_fetched_at: Named[datetime] = Column(UtcDateTime, comment="When this text was fetched last.")


class ScanColumns(TypedColumns):
    site: Named[str] = Column(NAME, primary_key=True, comment=_SITE)
    forum_id: Named[str] = Column(NAME, primary_key=True, comment="Id of the forum that was scanned.")
    started_at: Named[datetime] = Column(UtcDateTime, primary_key=True, comment="When the scan began, by the crawler's clock.")
    finished_at: Named[datetime] = Column(UtcDateTime, comment="When it ended, by the crawler's clock.")
    pages: Named[int] = Column(Integer, comment="List pages read.")
    threads: Named[int] = Column(Integer, comment="Threads seen on them.")
    outcome: Named[str] = Column(TEXT, comment="complete, failed, or gap: it reached its limit before a known thread.")
    reason: Named[str | None] = Column(TEXT, comment="Why it failed, or left a gap.")
    mode: Named[str] = Column(WORD, server_default="scan", comment="scan, deep or backfill.")
    new: Named[int] = Column(Integer, server_default=text("0"), comment="Threads that were not known.")
    changed: Named[int] = Column(Integer, server_default=text("0"), comment="Threads that had changed.")
    stopped: Named[str | None] = Column(TEXT, comment="Why it ended: overlap, end, limit or error.")
    newest_at: Named[datetime | None] = Column(
        UtcDateTime, comment="Newest activity of a thread that it saw, by the site's clock."
    )
    oldest_at: Named[datetime | None] = Column(
        UtcDateTime, comment="Oldest activity of a thread that it saw, by the site's clock."
    )


class CheckColumns(TypedColumns):
    site: Named[str] = Column(NAME, primary_key=True, comment=_SITE)
    post_id: Named[str] = Column(NAME, primary_key=True, comment="Id of the post (thread) that was read.")
    started_at: Named[datetime] = Column(UtcDateTime, comment="When its first page was requested, by the crawler's clock.")
    finished_at: Named[datetime] = Column(UtcDateTime, comment="When it ended; only a reading as new or newer overwrites it.")
    mode: Named[str] = Column(TEXT, comment="Purpose of the reading: new, changed, check or backfill.")
    first_page: Named[int] = Column(Integer, comment="First page of comments that was read.")
    last_page: Named[int] = Column(Integer, comment="Last page of comments that was read.")
    requests: Named[int] = Column(Integer, comment="Requests of the reading.")
    comments: Named[int] = Column(Integer, comment="Comments seen.")
    total: Named[int | None] = Column(BigInteger, comment="Comments, by the site's own count.")
    whole: Named[bool] = Column(Boolean, comment="True if it went from the first page to the end.")
    consistent: Named[bool] = Column(Boolean, comment="True if nothing moved while it was read.")
    gone: Named[bool] = Column(Boolean, comment="True if the site showed the thread as removed.")
    token: Named[str | None] = Column(TEXT, comment="Change token of the list page that led to it.")
    last_comment_id: Named[str | None] = Column(NAME, comment="Id of the last comment seen.")
    cursor: Named[str | None] = Column(TEXT, comment="Start of the next reading, for sites with cursors.")
    listed: Named[int | None] = Column(Integer, comment="Comments seen of the thread, as the list page counts them.")
    short: Named[int] = Column(Integer, comment="Consecutive readings that saw fewer comments than the list claimed.")
    reason: Named[str | None] = Column(TEXT, comment="Why it was not whole.")
    whole_at: Named[datetime | None] = Column(
        UtcDateTime, comment="Start of the newest reading that saw the whole thread, or found it gone."
    )
    gone_at: Named[datetime | None] = Column(UtcDateTime, comment="Start of the newest reading that found the thread gone.")


class MemberColumns(TypedColumns):
    run: Named[str] = Column(NAME, primary_key=True, comment="Id of the run: group-YYYYmmddTHHMMSS.")
    spider: Named[str] = Column(NAME, primary_key=True, comment="Name of the spider.")
    of_group: Named[str] = Column(NAME, comment="The group of the run.")
    verdict: Named[str] = Column(TEXT, comment="As fine or no_items.")
    reason: Named[str] = Column(TEXT, comment="Reason of the verdict, for people.")
    pages: Named[int] = Column(BigInteger, comment="Responses that its callbacks were given.")
    scraped: Named[int] = Column(BigInteger, comment="Items scraped.")
    errors: Named[int] = Column(BigInteger, comment="Lines of level ERROR or above in its logs.")
    seconds: Named[float] = Column(Double, comment="Duration of its crawl.")
    fields: Named[str] = Column(TEXT, comment="JSON: share of the items in which each field had a value, from 0 to 1.")
    started_at: Named[datetime] = Column(UtcDateTime, comment="When its crawl began, by Redis's clock; 1970: it did not.")
    ended_at: Named[datetime] = Column(UtcDateTime, comment="When it was over.")


class EventColumns(TypedColumns):
    seq: Named[int] = Column(
        BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True, comment="In the order of commits."
    )
    stored_at: Named[datetime] = Column(UtcDateTime, comment="When the writer stored them, by its clock.")
    number: Named[int] = Column(Integer, comment="Number of changes of posts and comments.")
    changes: Named[str] = Column(TEXT, comment="JSON: arrays with the fields of `changes.Change`.")


class EventOutputColumns(TypedColumns):
    name: Named[str] = Column(NAME, primary_key=True, comment="Its name in the rules file.")
    seq: Named[int] = Column(BigInteger, comment="Last transaction (`events.seq`) that was sent to it.")
    place: Named[int] = Column(Integer, comment="Last change of that transaction that was sent to it, from 0.")
    told_at: Named[datetime] = Column(UtcDateTime, comment="When it last accepted an event.")
    failures: Named[int] = Column(Integer, comment="Attempts that failed one after the other.")
    retry_at: Named[datetime | None] = Column(UtcDateTime, comment="Earliest next attempt; null: at once.")
    error: Named[str | None] = Column(TEXT, comment="Why the last attempt failed; null: it succeeded.")
    lost: Named[int] = Column(BigInteger, comment="Transactions that were dropped by age before it took them, at most.")


class EventDeadLetterColumns(TypedColumns):
    output: Named[str] = Column(NAME, primary_key=True, comment="Name of the output.")
    seq: Named[int] = Column(BigInteger, primary_key=True, comment="Transaction of the event (`events.seq`).")
    place: Named[int] = Column(Integer, primary_key=True, comment="Its index in the transaction, from 0.")
    failed_at: Named[datetime] = Column(UtcDateTime, comment="When delivery was given up.")
    reason: Named[str] = Column(TEXT, comment="Answer of the receiver.")


class BoardMonthColumns(TypedColumns):
    site: Named[str] = Column(NAME, primary_key=True, comment=_SITE)
    forum_id: Named[str] = Column(NAME, primary_key=True, comment="Id of the forum on its site.")
    month: Named[str] = Column(WORD, primary_key=True, comment="As 2026-01 (UTC), of the first sight where no date is shown.")
    threads: Named[int] = Column(Integer, comment="Stored threads that were opened in it.")


class SchemaColumns(TypedColumns):
    id: Named[int] = Column(Integer, primary_key=True, autoincrement=False, comment="Always 1: there is one row.")
    version: Named[int] = Column(Integer, comment="Version of these tables, counted in forums/storage/database.py.")
    created_at: Named[datetime] = Column(UtcDateTime, comment="When the tables were made.")
    identity: Named[str | None] = Column(TEXT, comment="A random id, by which a replaced database is noticed.")


sites = Table("sites", metadata, SiteColumns, info={"title": "Sites with stored data.", "version": "first_seen_at"})
forums = Table(
    "forums", metadata, ForumColumns, info={"title": "Forums (boards), listed or only mentioned.", "version": "fetched_at"}
)
posts = Table(
    "posts", metadata, PostColumns, info={"title": "Threads with their opening posts, as they are now.", "version": "fetched_at"}
)
comments = Table("comments", metadata, CommentColumns, info={"title": "Replies, as they are now.", "version": "fetched_at"})
revisions = Table(
    "revisions",
    metadata,
    RevisionColumns,
    info={"title": "Other texts that a post or comment had: one row for each text.", "version": "last_fetched_at"},
)
scans = Table("scans", metadata, ScanColumns, info={"title": "Readings of forums' list pages.", "version": "finished_at"})
checks = Table("checks", metadata, CheckColumns, info={"title": "The newest reading of each thread.", "version": "finished_at"})
run_members = Table(
    "run_members",
    metadata,
    MemberColumns,
    info={"title": "Outcomes of spiders in runs of groups, kept for 400 days.", "version": "ended_at"},
)
events = Table(
    "events",
    metadata,
    EventColumns,
    info={"title": "Transactions that changed posts or comments, kept for TRAWL_EVENTS_DAYS."},
    sqlite_autoincrement=True,  # a number is never used twice, even when all rows were dropped
)
event_outputs = Table("event_outputs", metadata, EventOutputColumns, info={"title": "Progress of each output of the rules file."})
event_dead_letters = Table(
    "event_dead_letters", metadata, EventDeadLetterColumns, info={"title": "Events that an output refused."}
)
board_months = Table("board_months", metadata, BoardMonthColumns, info={"title": "Numbers of stored threads by forum and month."})
trawl_schema = Table(
    "trawl_schema", metadata, SchemaColumns, info={"title": "The version of these tables, checked by any Trawl that opens them."}
)

Index(None, posts.c.site, posts.c.forum_id, posts.c.last_reply_at)
Index(
    None,
    posts.c.site,
    posts.c.next_check_at,
    sqlite_where=posts.c.next_check_at.is_not(None),
    postgresql_where=posts.c.next_check_at.is_not(None),
)
Index(None, comments.c.site, comments.c.post_id)
Index(None, run_members.c.spider, run_members.c.ended_at)
Index(None, run_members.c.ended_at)

DATA = {table.name: table for table in (posts, comments, forums, scans, revisions)}
"""The tables of crawled data, by name, which can be exported."""
