"""Version 6: posts and comments are sorted by their publication (`schema/published.py`)."""

from __future__ import annotations

from alembic import op

from forums.storage.migrations.repeatable import drop_index
from forums.storage.schema.published import create

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    create(op.get_bind())
    drop_index(op.f("ix_posts_site_first_seen_at"), "posts")
