"""Dates of a page that lie years away from those before and after them: read in a wrong form, or of another thing than meant."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import pairwise

_FAR = timedelta(days=730)  # an old thread may be answered years later, but not a single time in the midst of it
_NEAR = timedelta(days=365)
_AHEAD = timedelta(days=2)  # time zones and clocks differ


def doubtful(dates: Iterable[tuple[str, datetime | None]], now: datetime) -> str | None:
    """What is wrong with the dates of rows (id and date, in the page's order), in a line; None where nothing is. A date that is
    in the future, or years away from both of its neighbours, which are near to each other.
    """
    known = [(name, date) for name, date in dates if date is not None]
    if late := [(name, date) for name, date in known if date > now + _AHEAD]:
        return _said(late, "in the future")
    lonely: list[tuple[str, datetime]] = []
    before = known[0][1] if known else now
    for own, after in pairwise(known[1:]):
        if _is_lonely(before, own[1], after[1]):
            lonely.append(own)
        else:  # a wrong date says nothing of the next one
            before = own[1]
    return _said(lonely, "years away from the dates before and after it") if lonely else None


def _is_lonely(before: datetime, own: datetime, after: datetime) -> bool:
    return abs(before - after) <= _NEAR and min(abs(own - before), abs(own - after)) >= _FAR


def _said(found: list[tuple[str, datetime]], what: str) -> str:
    name, date = found[0]
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return f"the date of {name} is {date:%Y-%m-%d}, {what}{more}: look at its selector, `formats`, `language` and `time_zone`"
