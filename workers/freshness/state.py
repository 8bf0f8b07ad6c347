"""What is remembered of a forum and of a site's day between two scans. Times are epoch seconds, spans seconds."""

from __future__ import annotations

import msgspec

HOURS = 24


class ForumState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One forum. The sums of the estimates decay, so they need no history (`rates.py`)."""

    scanned_at: float | None = None  # start of the last scan that reached what it had to
    tried_at: float | None = None  # start of the last scan, whatever became of it
    deep_at: float | None = None  # start of the last deep scan that was complete
    newest_at: float | None = None  # high-water mark: newest activity that any scan saw
    gap_at: float | None = None  # since when it is known that a scan did not reach what the one before it had seen
    errors: int = 0  # scans that failed, one after the other
    reason: str | None = None  # of the last failure, or of the gap
    events: float = 0.0  # changes seen, old ones counting less
    exposure: float = 0.0  # seconds in which they were seen, likewise, each weighted by the time of day
    burst_events: float = 0.0  # the same with a short memory
    burst_exposure: float = 0.0
    carried: int = 0  # changes that failed scans have seen, for the next one to count
    pages: float = 1.0  # list pages that a scan costs, smoothed
    name: str | None = None  # as the site's index page has it
    found_at: float | None = None  # when the index page last had it; None: listed in the site file


class Season(msgspec.Struct, frozen=True, kw_only=True):
    """How a site's changes are spread over the hours of the day (UTC), from all of its forums."""

    seen: tuple[float, ...] = (0.0,) * HOURS  # changes, by hour
    expected: tuple[float, ...] = (0.0,) * HOURS  # what there would have been without day and night
    at: float = 0.0


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What one scan says to the policy."""

    at: float  # its start
    events: int  # threads that were new or had changed
    threads: int = 0  # rows that it read
    pages: int = 1
    mode: str = "scan"  # scan, deep
    outcome: str = "complete"  # complete, failed, gap
    newest_at: float | None = None  # newest and oldest activity among the rows
    oldest_at: float | None = None
    reason: str | None = None


def decode_state(text: bytes | str) -> ForumState:
    """What `encode_state` wrote, here or in a newer version. Raises ValueError for anything else."""
    return msgspec.json.decode(text, type=ForumState)


def decode_season(text: bytes | str) -> Season:
    """The same for a season. Raises ValueError, also where it has not 24 hours."""
    season = msgspec.json.decode(text, type=Season)
    if len(season.seen) != HOURS or len(season.expected) != HOURS:
        raise ValueError(f"a season of {len(season.seen)} hours, not {HOURS}")
    return season


def encode_state(state: ForumState | Season) -> bytes:
    """One line of JSON."""
    return msgspec.json.encode(state)
