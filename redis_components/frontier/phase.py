"""The phases of a crawler process's crawl."""

from __future__ import annotations

from enum import IntEnum


class Phase(IntEnum):
    """The phases in their order; a process never goes back to an earlier one."""

    JOINING = 0
    """It stores the entries that it gets, and leases nothing."""
    LEASING = 1
    """It crawls."""
    CLOSING = 2
    """It leases nothing more and gives unstarted requests back; pages at work are stored."""
    LEAVING = 3
    """It leaves as soon as everything is stored and safe."""
    STOPPED = 4
    """It exchanges no more."""
