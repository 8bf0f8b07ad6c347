"""English in the dates of boards of any language: skins and plugins are often not translated. dateparser, given another
language, leaves out unknown words: of `Mar 13, 2023 9:14 PM` Swedish and Arabic kept the 13th of this month, 9:14.
"""

from __future__ import annotations

import re

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


def is_english(text: str) -> bool:
    """Return True if a text is a date in English, on a board of any language: its month, or a time that has passed."""
    return _IN_ENGLISH.fullmatch(text) is not None


def on_24_hours(text: str) -> str:
    """Convert `9:14 PM` to `21:14`: dateparser does not support PM in half of the languages."""
    return _HALF.sub(_hour, text) if "m" in text or "M" in text else text


def _hour(match: re.Match[str]) -> str:
    hour = int(match[1])
    if not 1 <= hour <= 12:
        return match[0] if hour > 23 or match[2] is None else f"{match[1]}{match[2]}{match[3]}"
    hour = hour % 12 + (12 if match[4] in "pP" else 0)
    return f"{hour:02}{match[2] or ':00'}{match[3]}"
