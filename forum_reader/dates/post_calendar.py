"""Dates of the posts of a page, read together: `10-04-2017` is read in the order of day and month in which each number is
possible and the posts stand closest to each other. `Calendar` does it for dates that `dates_in_text` found.

Languages have the names that pages and site files write, and their order of day, month and year.
"""

from __future__ import annotations

import itertools
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING

from .dates_in_text import Spotted
from .words import UNIT_LENGTHS

if TYPE_CHECKING:
    from forum_reader.reading.page_records import CommentsPage


def disorder(moments: Sequence[datetime | None], now: datetime) -> float:
    """Count neighbours that are out of order, plus a fraction for the dates' distance: posts are close to each other in time.
    Dates ahead of `now` count most.
    """
    known = [moment for moment in moments if moment is not None]
    ahead = sum(moment > now + timedelta(days=2) for moment in known)
    pairs = list(itertools.pairwise(known))
    steps = min(sum(b < a for a, b in pairs), sum(b > a for a, b in pairs))
    spread = (max(known) - min(known)).days if known else 0
    return 1000.0 * ahead + steps + min(spread, 3650) / 10_000


_CUSTOM = 1.5  # disorder: one neighbour in another time zone
_YEAR_FIRST = frozenset({"ko", "ja", "zh", "hu", "lt"})
"""Languages that write the year first, even where it has two digits."""


def _before(now: datetime, back: timedelta) -> datetime:
    """Return the time at a distance, which is counted by the calendar where it is some whole months."""
    months, rest = divmod(back, UNIT_LENGTHS["month"])
    if rest or not months:
        return now - back
    year, month = divmod(now.year * 12 + now.month - 1 - months, 12)
    return now.replace(year=year, month=month + 1, day=min(now.day, monthrange(year, month + 1)[1]))


def _year_first(date: Spotted) -> Spotted:
    return replace(date, year=2000 + (date.a or 0), month=date.b, day=(date.year or 0) % 100, a=None, b=None)


class Calendar:
    """Reads the dates of a page. `now` (aware) is when the page was made; `language` as in `<html lang>`; `order`: of day, month
    and year, where the language decides it; `ahead`: how far a clock in an unknown time zone may be ahead.
    """

    def __init__(
        self, now: datetime, language: str | None = None, *, order: str | None = None, ahead: timedelta = timedelta(hours=14)
    ) -> None:
        self._now = now.astimezone(UTC).replace(tzinfo=None)
        self._language = (language or "").lower().replace("_", "-")
        self._order = order
        self._ahead = ahead

    def read(self, dates: Sequence[Spotted | None]) -> list[datetime | None]:
        """Return the times of dates in the same form, in the order of the posts; None for each that is not a date. Without a
        named time zone the time stays as written, and is called UTC.
        """
        dates = self._with_year_first(dates)
        day_first = self.is_day_first([date for date in dates if date is not None and date.a is not None])
        found = [None if date is None else self._moment(date, day_first) for date in dates]
        latest = self._now + timedelta(days=2)
        return [None if one is None or one > latest else one.replace(tzinfo=UTC) for one in found]

    def alone(self, date: Spotted) -> datetime | None:
        """Return the time of a single date, without a zone; of one that names its own, in UTC."""
        (date,) = (one for one in self._with_year_first([date]) if one is not None)
        return self._moment(date, self.is_day_first([date] if date.a is not None else []))

    def _with_year_first(self, dates: Sequence[Spotted | None]) -> Sequence[Spotted | None]:
        """Return the dates with the year in front, where all look like `26-11-20` and their weekdays, their distance or the
        language's custom favour it.
        """
        numeric = [date for date in dates if date is not None and date.a is not None]
        if not numeric or not all(date.short for date in numeric):
            return dates
        turned = [_year_first(date) if date is not None and date.short else date for date in dates]
        moments = [self._moment(date, day_first=True) for date in turned if date is not None]
        if None in moments:
            return dates  # a month 13
        days = self._other_weekdays(numeric, self.is_day_first(numeric))
        turned_days = self._other_weekdays([date for date in turned if date is not None], day_first=True)
        if days != turned_days or numeric[0].separator == "/":
            return turned if turned_days < days else dates
        usual = self._disorder([date for date in dates if date is not None], self.is_day_first(numeric))
        other = disorder(moments, self._now)
        usual += _CUSTOM if self._language[:2] in _YEAR_FIRST else 0.0
        return turned if other < usual else dates

    def is_day_first(self, dates: list[Spotted]) -> bool:
        """Return True if the day stands before the month in `10-04-2017`."""
        if any((date.a or 0) > 12 for date in dates):
            return True
        if any((date.b or 0) > 12 for date in dates):
            return False
        if not dates:
            return True
        if self._order is not None:
            is_whole = dates[0].year is not None
            return self._order == "DMY" or (is_whole if self._order == "YMD" else dates[0].separator == ".")
        orders = [(self._other_weekdays(dates, day_first), self._disorder(dates, day_first)) for day_first in (True, False)]
        if orders[0] != orders[1]:
            return orders[0] < orders[1]
        if dates[0].year is None:  # 11-21 08:03 is how Chinese boards write it
            return False
        american = dates[0].half or self._language in ("en-us", "en-ph")
        return dates[0].separator == "." or not american

    def _other_weekdays(self, dates: list[Spotted], day_first: bool) -> int:
        """Count the dates that are not on the weekday that they name."""
        named = [(date.weekday, self._moment(date, day_first)) for date in dates if date.weekday is not None and date.year]
        return sum(moment is None or moment.weekday() != weekday for weekday, moment in named)

    def _disorder(self, dates: list[Spotted], day_first: bool) -> float:
        return disorder([self._moment(date, day_first) for date in dates], self._now)

    def _moment(self, date: Spotted, day_first: bool) -> datetime | None:
        try:
            if date.back is not None:
                found = _before(self._now, date.back)
                if date.hour is not None:
                    found = found.replace(hour=date.hour, minute=date.minute, second=date.second, microsecond=0)
                return found.replace(microsecond=0)
            month, day = date.month, date.day
            if month is None and date.a is not None and date.b is not None:
                day, month = (date.a, date.b) if day_first else (date.b, date.a)
            if month is None:
                if date.hour is None:
                    return None
                found = self._now.replace(hour=date.hour, minute=date.minute, second=date.second, microsecond=0)
                days = 1 if date.weekday is None else 7
                found -= timedelta(days=0 if date.weekday is None else (found.weekday() - date.weekday) % 7)
                return found if found <= self._now + self._ahead else found - timedelta(days=days)
            year = date.year if date.year is not None else self._year(date, month, day or 1)
            if year > self._now.year + 1 and self._language[:2] == "th":  # 69 is 2569 of the Buddhist era, 2026
                year -= 43
            found = datetime(year, month, day or 1, date.hour or 0, date.minute, date.second)
            if date.offset:
                found = found.replace(tzinfo=timezone(timedelta(minutes=date.offset))).astimezone(UTC).replace(tzinfo=None)
        except (ValueError, OverflowError):
            return None
        return found

    def _year(self, date: Spotted, month: int, day: int) -> int:
        """Return the year of a date without one: the latest that is not ahead, and that matches a named weekday."""
        latest = self._now + self._ahead
        for year in range(latest.year, latest.year - 12, -1):
            try:
                moment = datetime(year, month, day, date.hour or 0, date.minute, date.second)
            except ValueError:  # the 29th of February
                continue
            if moment <= latest and (date.weekday is None or moment.weekday() == date.weekday):
                return year
        return latest.year


