"""Dates as forums write them: ISO 8601, epoch seconds or milliseconds, "2 hours ago", "yesterday, 14:02", "21. November 2026".

What is exact is read first, and fast; the rest by dateparser, whose results for dates that do not depend on the time of reading
are remembered, since a page repeats them.
"""

from __future__ import annotations

import re
import warnings
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_MILLISECONDS_FROM = 100_000_000_000  # as seconds the year 5138, as milliseconds March 1973
_PROBES = (datetime(2001, 1, 10, 3, 4, 5), datetime(2014, 8, 20, 16, 17, 18))


def check_language(language: str) -> str:
    """`language`, if dates can be read in it. Raises ValueError with names that look like it."""
    known = (*_languages(), *_locales())
    if language in known:
        return language
    close = [name for name in known if name.lower() == language.lower()] or get_close_matches(language, known, n=3)
    raise ValueError(f"is no language that dates can be read in{': did you mean ' + ', '.join(close) if close else ''}")


def parse(value: Any, now: datetime, *, language: str | None, time_zone: str, formats: tuple[str, ...] = ()) -> datetime | None:
    """The moment, in UTC, or None. `value` is text or a number, `now` (aware) the time when it was read, which relative dates
    refer to; dates without a time zone are of `time_zone`.
    """
    if isinstance(value, bool) or value is None:
        return None
    text = str(value).strip()
    if not text:
        return None
    try:
        if _NUMBER.fullmatch(text):
            return _epoch(float(text))
        found = _exact(text, formats) or _fixed(text, language)
        if found is None:
            found = _read(text, language, now.astimezone(ZoneInfo(time_zone)).replace(tzinfo=None))
        if found is None:
            return None
        return (found if found.tzinfo else found.replace(tzinfo=ZoneInfo(time_zone))).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


def is_fixed(value: Any, *, language: str | None, formats: tuple[str, ...] = ()) -> bool:
    """Whether it means the same whenever it is read, as "2 hours ago" does not."""
    text = str(value).strip()
    return bool(_NUMBER.fullmatch(text) or _exact(text, formats) or _fixed(text, language))


def _epoch(seconds: float) -> datetime | None:
    if seconds <= 0:  # how some software says "never"
        return None
    return datetime.fromtimestamp(seconds / 1000 if seconds >= _MILLISECONDS_FROM else seconds, UTC)


def _exact(text: str, formats: tuple[str, ...]) -> datetime | None:
    for form in formats:
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    if text[:1].isdigit():
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass
    return None


@lru_cache(maxsize=8192)
def _fixed(text: str, language: str | None) -> datetime | None:
    """The date, if it is the same read today or in another year."""
    one, other = (_read(text, language, now) for now in _PROBES)
    return one if one == other else None


def _read(text: str, language: str | None, now: datetime) -> datetime | None:
    import dateparser  # 0.2 s, and many sites never need it

    kind = {"languages": [language]} if language in _languages() else {"locales": [language]}
    settings = {"RELATIVE_BASE": now, "PREFER_DATES_FROM": "past"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python, over dateparser's own reading of days without a year
        found: datetime | None = dateparser.parse(text, settings=settings, **(kind if language else {}))
    return found


@lru_cache(maxsize=1)
def _languages() -> frozenset[str]:
    from dateparser.data.languages_info import language_order

    return frozenset(language_order)


@lru_cache(maxsize=1)
def _locales() -> frozenset[str]:
    from dateparser.data.languages_info import language_locale_dict

    return frozenset(locale for locales in language_locale_dict.values() for locale in locales)
