"""Version 7: an index of words, numbers of threads, indexes of the times of publication, and the outcomes of members of runs.

`schema.prepare` fills the index of words and the numbers.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from forums.storage.migrations import create_index, create_table
from forums.storage.schema import search_index
from forums.storage.schema import search_index as published
from forums.storage.schema.times import NAME, TEXT, WORD, UtcDateTime

revision = "0007"
down_revision = "0004"


def upgrade() -> None:
    search_index.create(op.get_bind())
    published.create_indexes_of_times(op.get_bind())
    create_table(
        "board_months",
        sa.Column("site", NAME, nullable=False),
        sa.Column("forum_id", NAME, nullable=False),
        sa.Column("month", WORD, nullable=False),
        sa.Column("threads", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("site", "forum_id", "month", name=op.f("pk_board_months")),
    )
    create_table(
        "run_members",
        sa.Column("run", NAME, nullable=False),
        sa.Column("spider", NAME, nullable=False),
        sa.Column("of_group", NAME, nullable=False),
        sa.Column("verdict", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("pages", sa.BigInteger, nullable=False),
        sa.Column("scraped", sa.BigInteger, nullable=False),
        sa.Column("errors", sa.BigInteger, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("fields", TEXT, nullable=False),
        sa.Column("started_at", UtcDateTime, nullable=False),
        sa.Column("ended_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("run", "spider", name=op.f("pk_run_members")),
    )
    create_index(op.f("ix_run_members_spider_ended_at"), "run_members", ["spider", "ended_at"])
    create_index(op.f("ix_run_members_ended_at"), "run_members", ["ended_at"])
