"""Alembic's environment: runs the scripts on the connection given by `schema.py`, in its transaction."""

from __future__ import annotations

from alembic import context

from forums.storage.schema import MIGRATIONS_TABLE
from forums.storage.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, version_table=MIGRATIONS_TABLE)
context.run_migrations()
