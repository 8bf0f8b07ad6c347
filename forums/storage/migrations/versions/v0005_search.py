"""Version 5: an index of words (`schema/search_index.py`) and numbers of threads; `schema.prepare` fills both."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from forums.storage.migrations.repeatable import create_index, create_table
from forums.storage.schema.search_index import create
from forums.storage.schema.times import NAME, WORD

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    create(op.get_bind())
    create_index(op.f("ix_posts_site_first_seen_at"), "posts", ["site", "first_seen_at"])
    create_table(
        "board_months",
        sa.Column("site", NAME, nullable=False),
        sa.Column("forum_id", NAME, nullable=False),
        sa.Column("month", WORD, nullable=False),
        sa.Column("threads", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("site", "forum_id", "month", name=op.f("pk_board_months")),
    )