_ENGLISH = {"en": "MDY", "en-US": "MDY", "en-GB": "DMY"}
"""Orders of the language that most pages have: reading these does not load dateparser, for 0.06 s."""


def check_language(language: str) -> str:
    """Return `language`, if dates can be read in it. Raises ValueError with similar names."""
    if language in _ENGLISH:
        return language
    known = _by_small_letters().values()
    if language in known:
        return language
    own = _by_small_letters().get(language.lower())
    close = [own] if own else get_close_matches(language, known, n=3)
    raise ValueError(f"is not a language that dates can be read in{': did you mean ' + ', '.join(close) if close else ''}")


def known_language(name: str) -> str | None:
    """Return the language in `<html lang>`, as dates are read in it: `pt-br` is `pt-BR`, `zh-CN` is `zh`. None: unknown."""
    given = name.strip().replace("_", "-").lower()
    if not given or len(given) > 12:
        return None
    if english := next((one for one in _ENGLISH if one.lower() == given), None):
        return english
    return _by_small_letters().get(given) or _by_small_letters().get(given.partition("-")[0])


def writes_day_first(language: str | None) -> bool:
    """Return True if a language writes the day before the month in `04-03-2023`; False for English without a
    country, and None.
    """
    return bool(language) and order_of(language) == "DMY"


@lru_cache(maxsize=1024)
def order_of(language: str | None) -> str:
    """Return the order in which a language writes the numbers of a date: `DMY`, `MDY` or `YMD`."""
    if not language or language in _ENGLISH:
        return _ENGLISH[language or "en"]
    from dateparser.languages.loader import default_loader

    return default_loader.get_locale(language).info.get("date_order") or "MDY"


@lru_cache(maxsize=1)
def _by_small_letters() -> dict[str, str]:
    from dateparser.data.languages_info import language_locale_dict

    return {name.lower(): name for language, locales in language_locale_dict.items() for name in (*locales, language)}


ENGLISH = "en-GB"
"""English that writes the day before the month."""


def disorder_of(page: CommentsPage, now: datetime) -> float:
    """Return a measure of disorder and distance between the posts of a page; see `post_calendar.disorder`."""
    moments = [None if one is None else one.replace(tzinfo=None) for one in moments_of(page)]
    return disorder(moments, now.astimezone(UTC).replace(tzinfo=None))


def moments_of(page: CommentsPage) -> list[datetime | None]:
    """Return the dates of the page's posts, in its order."""
    return [*([page.post.created_at] if page.post else []), *(comment.created_at for comment in page.comments)]
