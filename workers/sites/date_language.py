"""Dates in the words of a language, read by dateparser: thorough and slow, 2 to 4 ms for a date, 20 to 40 where no language is
given and the text is none.
"""

from __future__ import annotations

import warnings
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache


def check_language(language: str) -> str:
    """`language`, if dates can be read in it. Raises ValueError with names that look like it."""
    known = (*_languages(), *_locales())
    if language in known:
        return language
    close = [name for name in known if name.lower() == language.lower()] or get_close_matches(language, known, n=3)
    raise ValueError(f"is no language that dates can be read in{': did you mean ' + ', '.join(close) if close else ''}")


def ask(text: str, language: str | None, now: datetime) -> datetime | None:
    """The date, if there is one; `now` is naive, as is a result that names no time zone."""
    import dateparser  # 0.2 s, and many sites never need it

    kind = {"languages": [language]} if language in _languages() else {"locales": [language]}
    settings = {"RELATIVE_BASE": now, "PREFER_DATES_FROM": "past"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Python, over dateparser's own reading of days without a year
            found: datetime | None = dateparser.parse(text, settings=settings, **(kind if language else {}))
    except (ValueError, OverflowError):  # of numbers that no calendar has
        return None
    return found


@lru_cache(maxsize=1)
def _languages() -> frozenset[str]:
    from dateparser.data.languages_info import language_order

    return frozenset(language_order)


@lru_cache(maxsize=1)
def _locales() -> frozenset[str]:
    from dateparser.data.languages_info import language_locale_dict

    return frozenset(locale for locales in language_locale_dict.values() for locale in locales)
