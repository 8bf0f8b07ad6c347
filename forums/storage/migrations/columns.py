"""Types that the scripts share. What is here must not change: a script has to make tomorrow what it made yesterday."""

from __future__ import annotations

from forums.storage.column_types import NAME, SHORT_NAME, TEXT, WORD
from forums.storage.times import UtcDateTime

__all__ = ["NAME", "SHORT_NAME", "TEXT", "WORD", "UtcDateTime"]
