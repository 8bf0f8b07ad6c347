"""Dates in the words of a language, read by dateparser: thorough and slow, 2 to 4 ms for a date, 20 to 40 where no language is
given and the text is not a date.
"""

from __future__ import annotations

import re
import time
import warnings
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from . import eastern
from .short_forms import just_now, month_day, parts_ago

_EASTERN = ("zh", "ja", "ko", "yu")  # Chinese, Japanese, Korean, Cantonese
_NUMBER = re.compile(r"\d+")
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
    if found is None and ((language or "")[:2] in _EASTERN or eastern.EAST.search(text)):
        found = eastern.read(text, now)
    if found is None:
        found = parts_ago(text, now, lambda whole: _ask_dateparser(whole, language, now, until))
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
