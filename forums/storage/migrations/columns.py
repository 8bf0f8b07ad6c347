"""Types that the scripts share. They must not change: a script must build the same tables forever."""

from __future__ import annotations

from forums.storage.column_types import NAME, SHORT_NAME, TEXT, WORD
from forums.storage.times import UtcDateTime

__all__ = ["NAME", "SHORT_NAME", "TEXT", "WORD", "UtcDateTime"]
