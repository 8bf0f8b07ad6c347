"""Alembic's environment: runs the scripts on the connection given by `schema/version.py`, in its transaction."""

from __future__ import annotations

from alembic import context

from forums.storage.schema.tables import metadata
from forums.storage.schema.version import MIGRATIONS_TABLE

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, version_table=MIGRATIONS_TABLE)
context.run_migrations()
