"""Types that the scripts share. They must not change: a script must build the same tables forever."""

from __future__ import annotations

from forums.storage.schema.times import NAME, SHORT_NAME, TEXT, WORD, UtcDateTime

__all__ = ["NAME", "SHORT_NAME", "TEXT", "WORD", "UtcDateTime"]
