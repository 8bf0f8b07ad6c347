"""Dates of a page that are years away from the dates around them: read in a wrong form, or dates of something else."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import pairwise

_FAR = timedelta(days=730)  # old threads may be answered years later, but hardly once in the middle
_NEAR = timedelta(days=365)
_AHEAD = timedelta(days=2)  # time zones and clocks differ


def doubtful(dates: Iterable[tuple[str, datetime | None]], now: datetime) -> str | None:
    """Describe the first doubtful date of rows (id and date, in the page's order) in a line; None without any. A date is
    doubtful in the future, or years away from both of its neighbours, which are near to each other.
    """
    known = [(name, date) for name, date in dates if date is not None]
    if late := [(name, date) for name, date in known if date > now + _AHEAD]:
        return _described(late, "in the future")
    lonely: list[tuple[str, datetime]] = []
    before = known[0][1] if known else now
    for own, after in pairwise(known[1:]):
        if _is_lonely(before, own[1], after[1]):
            lonely.append(own)
        else:  # a wrong date is not compared with the next
            before = own[1]
    return _described(lonely, "years away from the dates before and after it") if lonely else None


def _is_lonely(before: datetime, own: datetime, after: datetime) -> bool:
    return abs(before - after) <= _NEAR and min(abs(own - before), abs(own - after)) >= _FAR


def _described(found: list[tuple[str, datetime]], what: str) -> str:
    name, date = found[0]
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return f"the date of {name} is {date:%Y-%m-%d}, {what}{more}: look at its selector, `formats`, `language` and `time_zone`"
