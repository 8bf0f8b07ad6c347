"""Version 1: posts, comments, scans, and the history of crawlers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from forums.storage.migrations.repeatable import create_index, create_table
from forums.storage.schema.times import NAME, TEXT, UtcDateTime

revision = "0001"
down_revision = None


def upgrade() -> None:
    create_table(
        "posts",
        sa.Column("site", NAME, nullable=False),
        sa.Column("id", NAME, nullable=False),
        sa.Column("forum_id", NAME, nullable=False),
        sa.Column("title", TEXT, nullable=False),
        sa.Column("body", TEXT, nullable=False),
        sa.Column("author", TEXT),
        sa.Column("created_at", UtcDateTime),
        sa.Column("views", sa.BigInteger),
        sa.Column("reply_count", sa.BigInteger),
        sa.Column("last_reply_at", UtcDateTime),
        sa.Column("url", TEXT, nullable=False),
        sa.Column("fetched_at", UtcDateTime, nullable=False),
        sa.Column("first_seen_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("site", "id", name=op.f("pk_posts")),
    )
    create_index(op.f("ix_posts_site_forum_id_last_reply_at"), "posts", ["site", "forum_id", "last_reply_at"])
    create_table(
        "comments",
        sa.Column("site", NAME, nullable=False),
        sa.Column("id", NAME, nullable=False),
        sa.Column("post_id", NAME, nullable=False),
        sa.Column("parent_id", NAME),
        sa.Column("author", TEXT),
        sa.Column("body", TEXT, nullable=False),
        sa.Column("created_at", UtcDateTime),
        sa.Column("url", TEXT, nullable=False),
        sa.Column("fetched_at", UtcDateTime, nullable=False),
        sa.Column("first_seen_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("site", "id", name=op.f("pk_comments")),
    )
    create_index(op.f("ix_comments_site_post_id"), "comments", ["site", "post_id"])
    create_table(
        "scans",
        sa.Column("site", NAME, nullable=False),
        sa.Column("forum_id", NAME, nullable=False),
        sa.Column("started_at", UtcDateTime, nullable=False),
        sa.Column("finished_at", UtcDateTime, nullable=False),
        sa.Column("pages", sa.Integer, nullable=False),
        sa.Column("threads", sa.Integer, nullable=False),
        sa.Column("outcome", TEXT, nullable=False),
        sa.Column("reason", TEXT),
        sa.PrimaryKeyConstraint("site", "forum_id", "started_at", name=op.f("pk_scans")),
    )
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
    create_table(
        "trawl_schema",
        sa.Column("id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trawl_schema")),
    )
