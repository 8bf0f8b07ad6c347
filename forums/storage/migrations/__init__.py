"""Migrations of the tables as Alembic scripts: one step for each version, run by `schema.prepare`.

Scripts never change after their release, so they name columns and types themselves and import nothing of `tables.py`.
They hold no column comments: `schema.prepare` sets them from `tables.py` after the last step.
"""
