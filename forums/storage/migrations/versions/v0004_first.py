"""Version 4: the tables of commit 49295b45, with which upgrades begin."""

from __future__ import annotations

revision = "0004"
down_revision = None


def upgrade() -> None:
    """Do nothing: new databases are made from `tables.py`."""
