"""Summary of one scan, input of the policy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One scan of a forum. Times are epoch seconds."""

    at: float  # its start
    events: int  # new and changed threads
    threads: int = 0  # rows that it read
    pages: int = 1
    mode: str = "scan"  # scan, deep, index, backfill
    outcome: str = "complete"  # complete, failed, gap
    whole: bool = False  # it went down to the end of the list
    newest_at: float | None = None  # newest and oldest activity among the rows
    oldest_at: float | None = None
    reason: str | None = None
