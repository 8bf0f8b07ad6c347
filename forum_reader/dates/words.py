"""Words of dates: tables of the languages of forums, and dateparser's tables, by which a text is put into English."""

from __future__ import annotations

import re
import tomllib
from datetime import timedelta
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

TABLES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
"""Words of dates in the languages of forums."""
DIRECTIONS = re.compile("[\u200b\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")
"""Marks of a text's direction, which boards put between the numbers of a date."""
_UNSPACED = "\u0e00"  # scripts from here on do not part all words


def _halves(*, reversed_: bool = False) -> re.Pattern[str]:
    """Return the expression for a word of a half of the day, in the group of its half."""

    def form(word: str) -> str:
        word = word.replace("_", " ")
        whole = "" if word[0] >= _UNSPACED else r"(?![^\W\d_])"
        own = re.escape(word[::-1] if reversed_ else word) + whole
        return f"(?-i:{own})" if word.isascii() and word.isupper() else own  # `CH` is a half, `ch` is not

    halves = {half: sorted(words.split(), key=len, reverse=True) for half, words in TABLES["halves"].items()}
    groups = (f"(?P<{half}>{'|'.join(map(form, words))})" for half, words in halves.items())
    return re.compile(rf"[\s,(]{{0,3}}(?:बजे\s?)?(?:{'|'.join(groups)})", re.IGNORECASE)


_HALF_BEHIND, _HALF_BEFORE = _halves(), _halves(reversed_=True)
_DIGITS = frozenset(("", *"0123456789,-"))
_AFTER_NOON = {"am": (), "pm": range(12), "noon": range(10), "night": range(6, 12)}


def half_of_day(text: str, begin: int, end: int) -> tuple[str, int, int] | None:
    """Return the half of the day that a word before or behind a time names, and where both together begin and end."""
    if end < len(text) and (behind := _HALF_BEHIND.match(text, end)) and behind.lastgroup:
        return behind.lastgroup, begin, behind.end()
    before = text[:begin].rstrip()[::-1]
    if before[:1] not in _DIGITS and (word := _HALF_BEFORE.match(before)) and word.lastgroup:
        return word.lastgroup, len(before) - word.end(), end
    return None


def of_half(hour: int, half: str) -> int:
    """Return the hour of 24 of one in a half of the day; one above 12 is of 24 already."""
    return hour if hour > 12 else hour % 12 + 12 * (hour % 12 in _AFTER_NOON[half])


_WHOLE = r"(?<!\w)(?:{})(?:(?!\w)|(?<=\s))"


def in_known_words(text: str) -> str:
    """Return a text of another alphabet than Latin and Cyrillic in words that are in the tables; most texts are unchanged."""
    for pattern, known in _known():
        text = pattern.sub(known, text)
    return text


@lru_cache(maxsize=1)
def _known() -> tuple[tuple[re.Pattern[str], str], ...]:
    words = [(name, *pair) for name, pairs in TABLES["known"].items() for pair in pairs.items()]
    return tuple((re.compile(text if name == "th" else _WHOLE.format(text)), known) for name, text, known in words)


def in_english(text: str, language: str | None = None) -> str:
    """Return a text with English months, weekdays, `am`, `pm` and distances (`२० नवंबर`, `3 საათის წინ`), by dateparser's tables
    of a language, or of those of its script where that is another one than Latin, Greek, Cyrillic and the three of the East.
    """
    letter = _OTHER_SCRIPT.search(text)
    names = f"{language.partition('-')[0]} en" if language else _OF_SCRIPT.get(ord(letter[0]) // 128, "") if letter else ""
    for pattern, english in _translations(names, _NUMBER.search(text) is not None):
        text = pattern.sub(english, text)
    return text


@lru_cache(maxsize=64)
def _translations(languages: str, has_number: bool) -> tuple[tuple[re.Pattern[str], Any], ...]:
    """Return the replacements of some languages; distances, which are most of them, only for texts with a number."""
    tables = [import_module(f"dateparser.data.date_translation_data.{name}").info for name in languages.split()]
    words: dict[str, str] = {}
    found: list[tuple[re.Pattern[str], Any]] = []
    for table in tables:
        for key, forms in (table.get("relative-type-regex") or {}).items():
            if has_number and "ago" in key:
                found += [(re.compile(_distance(form), re.IGNORECASE), key) for form in forms]
        named = [(name[:3], table.get(name, ())) for name in (*_MONTHS, *_WEEKDAYS, "am", "pm")]
        days = [(_DAYS.get(key, key), forms) for key, forms in (table.get("relative-type") or {}).items() if key.endswith(" ago")]
        for english, forms in (*named, *days):
            for word in map(str.lower, forms):
                if not _NUMBER.search(word):
                    words.setdefault(word, english)
    longest = sorted(words, key=len, reverse=True)
    pattern = re.compile(rf"(?<![^\W\d_])(?:{'|'.join(map(re.escape, longest))})(?![^\W\d_])", re.IGNORECASE) if words else None
    return (*found, *([(pattern, lambda match: words.get(match[0].lower(), match[0]))] if pattern else []))


def _distance(form: str) -> str:
    """Return the expression of a distance, up to the end of its last word where the script parts words."""
    return rf"(?<![\d.,]){form}".replace("\u200b", "") + (r"(?![^\W\d_])" if form[-1] < _UNSPACED else "")


_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAYS = {"0 day ago": "today", "1 day ago": "yesterday"}
_NUMBER = re.compile(r"\d")
_OTHER_SCRIPT = re.compile("[\u0530-\u10ff\u1200-\u137f\u1780-\u17ff]")
_OF_SCRIPT = {
    0x530 // 128: "hy", 0x580 // 128: "he", 0x600 // 128: "ar fa ur", 0x680 // 128: "ar fa ur", 0x900 // 128: "hi mr ne",
    0x980 // 128: "bn", 0xA00 // 128: "pa", 0xA80 // 128: "gu", 0xB00 // 128: "or", 0xB80 // 128: "ta", 0xC00 // 128: "te",
    0xC80 // 128: "kn", 0xD00 // 128: "ml", 0xD80 // 128: "si", 0xE00 // 128: "th", 0xE80 // 128: "lo", 0x1000 // 128: "my",
    0x1080 // 128: "ka", 0x1200 // 128: "am", 0x1280 // 128: "am", 0x1300 // 128: "am", 0x1780 // 128: "km",
}  # fmt: skip
"""Languages by the blocks of 128 characters of their scripts."""

UNIT_LENGTHS = {
    "second": timedelta(seconds=1), "minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1),
    "week": timedelta(days=7), "month": timedelta(days=365.25 / 12), "year": timedelta(days=365.25),
}  # fmt: skip
UNITS = {word: UNIT_LENGTHS[name] for name, words in TABLES["units"].items() for word in words.split()}
"""Duration of each unit, by its name."""
AGO = [words.replace("_", " ") for words in TABLES["ago"]["words"].split()]
NUMBERS = {word: float(number) for number, words in TABLES["numbers"].items() for word in words.split()}
DAYS_BACK = {word: int(days) for days, words in TABLES["days_back"].items() for word in words.replace("\n", "").split("|")}
DAYS_BACK = dict(sorted(DAYS_BACK.items(), key=lambda pair: -len(pair[0])))
"""Words of days before today, the longest first."""
LESS_THAN_ONE = tuple(TABLES["now"]["within"])
WEEKDAYS = {word: int(number) for number, words in TABLES["weekdays"].items() for word in words.split()}
"""Monday is 0."""
MONTHS = {word: int(number) for number, words in TABLES["months"].items() for word in words.split()}
