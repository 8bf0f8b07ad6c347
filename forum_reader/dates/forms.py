"""Forms of dates: the common structure of all dates written like `Sat Nov 21, 2026 9:01 am`.

Each post of a board has another date, so a cache of dates does not help, and dateparser takes milliseconds for a date. But it
can be asked once how it reads a form: with numbers in place of the date's own that distinguish day, month, hour and minute, and
at two times, which distinguishes "today, 9:01" and "2 hours ago" from an absolute date. The form must explain each of its
answers; dates without a form are read by dateparser, one by one.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Literal

from .language import ask
from .short_forms import latest

Kind = Literal["fixed", "past", "day", "after", "months"]
"""`fixed`: a whole date. `past`: a date without a year, the last that is not ahead. `day`: a day counted from the reading, with
a time. `after`, `months`: a distance from the reading.
"""

_NUMBER = re.compile(r"[0-9]+")
_PARTS = ("year", "month", "day", "hour", "minute", "second")
_OFFSETS = {"hour": (0, 12), "year": (0, 2000)}  # of a part to the number in the text: p.m., and a year of two digits
_LENGTHS = frozenset({1, 2, 4})
_YEARS = range(1900, 2101)
# At both ends of a day, so that a time without a day has no form; before and after a leap day, so that a number of months is
# not the same number of days before both; on other days of their years, so that no day without a year is "today" at both; and
# late, because dateparser reads two digits as a past year.
_AT = (datetime(2067, 3, 1), datetime(2068, 3, 2, 23, 59, 59))
_ANOTHER_MONTH = datetime(2067, 10, 15, 12)
_EXTREME = {"year": 1998, "month": 12, "day": 28, "hour": 12, "minute": 59, "second": 58}


class Other(Enum):
    """Result for a text without a form."""

    TEXT = "texts of this shape have no common form: each has to be read alone"
    MOVING = "depends on the time of reading, in no way that a form has"
    NOTHING = "no date"


@dataclass(frozen=True, slots=True)
class Form:
    """Reads a date from its numbers: `parts` is the meaning of each, `base` has the parts given in words. `half` is None for
    a clock of 24 hours, 0 for a.m., 12 for p.m.
    """

    kind: Kind
    base: datetime
    distance: timedelta = timedelta()
    months: int = 0
    parts: tuple[str, ...] = ()
    half: int | None = None

    def read(self, numbers: Sequence[int], now: datetime) -> datetime | None:
        """Return the date; None for numbers that a date of this form does not have."""
        given: dict[str, Any] = dict(zip(self.parts, numbers, strict=True))
        year = given.get("year")
        if year is not None:
            if year < 100:
                given["year"] = year + (2000 if year < 69 else 1900)
            elif year not in _YEARS:
                return None
        if self.half is not None:
            if not 1 <= given["hour"] <= 12:
                return None
            given["hour"] = given["hour"] % 12 + self.half
        try:
            return self._at(given, now)
        except (ValueError, OverflowError):
            return None

    def _at(self, given: dict[str, Any], now: datetime) -> datetime | None:
        if self.kind == "after":
            return now + self.distance
        if self.kind == "months":
            return _months_later(now, self.months)
        if self.kind == "past":
            base = self.base.replace(year=2000, **given)  # a leap year
            return latest(now, base.month, base.day, base.hour, base.minute, base.second)
        found = self.base.replace(**given)
        return found if self.kind == "fixed" else datetime.combine(now + self.distance, found.time())


def numbers_of(text: str) -> list[int]:
    """Return the numbers in a text."""
    return [int(number) for number in _NUMBER.findall(text)]


def shape_of(text: str) -> str:
    """Return the text with each digit replaced by 0: the same for all dates of a form."""
    return _NUMBER.sub(lambda number: "0" * len(number[0]), text)


def learn_text(text: str, language: str | None, *, until: float | None = None) -> Form | Other:
    """Learn the form of one text. Raises OutOfTime."""
    answers = _answers(text, language, until)
    if answers is None:
        return Other.NOTHING
    form = _common(*answers)
    if form is not None and not _has_month(form, text, language, until):
        return Other.NOTHING
    return form or Other.MOVING


def learn_shape(shape: str, language: str | None, *, until: float | None = None) -> Form | Other:
    """Learn the form of all texts of a shape that has numbers. Raises OutOfTime."""
    lengths = [len(zeros) for zeros in _NUMBER.findall(shape)]
    if len(lengths) > len(_PARTS) or not _LENGTHS.issuperset(lengths):
        return Other.TEXT
    one, other = ([number + (2010 if length == 4 else 0) for number, length in enumerate(lengths, first)] for first in (3, 4))
    answers = _answers(_filled(shape, one), language, until)
    if answers is None:
        return Other.TEXT
    form = _common(*answers)
    if form is None:
        return Other.MOVING
    if not _has_month(form, _filled(shape, one), language, until):
        return Other.NOTHING
    again = ask(_filled(shape, other), language, _AT[0], until=until)
    parts = _parts([(one, answers[0]), (other, again)]) if again else None
    if parts is None:
        return Other.TEXT
    extreme = [_EXTREME[part] % 10**length if length > 1 else 9 for part, length in zip(parts, lengths, strict=True)]
    last = ask(_filled(shape, extreme), language, _AT[0], until=until)
    form = replace(form, parts=parts, half=_half(parts, one, answers[0], last))
    samples = [(one, _AT[0], answers[0]), (one, _AT[1], answers[1]), (other, _AT[0], again), (extreme, _AT[0], last)]
    return form if all(form.read(numbers, now) == found for numbers, now, found in samples) else Other.TEXT


def _answers(text: str, language: str | None, until: float | None) -> tuple[datetime, datetime] | None:
    """Return dateparser's answers at both times; None where it does not read the text."""
    one = ask(text, language, _AT[0], until=until)
    other = ask(text, language, _AT[1], until=until) if one else None
    return (one, other) if one and other else None


