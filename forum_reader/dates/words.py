"""Words of dates: tables of the languages of forums, and English on boards of any language, as skins and plugins are often not
translated. dateparser, given another language, leaves out unknown words: of `Mar 13, 2023 9:14 PM` Swedish and Arabic kept the
13th of this month, 9:14.
"""

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
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)\.?"
)
_WEEKDAY = r"(?:(?:mon|tue(?:s)?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s+)?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_TIME = r"\d{1,2}:\d\d(?::\d\d)?(?:\s*[ap]\.?m\.?)?"
_UNIT = r"(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|wks?|months?|mos?|years?|yrs?)"
_COUNT = r"(?:\d+(?:\.\d+)?|an?|half an?)"
_AGO = rf"{_COUNT}\s*(?:{_UNIT}|(?<=\d)\s?[hdwy])(?:,?(?:\s+and)?\s+{_COUNT}\s*{_UNIT})*\s+ago"
_SHORT = r"\d+\s?(?:[hdwy]|hrs?|yrs?|wks?)"  # not m: minutes or months, depending on the language
_NEAR_DAY = r"(?:today|yesterday|(?:last\s+)?(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?)"
_IN_ENGLISH = re.compile(
    rf"{_WEEKDAY}(?:{_MONTH}\s+{_DAY},?\s+\d{{4}}|{_DAY}[\s-]+(?:of\s+)?{_MONTH},?[\s-]+\d{{4}})"
    rf"(?:[\s,·|-]+(?:at\s+|@\s*)?{_TIME}(?:\s*(?:UTC|GMT))?)?|{_AGO}|{_SHORT}"
    rf"|{_NEAR_DAY}(?:,?\s+at\s+|,?\s+|\s*@\s*){_TIME}|yesterday|last (?:week|month|year)",
    re.IGNORECASE,
)
_HALF = re.compile(r"(?<![\d:.])(\d{1,2})([:.]\d\d)?((?::\d\d)?)\s*([ap])\.?\s?m\b\.?", re.IGNORECASE)


_NAMED_HOUR = re.compile(r"(?<=\d, )(?:noon|midnight)$")


def is_english(text: str) -> bool:
    """Return True if a text is a date in English, on a board of any language: its month, or a time that has passed."""
    return _IN_ENGLISH.fullmatch(text) is not None


def on_24_hours(text: str) -> str:
    """Convert `9:14 PM` to `21:14`, and `, noon` to `, 12:00`: dateparser does not support PM in half of the languages."""
    text = _NAMED_HOUR.sub(lambda found: "12:00" if found[0] == "noon" else "00:00", text)
    return _HALF.sub(_hour, text) if "m" in text or "M" in text else text


def _hour(match: re.Match[str]) -> str:
    hour = int(match[1])
    if not 1 <= hour <= 12:
        return match[0] if hour > 23 or match[2] is None else f"{match[1]}{match[2]}{match[3]}"
    hour = hour % 12 + (12 if match[4] in "pP" else 0)
    return f"{hour:02}{match[2] or ':00'}{match[3]}"


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
_CLOCK_IN_WORDS = re.compile(
    r"(?<![\d.,:/-])(\d{1,2})(?:([:.][0-5]\d(?::[0-5]\d)?)(?![\d.]\d)(?!\s?[ap]\.?m)|\s?[时時点點시](?![间間간半반])(?:\s?(\d{1,2})\s?[分분])?)"
)


def in_halves(text: str) -> str:
    """Convert a time with a word for its half of the day: `6:40 বিকাল`, `6:40 de la tarde`."""
    for clock in _CLOCK_IN_WORDS.finditer(text):
        if half := half_of_day(text, *clock.span()):
            name, begin, end = half
            minutes = clock[2] or f":{clock[3] or 0:0>2}"
            return f"{text[:begin]}{of_half(int(clock[1]), name):02}{minutes}{text[end:]}"
    return text


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


_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
)  # fmt: skip

_AT = re.compile(
    r"(?<!\S)(?:saat|klo|kl\.?|jam|pukul|lúc|godz\.?|الساعة|ساعت|בשעה|เวลา|στις|a les|[àáa]s)\s*"
    r"(?=\d{1,2}[:.][0-5]\d(?!\d))",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"(?<![\w.,:/-])([01]?\d|2[0-3])(?:h|(?<=[^\W\d]\s\d)\.|(?<=[^\W\d]\s\d\d)\.)([0-5]\d)$", re.IGNORECASE)
_WHOLE = r"(?<!\w)(?:{})(?:(?!\w)|(?<=\s))"
_WITHIN = frozenset({"id", "it", "th"})  # languages in which a word above is a part of a longer one


def in_known_words(text: str, language: str | None) -> str:
    """Return the text in words and signs that dateparser reads; most texts are unchanged. Digits are ASCII's."""
    text = _CLOCK.sub(r"\1:\2", _AT.sub("", text))
    for pattern, known in _words((language or "").partition("-")[0]):
        text = pattern.sub(known, text)
    return text


@lru_cache(maxsize=64)
def _words(language: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the replacements of a language; where none is given, of those with another alphabet than Latin and Cyrillic."""
    names = [language] if language else ["ar", "el", "fa", "he", "hi", "my", "ne", "th"]
    words = [(name, *pair) for name in names for pair in TABLES["known"].get(name, {}).items()]
    return tuple(
        (re.compile(text if name in _WITHIN else _WHOLE.format(text), re.IGNORECASE), known) for name, text, known in words
    )


def in_english(text: str) -> str:
    """Return a text in another script than Latin, Greek, Cyrillic and the three of the East with English months, `am`, `pm` and
    distances (`२० नवंबर`, `3 საათის წინ`), by dateparser's tables of the languages of the script.
    """
    letter = _OTHER_SCRIPT.search(text)
    for pattern, english in _translations(ord(letter[0]) // 128, _NUMBER.search(text) is not None) if letter else ():
        text = pattern.sub(english, text)
    return text


@lru_cache(maxsize=64)
def _translations(block: int, has_number: bool) -> tuple[tuple[re.Pattern[str], Any], ...]:
    """Return the replacements of a script; distances, which are most of them, only for texts with a number."""
    tables = [import_module(f"dateparser.data.date_translation_data.{name}").info for name in _OF_SCRIPT.get(block, "").split()]
    words: dict[str, str] = {}
    found: list[tuple[re.Pattern[str], Any]] = []
    for table in tables:
        for key, forms in (table.get("relative-type-regex") or {}).items():
            if has_number and "ago" in key:
                found += [(re.compile(rf"(?<![\d.,]){form}".replace("\u200b", ""), re.IGNORECASE), key) for form in forms]
        for name in (*_MONTHS, "am", "pm"):
            words |= {word: name[:3] for word in table.get(name, ()) if not word.isascii() and word not in words}
        for key, name in (("0 day ago", "today"), ("1 day ago", "yesterday"), ("2 day ago", "2 days ago")):
            words |= {word: name for word in (table.get("relative-type") or {}).get(key, ()) if word not in words}
    longest = sorted(words, key=len, reverse=True)
    pattern = re.compile(rf"(?<![^\W\d_])(?:{'|'.join(map(re.escape, longest))})(?![^\W\d_])") if words else None
    return (*found, *([(pattern, lambda match: words[match[0]])] if pattern else []))


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
    "week": timedelta(days=7), "month": timedelta(days=30), "year": timedelta(days=365.25),
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
