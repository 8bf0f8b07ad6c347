"""Languages of dates: their names as pages and site files write them, and their order of day, month and year."""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache


def check_language(language: str) -> str:
    """Return `language`, if dates can be read in it. Raises ValueError with similar names."""
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
    return _by_small_letters().get(given) or _by_small_letters().get(given.partition("-")[0])


def writes_day_first(language: str | None) -> bool:
    """Return True if a language writes the day before the month in `04-03-2023`; False for English without a
    country, and None.
    """
    return bool(language) and order_of(language) == "DMY"


@lru_cache(maxsize=1024)
def order_of(language: str | None) -> str:
    """Return the order in which a language writes the numbers of a date: `DMY`, `MDY` or `YMD`."""
    from dateparser.languages.loader import default_loader

    return (default_loader.get_locale(language).info.get("date_order") if language else None) or "MDY"


@lru_cache(maxsize=1)
def _by_small_letters() -> dict[str, str]:
    from dateparser.data.languages_info import language_locale_dict

    return {name.lower(): name for language, locales in language_locale_dict.items() for name in (*locales, language)}
