"""When something was fetched, as items say it."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> str:
    """The time now in ISO 8601, UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
