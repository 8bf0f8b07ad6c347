"""Parser of the header `Retry-After`."""

from __future__ import annotations

import time
from datetime import UTC
from email.utils import parsedate_to_datetime

SHORTEST_S, LONGEST_S = 1.0, 86_400.0


def retry_after_s(text: str | None, date: str | None = None) -> float | None:
    """Return the seconds to wait, given as a number or as a date (by the site's own clock where it sends the header `Date`),
    between a second and a day; None where there is none, or none that can be read.
    """
    text = (text or "").strip()
    if text.isascii() and text.isdigit():
        return min(max(float(text[:12]), SHORTEST_S), LONGEST_S)
    at, now = http_date(text), http_date(date or "")
    if at is None:
        return None
    return min(max(at - (time.time() if now is None else now), SHORTEST_S), LONGEST_S)


def http_date(text: str) -> float | None:
    """Return the epoch seconds of a header's date; None for another text."""
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
