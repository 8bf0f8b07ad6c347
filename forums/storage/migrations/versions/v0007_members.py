"""Version 7: the outcomes of members of runs are kept."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from forums.storage.migrations.repeatable import create_index, create_table
from forums.storage.schema.times import NAME, TEXT, UtcDateTime

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
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
