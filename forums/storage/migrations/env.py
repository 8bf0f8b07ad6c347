"""What Alembic runs: the scripts on the connection that `schema.py` hands over, in its transaction."""

from __future__ import annotations

from alembic import context

from forums.storage.tables import metadata

VERSION_TABLE = "trawl_migrations"  # another program in the same schema may have Alembic's default name

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, version_table=VERSION_TABLE)
context.run_migrations()