def _has_month(form: Form, text: str, language: str | None, until: float | None) -> bool:
    """Return True if a whole date names its month: for "20, 2026", where the month's name is of another language, dateparser
    takes the month of the reading.
    """
    return form.kind != "fixed" or ask(text, language, _ANOTHER_MONTH, until=until) == form.base


def _common(one: datetime, other: datetime) -> Form | None:
    """Return the form that explains both answers."""
    if one == other:
        return Form("fixed", one)
    if one.tzinfo or other.tzinfo:
        return None
    forms = [
        Form("months", one, months=(one.year - _AT[0].year) * 12 + one.month - _AT[0].month),
        Form("after", one, one - _AT[0]),
        Form("day", one, one.date() - _AT[0].date()),
        Form("past", one),
    ]
    return next((form for form in forms if (form.read([], _AT[0]), form.read([], _AT[1])) == (one, other)), None)


def _parts(samples: list[tuple[list[int], datetime]]) -> tuple[str, ...] | None:
    """Return the meaning of each number, if all samples agree on a single one."""
    parts = []
    for place in range(len(samples[0][0])):
        fits = [
            part
            for part in _PARTS
            if all(getattr(found, part) - numbers[place] in _OFFSETS.get(part, (0,)) for numbers, found in samples)
        ]
        if len(fits) != 1:
            return None
        parts += fits
    return tuple(parts) if len(set(parts)) == len(parts) else None


def _half(parts: tuple[str, ...], numbers: list[int], found: datetime, at_twelve: datetime | None) -> int | None:
    if "hour" not in parts:
        return None
    if found.hour != numbers[parts.index("hour")]:
        return 12
    return 0 if at_twelve is not None and at_twelve.hour == 0 else None


def _filled(shape: str, numbers: list[int]) -> str:
    left = iter(numbers)
    return _NUMBER.sub(lambda zeros: f"{next(left):0{len(zeros[0])}}", shape)


def _months_later(now: datetime, months: int) -> datetime:
    years, month = divmod(now.month - 1 + months, 12)
    year, month = now.year + years, month + 1
    return now.replace(year=year, month=month, day=min(now.day, monthrange(year, month)[1]))
