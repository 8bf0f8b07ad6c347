"""Version 4: rows have versions, and each transaction logs the changes that it made (docs/decisions/0041-events.md).

Rows that are stored already have version 0: they have no event yet.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from forums.storage.migrations.repeatable import add_column, create_table
from forums.storage.schema.times import NAME, TEXT, UtcDateTime

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    for table in ("posts", "comments"):
        add_column(table, sa.Column("version", sa.Integer, nullable=False, server_default=sa.text("0")))
    create_table(
        "events",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False, autoincrement=True),
        sa.Column("stored_at", UtcDateTime, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("changes", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_events")),
        sqlite_autoincrement=True,
    )
    create_table(
        "event_outputs",
        sa.Column("name", NAME, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("told_at", UtcDateTime, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("retry_at", UtcDateTime),
        sa.Column("error", TEXT),
        sa.Column("lost", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_event_outputs")),
    )
    create_table(
        "event_dead_letters",
        sa.Column("output", NAME, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("failed_at", UtcDateTime, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("output", "seq", "place", name=op.f("pk_event_dead_letters")),
    )
