"""Migrations of the tables, as Alembic scripts: one step for each version, run by `schema.prepare`.

Scripts are never changed once they are released, so they name columns and types themselves and import nothing of `tables.py`.
They hold no comments of columns: those are set from `tables.py` after the last step.
"""
