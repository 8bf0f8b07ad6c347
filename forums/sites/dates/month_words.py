"""The same date in another month: what was learned of `Jan 00, 0000` also holds for `Nov 00, 0000`.

dateparser treats the names of a language's months, and of its days of the week, alike; they are taken from its tables.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module

import msgspec

_WORD = re.compile(r"[^\W\d_]+")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_OTHERS = ("am", "pm", "year", "month", "week", "day", "hour", "minute", "second", "ago", "in", "skip", "pertain")
_SHORT = 4  # letters of a name that is written short


class Names(msgspec.Struct, frozen=True):
    """Words of a language that name one month, or one day of the week, and nothing else; and the names of January and Monday,
    short and in full.
    """

    months: dict[str, int]
    days: frozenset[str]
    january: tuple[str, str]
    monday: tuple[str, str]


def in_january(text: str, language: str | None) -> tuple[str, int] | None:
    """Return the text with January in place of its month and Monday in place of its day of the week, and the month. None where
    it names no month, or more than one, or has these names already.
    """
    names = _names(language) if language else None
    if names is None:
        return None
    found = [names.months[word] for word in _words_of(text) if word in names.months]
    if len(found) != 1:
        return None

    def replaced(match: re.Match[str]) -> str:
        word = match[0].lower()
        is_long = len(word) > _SHORT
        return names.january[is_long] if word in names.months else names.monday[is_long] if word in names.days else match[0]

    changed = _WORD.sub(replaced, text)
    return None if changed == text else (changed, found[0])


def _words_of(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


@lru_cache(maxsize=64)
def _names(language: str) -> Names | None:
    from dateparser.data.languages_info import language_order

    if language not in language_order:
        return None
    table = import_module(f"dateparser.data.date_translation_data.{language}").info

    def single(key: str) -> list[str]:
        return [name for name in table.get(key) or () if isinstance(name, str) and _WORD.fullmatch(name)]

    taken: dict[str, set[str]] = {}
    for key in (*_MONTHS, *_DAYS, *_OTHERS):
        for name in single(key):
            taken.setdefault(name, set()).add(key)
    months = {name: number for number, key in enumerate(_MONTHS, 1) for name in single(key) if taken[name] == {key}}
    days = frozenset(name for key in _DAYS for name in single(key) if taken[name] == {key})
    january = sorted((name for name, number in months.items() if number == 1 and len(name) > 2), key=len)  # not `I`
    monday = sorted((name for name in single("monday") if name in days), key=len)
    if not january or not monday:
        return None
    return Names(months, days, (january[0], january[-1]), (monday[0], monday[-1]))
