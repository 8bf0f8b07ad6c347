"""Version 5: an index of words (`schema/search_index.py`), which `schema.prepare` fills with the stored rows."""

from __future__ import annotations

from alembic import op

from forums.storage.schema.search_index import create

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    create(op.get_bind())
