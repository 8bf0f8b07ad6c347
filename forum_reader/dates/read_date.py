"""Dates as forums write them: ISO 8601, epoch seconds or milliseconds, "2 hours ago", "yesterday, 14:02", "21. November 2026".

Exact dates and forms that a site file names are read first; all others are found by `dates_in_text`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

from .dates_in_text import Spotted, aged, spotted
from .post_calendar import Calendar, order_of
from .words import DIRECTIONS, TABLES, in_english

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_OF_MAIL = re.compile(r"(?:[A-Z][a-z]{2}, ?)?\d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d(?::\d\d)? (?:[+-]\d{4}|GMT|UTC?|Z)")
_MILLISECONDS_FROM = 100_000_000_000  # as seconds the year 5138, as milliseconds March 1973
_LEAST_SECONDS = 31_536_000
_YEARS = range(1971, 2100)  # software writes others for "never", as 0001-01-01 and 9999-12-31
_OTHER_CALENDARS = frozenset((*range(1300, 1421), *range(2443, 2643)))  # of Iran and of the Buddhist era
_LONGEST = 100  # characters; no date is longer
_DIRECTIVE = re.compile(r"%(.)", re.DOTALL)
_JUST_NOW = frozenset(TABLES["now"]["alone"])
_MONTH_DAY = re.compile(
    r"(\d{1,2})([-/.])\s?(\d{1,2})(\.?)"
    r"(?:[\s,T]+(?:[^\W\d]{1,3}\.?\s+)?(\d{1,2})[:h](\d{2})(?::(\d{2}))?\s*(?:uhr|ч\.?)?)?",
    re.IGNORECASE,
)
"""`11-21 08:03`, `21.11. um 8:03`."""
_OTHER_WORD = re.compile(r"\d|[^\W\d_]{3,}")


# It begins with a digit: `re` searches for one in a tenth of the time that a look-behind at each character takes.
_DAY_AND_MONTH = re.compile(r"\d(?<![\d./-].)\d?([./-])\d{1,2}\1(?:19|20)?\d\d(?![\d./-])", re.DOTALL)


def has_numeric_dates(text: str) -> bool:
    """Return True if a text may hold a date whose day and month are numbers, in an order that its language decides."""
    return _DAY_AND_MONTH.search(text) is not None


def check_form(form: str) -> str:
    """Return `form`, if dates can be read by it. Raises ValueError."""
    sample = datetime(2000, 2, 29, 23, 58, 57)
    letters = set(_DIRECTIVE.findall(form)) - {"%"}
    if not letters:
        raise ValueError(f"formats: {form!r} has no letters of a date: write one as '%d.%m.%Y, %H:%M'")
    try:
        datetime.strptime(sample.strftime(form), form)
    except ValueError as exc:
        if "bad directive" in str(exc) or "stray" in str(exc) or "ISO" in str(exc):
            raise ValueError(f"formats: {form!r} cannot be read: {exc}") from None
    if _lacks_year(form) and not letters & {"m", "b", "B"} and letters & {"d", "j", "a", "A", "w", "u"}:
        raise ValueError(f"formats: {form!r} has a day without a month: leave `formats` out, or read the month, too")
    return form


def _lacks_year(form: str) -> bool:
    """Return True if a form in `strptime`'s letters has no year, neither alone nor within a whole date or timestamp."""
    return not {"Y", "y", "G", "c", "x", "s"}.intersection(_DIRECTIVE.findall(form))


