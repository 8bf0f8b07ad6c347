"""Version 2: sites, forums, revisions, checks and gaps; removed rows stay, with the time of their removal.

It only adds tables and columns, which takes no time in a table of any size. Hashes of stored texts are computed when a text is
fetched again (`merge.py`). Only the index of checks reads the posts once.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from forums.storage.migrations.repeatable import add_column, create_index, create_table
from forums.storage.schema.times import NAME, SHORT_NAME, TEXT, WORD, UtcDateTime

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    if not sa.inspect(op.get_bind()).has_table("crawler_runs"):  # the first version 1 had none
        _runs()
    create_table(
        "sites",
        sa.Column("name", NAME, nullable=False),
        sa.Column("first_seen_at", UtcDateTime, nullable=False),
        sa.Column("profile", TEXT),
        sa.Column("base_url", TEXT),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_sites")),
    )
    create_table(
        "forums",
        sa.Column("site", NAME, nullable=False),
        sa.Column("id", NAME, nullable=False),
        sa.Column("name", TEXT),
        sa.Column("url", TEXT),
        sa.Column("parent_id", NAME),
        sa.Column("threads", sa.BigInteger),
        sa.Column("fetched_at", UtcDateTime),
        sa.Column("first_seen_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("site", "id", name=op.f("pk_forums")),
    )
    add_column("posts", sa.Column("body_html", TEXT))
    add_column("posts", sa.Column("sticky", sa.Boolean, nullable=False, server_default=sa.false()))
    add_column("posts", sa.Column("edited_at", UtcDateTime))
    add_column("posts", sa.Column("content_hash", TEXT))
    add_column("posts", sa.Column("changed_at", UtcDateTime))
    add_column("posts", sa.Column("deleted_at", UtcDateTime))
    add_column("posts", sa.Column("tombstone_at", UtcDateTime))
    add_column("posts", sa.Column("checked_at", UtcDateTime))
    add_column("posts", sa.Column("next_check_at", UtcDateTime))
    add_column("comments", sa.Column("body_html", TEXT))
    add_column("comments", sa.Column("edited_at", UtcDateTime))
    add_column("comments", sa.Column("position", sa.BigInteger))
    add_column("comments", sa.Column("content_hash", TEXT))
    add_column("comments", sa.Column("changed_at", UtcDateTime))
    add_column("comments", sa.Column("deleted_at", UtcDateTime))
    add_column("comments", sa.Column("tombstone_at", UtcDateTime))
    create_table(
        "revisions",
        sa.Column("site", NAME, nullable=False),
        sa.Column("kind", SHORT_NAME, nullable=False),
        sa.Column("id", NAME, nullable=False),
        sa.Column("content_hash", SHORT_NAME, nullable=False),
        sa.Column("title", TEXT),
        sa.Column("body", TEXT, nullable=False),
        sa.Column("body_html", TEXT),
        sa.Column("author", TEXT),
        sa.Column("edited_at", UtcDateTime),
        sa.Column("first_fetched_at", UtcDateTime, nullable=False),
        sa.Column("last_fetched_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("site", "kind", "id", "content_hash", name=op.f("pk_revisions")),
    )
    add_column("scans", sa.Column("mode", WORD, nullable=False, server_default="scan"))
    add_column("scans", sa.Column("new", sa.Integer, nullable=False, server_default=sa.text("0")))
    add_column("scans", sa.Column("changed", sa.Integer, nullable=False, server_default=sa.text("0")))
    add_column("scans", sa.Column("stopped", TEXT))
    add_column("scans", sa.Column("newest_at", UtcDateTime))
    add_column("scans", sa.Column("oldest_at", UtcDateTime))
    create_table(
        "checks",
        sa.Column("site", NAME, nullable=False),
        sa.Column("post_id", NAME, nullable=False),
        sa.Column("started_at", UtcDateTime, nullable=False),
        sa.Column("finished_at", UtcDateTime, nullable=False),
        sa.Column("mode", TEXT, nullable=False),
        sa.Column("first_page", sa.Integer, nullable=False),
        sa.Column("last_page", sa.Integer, nullable=False),
        sa.Column("requests", sa.Integer, nullable=False),
        sa.Column("comments", sa.Integer, nullable=False),
        sa.Column("total", sa.BigInteger),
        sa.Column("whole", sa.Boolean, nullable=False),
        sa.Column("consistent", sa.Boolean, nullable=False),
        sa.Column("gone", sa.Boolean, nullable=False),
        sa.Column("token", TEXT),
        sa.Column("last_comment_id", NAME),
        sa.Column("cursor", TEXT),
        sa.Column("listed", sa.Integer),
        sa.Column("short", sa.Integer, nullable=False),
        sa.Column("reason", TEXT),
        sa.Column("whole_at", UtcDateTime),
        sa.Column("gone_at", UtcDateTime),
        sa.PrimaryKeyConstraint("site", "post_id", name=op.f("pk_checks")),
    )
    create_table(
        "gaps",
        sa.Column("site", NAME, nullable=False),
        sa.Column("forum_id", NAME, nullable=False),
        sa.Column("opened_at", UtcDateTime, nullable=False),
        sa.Column("pages", sa.Integer, nullable=False),
        sa.Column("newest_at", UtcDateTime),
        sa.Column("oldest_at", UtcDateTime),
        sa.Column("reason", TEXT),
        sa.Column("closed_at", UtcDateTime),
        sa.PrimaryKeyConstraint("site", "forum_id", "opened_at", name=op.f("pk_gaps")),
    )
    create_index(
        op.f("ix_posts_site_next_check_at"),
        "posts",
        ["site", "next_check_at"],
        sqlite_where=sa.text("next_check_at IS NOT NULL"),
        postgresql_where=sa.text("next_check_at IS NOT NULL"),
    )


def _runs() -> None:
    create_table(
        "crawler_runs",
        sa.Column("id", NAME, nullable=False),
        sa.Column("spider", NAME, nullable=False),
        sa.Column("by", TEXT, nullable=False),
        sa.Column("number", sa.Integer),
        sa.Column("token", sa.BigInteger),
        sa.Column("node", TEXT, nullable=False),
        sa.Column("pid", sa.BigInteger, nullable=False),
        sa.Column("started_at", UtcDateTime, nullable=False),
        sa.Column("told_at", UtcDateTime, nullable=False),
        sa.Column("ended_at", UtcDateTime),
        sa.Column("outcome", TEXT),
        sa.Column("exit_code", sa.Integer),
        sa.Column("reason", TEXT),
        sa.Column("pages", sa.BigInteger, nullable=False),
        sa.Column("scraped", sa.BigInteger, nullable=False),
        sa.Column("peak_rss_bytes", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_crawler_runs")),
    )
    create_index(op.f("ix_crawler_runs_started_at"), "crawler_runs", ["started_at"])
