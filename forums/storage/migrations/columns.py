"""Types that the scripts share. What is here must not change: a script has to make tomorrow what it made yesterday."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from forums.storage.times import UtcDateTime

NAME = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

__all__ = ["NAME", "UtcDateTime"]
