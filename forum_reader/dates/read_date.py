"""Dates as forums write them: ISO 8601, epoch seconds or milliseconds, "2 hours ago", "yesterday, 14:02", "21. November 2026".

Exact dates are read first, and fast; then dates of forms that dateparser was asked about once; the rest by dateparser.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from .dates_in_text import AGE, OTHER_FORM, spotted
from .language import Form, Other, OutOfTime, ask, learn_shape, learn_text, numbers_of, shape_of
from .normalised import in_common_era, plain, without_directions
from .post_calendar import Calendar
from .short_forms import EAST, just_now, latest, year_is_missing
from .words import WEEKDAYS, in_halves, in_known_words, is_english, on_24_hours

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_OF_MAIL = re.compile(r"(?:[A-Z][a-z]{2}, ?)?\d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d(?::\d\d)? (?:[+-]\d{4}|GMT|UTC?|Z)")
_MILLISECONDS_FROM = 100_000_000_000  # as seconds the year 5138, as milliseconds March 1973
_LEAST_SECONDS = 31_536_000
_YEARS = range(1971, 2100)  # software writes others for "never", as 0001-01-01 and 9999-12-31
_OTHER_CALENDARS = frozenset((*range(1300, 1421), *range(2443, 2643)))  # of Iran and of the Buddhist era
_PART_OF_DATE = re.compile(r"(?<![\w#№])(?:\d{1,2}|\d{4})(?!\w)")
_COUNT = re.compile(r"\d{1,3}(?=\s+[^\W\d]{3})")  # `14 replies`
_ISO = re.compile(r"(?<!\d)\d{4}-\d\d-\d\d(?!\d)")
_WORD = re.compile(r"[^\W\d_]{2,}")
_WEEKDAY_BEHIND = re.compile(r"(?<!\d)(?:20)?\d\d([./-])\d\d\1\d\d\s?\(\w{1,3}\)")
"""`26/11/29(Sun)12:05:41`, `11/29/26(Sun)12:05`: the weekday decides the order."""
_LONGEST = 100  # characters; no date is longer, and dateparser's time grows with the length
_MOST_KNOWN = 8192  # texts and shapes that are remembered
_WEEKDAY = 12  # characters around a date: a weekday, whose texts are few
_PATIENCE = 10  # texts of a page other than dates; a wrong selector finds them in each row
_MOST_S = 2.0  # of processor time, for a page's dates with dateparser; the reactor is blocked meanwhile

Answer = TypeVar("Answer")

_known: dict[tuple[str, str | None], Form | Other] = {}


class DateReader:
    """Reads the dates of one page. `now` (aware): the time at which it was made, to which relative dates refer; dates without a
    time zone are of `time_zone`.
    """

    def __init__(self, now: datetime, *, language: str | None, time_zone: str) -> None:
        self._at = now
        self._zone = ZoneInfo(time_zone)
        self._now = now.astimezone(self._zone).replace(tzinfo=None)
        self._language = language
        self._patience = _PATIENCE
        self._left_s = _MOST_S

    def read(self, value: Any, formats: tuple[str, ...] = ()) -> tuple[datetime | None, bool]:
        """Return the time in a text or number, in UTC, or None; and True if it is absolute, False for one like "2 hours ago"."""
        if isinstance(value, bool) or value is None:
            return None, False
        text = " ".join(without_directions(str(value)).split())
        if not text or len(text) > _LONGEST:
            return None, False
        try:
            if _NUMBER.fullmatch(text):
                return _epoch(float(text)), True
            found, fixed = self._exact(text, formats)
            if found is None:
                found, fixed = self._in_words(text)
            if found is None:
                found, fixed = self._spotted(text)
            if found is None:
                return None, False
            if found.tzinfo is not UTC:
                found = (found if found.tzinfo else found.replace(tzinfo=self._zone)).astimezone(UTC)
            return (found, fixed) if found.year in _YEARS else (None, False)
        except (ValueError, OverflowError, OSError):
            return None, False

    @cached_property
    def _in_english(self) -> DateReader:
        found = DateReader(self._at, language="en", time_zone=self._zone.key)
        found._patience, found._left_s = self._patience, self._left_s
        return found

    def _spotted(self, text: str) -> tuple[datetime | None, bool]:
        """Return the age, or the whole date with a named month, in a text of a form that dateparser does not read, or of a
        plugin's or a visitor's language.
        """
        date = spotted(text) if OTHER_FORM.search(text) or AGE.search(text) or _ISO.search(text) else None
        if date is not None and date.back is not None and date.hour is None:
            return self._now - date.back, False
        if date is None or date.year is None or date.month is None or date.day is None or (date.offset and _ISO.search(text)):
            return None, False
        return datetime(date.year, date.month, date.day, date.hour or 0, date.minute, date.second), True

    def _exact(self, text: str, formats: tuple[str, ...]) -> tuple[datetime | None, bool]:
        """Read a date by the forms that a site file names, ISO 8601, and that of feeds and mails, which is in English on each
        board.
        """
        for form in formats:
            try:
                if year_is_missing(form):
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
        if _OF_MAIL.fullmatch(text):
            return parsedate_to_datetime(text), True
        if _WEEKDAY_BEHIND.search(text) and (date := spotted(text)) and (date.weekday is not None or date.month):
            (found,) = Calendar(self._at, self._language).read([date])
            return (found if found is None or date.offset is not None else found.replace(tzinfo=None)), True
        return None, False

    def _without_year(self, text: str, form: str) -> datetime | None:
        """Return the latest such time that is not in the future: of a form without a day the last of such times."""
        given = datetime.strptime(f"2000 {text}", f"%Y {form}")  # a leap year
        if "%m" in form or "%b" in form or "%B" in form:
            return latest(self._now, given.month, given.day, given.hour, given.minute, given.second)
        found = datetime.combine(self._now, given.time())
        return found if found <= self._now else found - timedelta(days=1)

    def _in_words(self, text: str) -> tuple[datetime | None, bool]:
        text = in_common_era(on_24_hours(in_halves(text if text.isascii() else plain(text))), self._language)
        if self._language is not None and self._language[:2] != "en" and is_english(text):
            return self._in_english._in_words(text)
        key = (shape_of(text), self._language)
        if isinstance(known := _known.get(key), Form):
            found = known.read(numbers_of(text), self._now)
            if found is not None:
                return found, known.kind == "fixed"
        whole = in_known_words(plain(text), self._language)
        if not whole or just_now(whole, self._now):
            return (self._now if whole else None), False
        part = _part(whole)
        learned = self._learning(part)
        if len(text) - len(part) <= _WEEKDAY and numbers_of(text) == numbers_of(part):
            _known.setdefault(key, _known.get((shape_of(part), self._language), Other.TEXT))
        return learned

    def _learning(self, text: str) -> tuple[datetime | None, bool]:
        learned: Form | Other | None = Other.TEXT
        if numbers := numbers_of(text):
            learned = self._learned(shape_of(text), of=learn_shape)
            if isinstance(learned, Form):
                found = learned.read(numbers, self._now)
                if found is not None:
                    return found, learned.kind == "fixed"
                learned = Other.TEXT
        if learned is Other.TEXT:
            learned = self._learned(text, of=learn_text)
        if isinstance(learned, Form):
            return learned.read([], self._now), learned.kind == "fixed"
        return (self._timed(ask, text, self._now) if learned is Other.MOVING else None), False

    def _learned(self, text: str, *, of: Callable[[str, str | None], Form | Other]) -> Form | Other | None:
        """Return the form of a text or shape, known or learned now; None where the page's time is spent."""
        key = (text, self._language)
        if (known := _known.get(key)) is not None:
            return known
        learned: Form | Other | None = self._timed(of, text)
        if learned is not None:
            if len(_known) >= _MOST_KNOWN:
                _known.clear()
            _known[key] = learned
        return learned

    def _timed(self, question: Callable[..., Answer], text: str, *more: Any) -> Answer | None:
        """Ask dateparser; None where the page has spent its time or its texts other than dates."""
        if self._patience <= 0 or self._left_s <= 0:
            return None
        begun = time.thread_time()
        try:
            answer = question(text, self._language, *more, until=begun + self._left_s)
        except OutOfTime:
            self._left_s = 0.0
            return None
        self._left_s -= time.thread_time() - begun
        self._patience -= answer in (None, Other.NOTHING)
        return answer


def _part(text: str) -> str:
    """Return the stretch of a text that holds a date, without its weekday; all of it where that is not known."""
    date = None if EAST.search(text) or OTHER_FORM.search(text) else spotted(text)
    if date is None or not date.whole[1]:
        return text
    begins, ends = date.whole
    if date.precision < 2:  # a time: `Posted Saturday at 8:03`
        days = [one.start() for one in _WORD.finditer(text, 0, begins) if one[0].lower() in WEEKDAYS]
        if not days:
            return text
        begins = days[-1]
    others = _COUNT.sub("", f"{text[:begins]} / {text[ends:]}")
    return text if _PART_OF_DATE.search(others) else text[begins:ends].strip()


def _epoch(seconds: float) -> datetime | None:
    if seconds < _LEAST_SECONDS:  # 0 for "never", a year or a count
        return None
    return datetime.fromtimestamp(seconds / 1000 if seconds >= _MILLISECONDS_FROM else seconds, UTC)