class DateReader:
    """Reads the dates of one page. `now` (aware): the time at which it was made, to which relative dates refer; dates without a
    time zone are of `time_zone`.
    """

    def __init__(self, now: datetime, *, language: str | None, time_zone: str) -> None:
        self._zone = ZoneInfo(time_zone)
        self._now = now.astimezone(self._zone).replace(tzinfo=None)
        self._language = language

    @cached_property
    def _calendar(self) -> Calendar:
        """Return the calendar of dates in words, which pages with exact dates do without."""
        here = self._now.replace(tzinfo=UTC)
        return Calendar(here, self._language, order=order_of(self._language), ahead=timedelta())

    def read(self, value: Any, formats: tuple[str, ...] = ()) -> tuple[datetime | None, bool]:
        """Return the time in a text or number, in UTC, or None; and True if it is absolute, False for one like "2 hours ago"."""
        if isinstance(value, bool) or value is None:
            return None, False
        text = str(value)
        text = " ".join((text if text.isascii() else DIRECTIONS.sub("", text)).split())
        if not text or len(text) > _LONGEST:
            return None, False
        try:
            if _NUMBER.fullmatch(text):
                return _epoch(float(text)), True
            found, fixed = self._exact(text, formats)
            if found is None:
                found, fixed = self._in_words(text)
            if found is None:
                return None, False
            if found.tzinfo is not UTC:
                found = (found if found.tzinfo else found.replace(tzinfo=self._zone)).astimezone(UTC)
            return (found, fixed) if found.year in _YEARS else (None, False)
        except (ValueError, OverflowError, OSError):
            return None, False

    def _exact(self, text: str, formats: tuple[str, ...]) -> tuple[datetime | None, bool]:
        """Read a date by the forms that a site file names, ISO 8601, and that of feeds and mails, which is in English on each
        board.
        """
        for form in formats:
            try:
                if _lacks_year(form):
                    return self._without_year(text, form), False
                return datetime.strptime(text, form), True
            except ValueError:
                continue
        if text[:1].isdigit():
            try:
                if (exact := datetime.fromisoformat(text)).year not in _OTHER_CALENDARS:
                    return exact, True
            except ValueError:
                pass
        return (parsedate_to_datetime(text), True) if _OF_MAIL.fullmatch(text) else (None, False)

    def _without_year(self, text: str, form: str) -> datetime | None:
        """Return the latest such time that is not in the future: of a form without a day the last of such times."""
        given = datetime.strptime(f"2000 {text}", f"%Y {form}")  # a leap year
        has_month = "%m" in form or "%b" in form or "%B" in form
        month, day = (given.month, given.day) if has_month else (None, None)
        return self._calendar.alone(Spotted(month=month, day=day, hour=given.hour, minute=given.minute, second=given.second))

    def _in_words(self, text: str) -> tuple[datetime | None, bool]:
        if _is_just_now(text):
            return self._now, False
        date = _found(text, self._language)
        if date is None:
            return None, False
        moment = self._calendar.alone(date)
        if moment is not None and date.offset is not None and date.back is None:
            moment = moment.replace(tzinfo=UTC)
        return moment, date.back is None and date.year is not None


def _found(text: str, language: str | None) -> Spotted | None:
    """Return the date in a text; where the words of all languages give none, or only a time, by those of the given language."""
    time = None
    for version in _versions(text, language):
        date = _of_numbers(version) or spotted(version) or aged(version)
        if date is not None and date.precision > 1:
            return date
        if date is not None and (date.weekday is not None or not _OTHER_WORD.search(_around(version, date))):
            time = date
    return time


def _around(text: str, date: Spotted) -> str:
    return f"{text[: date.whole[0]]} / {text[date.whole[1] :]}"


def _versions(text: str, language: str | None) -> Iterator[str]:
    """Yield the text, and the text in English. Croatian has months with the names of other months elsewhere: first in English."""
    if language != "hr":
        yield text
    yield in_english(text, language)
    if language == "hr":
        yield text


def _of_numbers(text: str) -> Spotted | None:
    """Return a day and a month without a year; the language decides their order."""
    match = _MONTH_DAY.fullmatch(text)
    if match is None or (match[2] == "." and not match[4] and match[5] is None):  # 10.15 may be a time
        return None
    hour, minute, second = (int(part or 0) for part in match.groups()[4:])
    return Spotted(a=int(match[1]), b=int(match[3]), hour=hour, minute=minute, second=second, separator=match[2])


def _is_just_now(text: str) -> bool:
    """Return True if the text means that, or its last words do (`Отправлено только что`)."""
    words = text.lower().rstrip(".!").split()
    tails = (" ".join(words[-count:]) for count in range(2, 5) if count < len(words))
    return " ".join(words) in _JUST_NOW or any(tail in _JUST_NOW for tail in tails)


def _epoch(seconds: float) -> datetime | None:
    if seconds < _LEAST_SECONDS:  # 0 for "never", a year or a count
        return None
    return datetime.fromtimestamp(seconds / 1000 if seconds >= _MILLISECONDS_FROM else seconds, UTC)
