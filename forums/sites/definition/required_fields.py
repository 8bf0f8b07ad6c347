"""Fields that each kind of page must have to be of any use."""

from __future__ import annotations

from collections.abc import Mapping

NEEDED: Mapping[str, tuple[str, ...]] = {
    "index": ("id",),
    "list": ("id",),
    "thread": ("body",),
    "comments": ("id", "body"),
    "more": ("id", "body"),
    "recent": ("thread",),
}
DISPENSABLE = frozenset({"more", "recent"})
"""Kinds of pages that a site can be watched without: they never open its breaker."""
