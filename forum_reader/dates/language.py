"""Dates in the words of a language, read by dateparser, and forms: the common structure of all dates written like
`Sat Nov 21, 2026 9:01 am`.

dateparser is thorough and slow, 2 to 4 ms for a date, 20 to 40 where no language is given and the text is not a date. Each post
of a board has another date, so a cache of dates does not help. But dateparser can be asked once how it reads a form: with numbers
in place of the date's own that distinguish day, month, hour and minute, and at two times, which distinguishes "today, 9:01" and
"2 hours ago" from an absolute date. The form must explain each of its answers; dates without a form are read one by one.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from difflib import get_close_matches
from enum import Enum
from functools import lru_cache
from typing import Any, Literal

from . import short_forms
from .dates_in_text import spotted
from .short_forms import just_now, latest, month_day, months_before

_EASTERN = ("zh", "ja", "ko", "yu")  # Chinese, Japanese, Korean, Cantonese
_NUMBER = re.compile(r"\d+")
_HALF = re.compile(r"\bhalf an? ", re.IGNORECASE)
_PARTLY = re.compile(rf"(?<!\d)\d+[.,]\d+(?!\d)|{_HALF.pattern}", re.IGNORECASE)  # `2.87 years ago`, which dateparser reads as 87
_WITH_POINTS = re.compile(r"(?<![\d.])\d{1,2}\.\s?\d{1,2}\.\s?\d{2,4}(?![\d.])")  # day first wherever points are used
_TIME = re.compile(r"\d{1,2}[:.h]\d{2}(?::\d{2})?")


def check_language(language: str) -> str:
    """Return `language`, if dates can be read in it. Raises ValueError with similar names."""
    known = (*_languages(), *_locales())
    if language in known:
        return language
    close = [name for name in known if name.lower() == language.lower()] or get_close_matches(language, known, n=3)
    raise ValueError(f"is not a language that dates can be read in{': did you mean ' + ', '.join(close) if close else ''}")


class OutOfTime(Exception):
    """A text was not read within the processor time that was left for it."""


def known_language(name: str) -> str | None:
    """Return the language in `<html lang>`, as dates are read in it: `pt-br` is `pt-BR`, `zh-CN` is `zh`. None: unknown."""
    given = name.strip().replace("_", "-").lower()
    if not given or len(given) > 12:
        return None
    return _by_small_letters().get(given) or _by_small_letters().get(given.partition("-")[0])


def writes_day_first(language: str | None) -> bool:
    """Return True if a language writes the day before the month in `04-03-2023`; False for English without a
    country, and None.
    """
    return bool(language) and _order(language) == "DMY"


def ask(text: str, language: str | None, now: datetime, *, until: float | None = None) -> datetime | None:
    """Read a date, or return None; `now` is naive, as is a result without a time zone. Texts that dateparser would read wrongly
    are read here.

    `until`: the processor time of this thread (`time.thread_time`) at which OutOfTime is raised. It is checked for each of some
    300 languages that the text could be of, so it is kept to within milliseconds.
    """
    order = _order(language)
    found = month_day(text, now, day_first=order == "DMY", year_first=order == "YMD") or just_now(text, now)
    if found is None and ((language or "")[:2] in _EASTERN or short_forms.EAST.search(text)):
        found = short_forms.read(text, now)
    if (
        found is None
        and _PARTLY.search(text)
        and (age := spotted(_HALF.sub("0.5 ", text)))
        and age.back is not None
        and age.hour is None
    ):
        found = now - age.back
    return found or _ask_dateparser(text, language, now, until) or _ask_for_one(text, language, now, until)


def _ask_for_one(text: str, language: str | None, now: datetime, until: float | None) -> datetime | None:
    """Read a text whose number is left out ("godzinę temu", an hour ago)."""
    if language is None or _NUMBER.search(text) or " " not in text:
        return None
    return _ask_dateparser(f"1 {text}", language, now, until)


def _ask_dateparser(text: str, language: str | None, now: datetime, until: float | None) -> datetime | None:
    options = {"RELATIVE_BASE": now, "PREFER_DATES_FROM": "past"}
    kind: dict[str, Any] = {"languages": [language]} if language in _languages() else {"locales": [language]}
    if _order(language) == "YMD" and len(_NUMBER.findall(_TIME.sub("", text))) == 1:
        options["DATE_ORDER"] = "DMY"  # it would read "21 nov" as the year 21
    elif language is None and _WITH_POINTS.search(text):
        options["DATE_ORDER"] = "DMY"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's, over dateparser's own reading of days without a year
            parser = _parser_type()(settings=options, **(kind if language else {}))
            parser.until = until
            found: datetime | None = parser.get_date_data(text).date_obj
    except (ValueError, OverflowError):  # of numbers that no calendar has
        return None
    return found


@lru_cache(maxsize=1024)
def _order(language: str | None) -> str:
    """Return the order in which a language writes the numbers of a date: `DMY`, `MDY` or `YMD`."""
    from dateparser.languages.loader import default_loader

    return (default_loader.get_locale(language).info.get("date_order") if language else None) or "MDY"


@lru_cache(maxsize=1)
def _parser_type() -> Any:
    from dateparser.date import DateDataParser  # 0.2 s, and many sites never need it

    class Punctual(DateDataParser):  # type: ignore[misc]
        """The parser of `dateparser.parse`, with a limit of time: one text without a known language took 2.8 s."""

        until: float | None = None

        def _is_applicable_locale(self, *given: Any, **named: Any) -> Any:
            self._look_at_the_clock()
            return super()._is_applicable_locale(*given, **named)

        def _parse_using_locale(self, *given: Any, **named: Any) -> Any:
            self._look_at_the_clock()
            return super()._parse_using_locale(*given, **named)

        def _look_at_the_clock(self) -> None:
            if self.until is not None and time.thread_time() > self.until:
                raise OutOfTime

    return Punctual


@lru_cache(maxsize=1)
def _by_small_letters() -> dict[str, str]:
    return {name.lower(): name for name in (*_locales(), *_languages())}


@lru_cache(maxsize=1)
def _languages() -> frozenset[str]:
    from dateparser.data.languages_info import language_order

    return frozenset(language_order)


@lru_cache(maxsize=1)
def _locales() -> frozenset[str]:
    from dateparser.data.languages_info import language_locale_dict

    return frozenset(locale for locales in language_locale_dict.values() for locale in locales)


Kind = Literal["fixed", "past", "day", "after", "months"]
"""`fixed`: a whole date. `past`: a date without a year, the last that is not ahead. `day`: a day counted from the reading, with
a time. `after`, `months`: a distance from the reading.
"""

_DIGITS = re.compile(r"[0-9]+")
_PARTS = ("year", "month", "day", "hour", "minute", "second")
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
    """Reads a date from its numbers: `parts` is the meaning of each, `base` has the parts given in words."""

    kind: Kind
    base: datetime
    distance: timedelta = timedelta()
    months: int = 0
    parts: tuple[str, ...] = ()

    def read(self, numbers: Sequence[int], now: datetime) -> datetime | None:
        """Return the date; None for numbers that a date of this form does not have."""
        given: dict[str, Any] = dict(zip(self.parts, numbers, strict=True))
        year = given.get("year")
        if year is not None:
            if year < 100:
                given["year"] = year + (2000 if year < 69 else 1900)
            elif year not in _YEARS:
                return None
        try:
            return self._at(given, now)
        except (ValueError, OverflowError):
            return None

    def _at(self, given: dict[str, Any], now: datetime) -> datetime | None:
        if self.kind == "after":
            return now + self.distance
        if self.kind == "months":
            return months_before(now, -self.months)
        if self.kind == "past":
            base = self.base.replace(year=2000, **given)  # a leap year
            return latest(now, base.month, base.day, base.hour, base.minute, base.second)
        found = self.base.replace(**given)
        return found if self.kind == "fixed" else datetime.combine(now + self.distance, found.time())


def numbers_of(text: str) -> list[int]:
    """Return the numbers in a text."""
    return [int(number) for number in _DIGITS.findall(text)]


def shape_of(text: str) -> str:
    """Return the text with each digit replaced by 0: the same for all dates of a form."""
    return _DIGITS.sub(lambda number: "0" * len(number[0]), text)


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
    lengths = [len(zeros) for zeros in _DIGITS.findall(shape)]
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
    form = replace(form, parts=parts)
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
            if all(getattr(found, part) - numbers[place] in ((0, 2000) if part == "year" else (0,)) for numbers, found in samples)
        ]
        if len(fits) != 1:
            return None
        parts += fits
    return tuple(parts) if len(set(parts)) == len(parts) else None


def _filled(shape: str, numbers: list[int]) -> str:
    left = iter(numbers)
    return _DIGITS.sub(lambda zeros: f"{next(left):0{len(zeros[0])}}", shape)
