"""Version 3: an id of the database, so that another one in its place is noticed. `schema.py` sets it, also in new databases."""

from __future__ import annotations

import sqlalchemy as sa

from forums.storage.migrations.columns import TEXT
from forums.storage.migrations.repeatable import add_column

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    add_column("trawl_schema", sa.Column("identity", TEXT))
