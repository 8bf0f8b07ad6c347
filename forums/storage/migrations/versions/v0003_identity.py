"""Version 3: a random id, by which a replaced database is noticed. `schema/version.py` sets it, also in new databases."""

from __future__ import annotations

import sqlalchemy as sa

from forums.storage.migrations.repeatable import add_column
from forums.storage.schema.times import TEXT

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    add_column("trawl_schema", sa.Column("identity", TEXT))
