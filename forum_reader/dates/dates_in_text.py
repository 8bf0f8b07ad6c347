"""Dates in the text of a page, found by their form in any language.

`spotted` finds a date in a short text and leaves the order of day and month in 10-04 to `post_calendar`. Names of months and of
relative times are in tables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from .normalised import common, of_tens
from .words import AGO, DAYS_BACK, LESS_THAN_ONE, MONTHS, NUMBERS, UNITS, WEEKDAYS, half_of_day, of_half

LONGEST = 120
"""Characters of a text that is searched for a date."""

_WORDS = re.compile(r"(?<![^\W\d_])[^\W\d_]{2,}|(?<=[(（])[^\W\d_](?=[)）])")
_WORD = r"[^\W\d_]{3,}+"
_ISO = re.compile(
    r"(?<!\d)(\d{4})-(\d\d)-(\d\d)(?:[T .]\s*(\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?\s*(Z|[+-]\d\d:?\d\d)?)?(?!\d)", re.ASCII
)
_YEAR_FIRST = re.compile(r"(?<!\d)((?:19|20)\d\d)\s?[-/.年]\s?(\d{1,2})\s?[-/.月]\s?(\d{1,2})日?(?!\d)")
_NUMERIC = re.compile(r"(?<![\d:.,/-])(\d{1,2})([./-])\s?(\d{1,2})\2\s?((?:19|20)\d\d|'?\d\d)(?![\d/-])")
_NAMED = re.compile(
    rf"(?<![\d:])(\d{{1,2}})(?:st|nd|rd|th|er|ème|[.ºª])?[\s./-]*(?:de |of |d')?({_WORD})[.,]?(?:[\s,./-]*(?:de |del |"
    rf"of )?('?\d{{4}}|'\d\d|\d\d(?![\d:]))(?!:))?"
)
_NAME_FIRST = re.compile(
    rf"(?<![^\W\d_])({_WORD})(?:\.?\s+|-)(\d{{1,2}})(?![\d:])(?:st|nd|rd|th)?[.,]?(?:[\s,-]+('?\d{{4}}|'\d\d|\d\d(?![\d:]))(?!:))?"
)
_YEAR_NAME = re.compile(rf"(?<!\d)((?:19|20)\d\d)[\s./-]+({_WORD})[\s./-]+(\d{{1,2}})(?!\d)")
_NAME_YEAR = re.compile(rf"(?<![^\W\d_])({_WORD})\.?,?\s+(?:de\s+)?((?:19|20)\d\d)(?!\d)")
_BARE_HOUR = re.compile(r"(?<=[\s,])(1[0-2]|\d)(?=\s?[ap](?:\.\s?m\.?|m)(?:$|[,)]))", re.IGNORECASE)
_NAMED_HOUR = re.compile(r"(?<=\d, )(?:noon|midnight)$")
_EAST = re.compile(r"(?<!\d)(\d{1,2})[月월]\s?(\d{1,2})[日일]")
_KOREAN = re.compile(r"((?:19|20)\d\d)[년.]\s?(\d{1,2})[월.]\s?(\d{1,2})[일.]?")
_MONTH_DAY = re.compile(r"(?<![\d./-])(\d{1,2})[-/](\d{1,2})\s+(?=\d{1,2}:\d\d)")
_TIME = re.compile(
    r"(?<![\d.,])(\d{1,2})\s?[:：hH時时點点시]\s?(\d\d|\d(?=[分분]))(?:[:：](\d\d))?[分분]?(?!\d)\s*(?:([apAP])\.?\s?[mM]\b\.?)?"
    r"(?:\s*(UTC|GMT|Z\b)?\s*([+-]\d\d:?\d\d)?)"
)
_TIME_BEHIND = re.compile(r"[\s,]+(?:[^\W\d_]{2,5}\.?\s)?([01]?\d|2[0-3])\.([0-5]\d)(?![\d%])(?![.,]\d)")
"""A time with a point, right behind its day: `20.11.2026 kl. 18.40`."""
_HALF_BEFORE = re.compile(r"\b([ap])\.?m\.?\s*$", re.IGNORECASE)
_RELATIVE = re.compile(r"(?<![\w.,])(\d{1,4}(?:[.,]\d+)?|[^\W\d_]{1,6})\s?[+'’]?\s?([^\W\d_]{1,14})\.?")
_SMALLER = re.compile(r"[\s,]*(?:(?:and|und|et|y|e|и)\s+)?(\d{1,3})\s?([^\W\d_]{1,12})")
_SIMPLE = str.maketrans("鐘剛後個週時點兩間號幾億萬", "钟刚后个周时点两间号几亿万")
_EAST_RELATIVE = re.compile(
    r"(?<![\d.])(\d{1,6}(?:\.\d{1,6})?|[半一两二三四五六七八九十几数]{1,4}|[한두세네몇])\s*+(?:[个かヶカ]\s*+)?(半)?个?"
    r"(秒|초|分|분|小时|时间|时|钟头|시간|天|日|일|周间|周|星期|礼拜|주일|주|月|개월|달|年|년)(半)?[钟间]?\s*+(?:多\s*+)?[以之]?(?:前|전)"
)
_NUMERALS = {"半": 0.5, "两": 2, "几": 3, "数": 3, "한": 1, "두": 2, "세": 3, "네": 4, "몇": 3}
AGE = re.compile(
    rf"\b(?:{'|'.join(AGO)})\b|前|전|(?:sekunde|minute|stunde|tag|woche|monat|jahr)(?:e?n|e)? (?:her|zuvor)\b", re.IGNORECASE
)
_HALF = re.compile(r"\bhalf an? |\bpół ", re.IGNORECASE)
_BARE_RELATIVE = re.compile(r"^\s*(\d{1,3})\s?(s|m|min|h|hr|hrs|d|w|wk|mo|y|yr|yrs)\s*$", re.IGNORECASE)
_EPOCH = re.compile(r"1\d{9}(?:\d{3})?$")
_EASTERN_DAY = re.compile("|".join(word for word in (*LESS_THAN_ONE, *DAYS_BACK) if ord(word[0]) > 0x2FFF))
_EASTERN = re.compile("[\u3000-\ud7ff]")
_FIRST_WORDS: dict[str, list[str]] = {}
for _phrase in (*LESS_THAN_ONE, *DAYS_BACK):
    if ord(_phrase[0]) <= 0x2FFF:
        _FIRST_WORDS.setdefault(re.split(r"[^\w'’-]", _phrase)[0], []).append(_phrase)
_LETTERS = re.compile(r"[^\W\d_][\w'’-]*")
_LONGEST_DAY_WORD = 60
_AUGUST = 8
_BEFORE_TIME = 5  # characters between a day and its time: ` at `
_BEFORE_HOUR = 16  # characters that may hold the weekday of a time: `Saturday, at `
_OTHER_FORM = re.compile(
    "[\u0530-\u10ff\u1200-\u137f\u1780-\u17ff\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]"
    r"|(?:明治|大正|昭和|平成|令和|民[國国])|\b2[45]\d\d\b|\b1[34]\d\d[./-]\d|\d[./-]1[34]\d\d\b|оны |[〇零一二三四五六七八九]年|"
    r"\b[SHR]\d{1,2}\.\d|\d\.?\s?(?:\(?e?\)?ko|gada|m\.)\s|\bth(?:áng|g)\s",
    re.IGNORECASE,
)
"""Sign of a form that `normalised.common` knows: another script or calendar, a mark of direction, a word behind the year."""
_FULL = re.compile(r"\d|今|昨|前|전|刚|剛")


@dataclass(frozen=True, slots=True)
class Spotted:
    """A date as it is written. `a` and `b` are day and month in an order that is not known yet, where `month` is None."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    a: int | None = None
    b: int | None = None
    short: bool = False
    """The last of three numbers has two digits, so the year may be the first: `26-11-20`, `26/11/20(Fri)`."""
    hour: int | None = None
    minute: int = 0
    second: int = 0
    half: bool = False
    offset: int | None = None
    """Minutes east of UTC; None where none is named."""
    weekday: int | None = None
    back: timedelta | None = None
    """Time before the page was made."""
    span: tuple[int, int] = (0, 0)
    whole: tuple[int, int] = (0, 0)
    """Like `span`, with the time."""
    separator: str = ""

    @property
    def precision(self) -> int:
        """Return how complete the date is: 1 a time, 2 day and month or a month and year, 3 a whole day, 4 a day and a time."""
        if self.back is not None:
            return 3
        day = self.day is not None or self.a is not None
        if not day:
            return 2 if self.month is not None else 1
        return (3 if self.year is not None else 2) + (self.hour is not None)


def spotted(text: str) -> Spotted | None:
    """Return the first date in a text; None without any. A time of day alone is a date, too (of precision 1)."""
    return _spotted(text) if len(text) <= LONGEST else None


@lru_cache(maxsize=4096)
def _spotted(text: str) -> Spotted | None:
    if text.isascii() and not _FULL.search(text) and not _NAMED_HOUR.search(text):
        return _day_word(text, None) if len(text) < 40 else None
    if text[-1:] in "mM.,)":
        text = _BARE_HOUR.sub(r"\1:00", text)
    text = _NAMED_HOUR.sub(lambda found: "12:00" if found[0] == "noon" else "00:00", text)
    if (not text.isascii() or _FULL.search(text)) and _OTHER_FORM.search(text):
        text = common(text)
    if _EASTERN.search(text):
        text = text.translate(_SIMPLE)
    if len(text) > LONGEST or not _FULL.search(text):
        return _day_word(text, None) if len(text) < 40 else None
    if (iso := _ISO.search(text)) and _is_day(int(iso[2]), int(iso[3])):
        return _with_half(_of_iso(iso), text, iso)
    day = _day(text)
    age = _relative(text) if day is not None and day.year is None and day.month == _AUGUST else None
    if day is not None and age is not None and age.whole[0] < day.span[1] and day.span[0] < age.whole[1]:
        return age  # in `3 days ago 14 replies` is a day of August (`ago 14`) of other languages
    time = _time(text, day)
    if day is None:
        other = _day_word(text, time) or _relative(text)
        return other or (time and replace(time, weekday=_weekday(text, max(0, time.whole[0] - _BEFORE_HOUR), time.whole[0])))
    if time is None:
        return replace(day, whole=day.span)
    whole = min(day.span[0], time.whole[0]), max(day.span[1], time.whole[1])
    return replace(day, hour=time.hour, minute=time.minute, second=time.second, half=time.half, offset=time.offset, whole=whole)


def machine_date(value: str) -> Spotted | None:
    """Return the date in an attribute: ISO 8601, seconds or milliseconds since 1970, or in words."""
    value = value.strip()
    if _EPOCH.match(value):
        moment = datetime.fromtimestamp(int(value[:10]), UTC)
        return Spotted(
            year=moment.year, month=moment.month, day=moment.day, hour=moment.hour, minute=moment.minute, second=moment.second,
            offset=0,
        )  # fmt: skip
    return spotted(value) if len(value) <= LONGEST else None


def _of_iso(match: re.Match[str]) -> Spotted:
    year, month, day, hour, minute, second, zone = match.groups()
    hours = int(hour) if hour and int(hour) < 24 and int(minute) < 60 else None
    return Spotted(
        year=int(year),
        month=int(month),
        day=int(day),
        hour=hours,
        minute=int(minute or 0) if hours is not None else 0,
        second=min(int(second or 0), 59),
        offset=_offset(zone),
        span=match.span(),
        whole=match.span(),
    )


def _with_half(date: Spotted, text: str, iso: re.Match[str]) -> Spotted:
    """Complete a date in ISO's order with a time in another form: `2023-03-08, 10:07 PM`, `2023-03-08 下午 10:07`."""
    if iso[7] or "T" in iso[0]:
        return date
    time = _time(text[iso.end(3) :].lstrip("."), None)
    if time is None or time.span[0] > _BEFORE_TIME:
        return date
    whole = iso.start(), len(text)
    return replace(date, hour=time.hour, minute=time.minute, second=time.second, half=time.half, offset=time.offset, whole=whole)


def _offset(zone: str | None) -> int | None:
    if not zone:
        return None
    if zone[0] not in "+-":
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return minutes * (-1 if zone[0] == "-" else 1) if minutes < 24 * 60 else None


def _is_day(month: int, day: int) -> bool:
    return 1 <= month <= 12 and 1 <= day <= 31


def _day(text: str) -> Spotted | None:
    for pattern in (_YEAR_FIRST, _KOREAN):
        if (match := pattern.search(text)) and _is_day(int(match[2]), int(match[3])):
            return Spotted(year=int(match[1]), month=int(match[2]), day=int(match[3]), span=match.span())
    if match := _NUMERIC.search(text):
        a, b, year = int(match[1]), int(match[3]), _year(match[4])
        if (_is_day(a, b) or _is_day(b, a)) and year is not None:
            short = len(match[4]) == 2
            weekday = _weekday(text) if short or (a <= 12 and b <= 12) else None
            short = short and (match[2] != "/" or weekday is not None)
            return Spotted(year=year, a=a, b=b, short=short, weekday=weekday, span=match.span(), separator=match[2])
    if (match := _YEAR_NAME.search(text)) and (month := MONTHS.get(match[2].lower())) and 1 <= int(match[3]) <= 31:
        return Spotted(year=int(match[1]), month=month, day=int(match[3]), span=match.span())
    named = _named(text)
    if named is not None:
        return named
    if (match := _EAST.search(text)) and _is_day(int(match[1]), int(match[2])):
        return Spotted(month=int(match[1]), day=int(match[2]), span=match.span())
    if match := _MONTH_DAY.search(text):
        a, b = int(match[1]), int(match[2])
        if _is_day(a, b) or _is_day(b, a):
            return Spotted(a=a, b=b, span=match.span(), separator="-" if "-" in match[0] else "/")
    return None


def _named(text: str) -> Spotted | None:
    found = None
    for match in _NAMED.finditer(text):
        month = MONTHS.get(match[2].lower())
        if month and 1 <= int(match[1]) <= 31 and (_year(match[3]) or not match[3]):
            found = Spotted(year=_year(match[3]), month=month, day=int(match[1]), weekday=_weekday(text), span=match.span())
            break
    if found is not None and found.year is not None:
        return found
    for match in _NAME_FIRST.finditer(text):
        month = MONTHS.get(match[1].lower())
        if month and 1 <= int(match[2]) <= 31 and (_year(match[3]) or not match[3]):
            other = Spotted(year=_year(match[3]), month=month, day=int(match[2]), weekday=_weekday(text), span=match.span())
            return other if found is None or other.year is not None else found
    if found is not None:
        return found
    for match in _NAME_YEAR.finditer(text):
        if month := MONTHS.get(match[1].lower()):
            return Spotted(year=int(match[2]), month=month, span=match.span())
    return None


def _year(text: str | None) -> int | None:
    if not text:
        return None
    number = int(text.lstrip("'"))
    if number < 100:
        return number + (2000 if number < 70 else 1900)
    return number if 1970 <= number <= 2100 else None


def _weekday(text: str, begin: int = 0, end: int = LONGEST) -> int | None:
    return next((WEEKDAYS[word] for word in _WORDS.findall(text.lower(), begin, end) if word in WEEKDAYS), None)


def _time(text: str, day: Spotted | None) -> Spotted | None:
    for match in _TIME.finditer(text):
        if day is not None and match.start() < day.span[1] and day.span[0] < match.end():
            continue
        hour, minute = int(match[1]), int(match[2])
        if hour > 24 or minute > 59:
            continue
        half, span = match[4], match.span()
        if not half and (before := _HALF_BEFORE.search(text[: match.start()])):
            half, span = before[1], (before.start(), match.end())
        if half and 1 <= hour <= 12:
            hour = of_half(hour, f"{half.lower()}m")
        elif word := half_of_day(text, match.start(), match.end(4) if match[4] else len(match[0].rstrip()) + match.start()):
            hour = of_half(hour, word[0])
        offset = _offset(match[6]) if match[6] else (0 if match[5] else None)
        return Spotted(
            hour=hour % 24, minute=minute, second=min(int(match[3] or 0), 59), half=bool(half), offset=offset, span=match.span(),
            whole=span,
        )  # fmt: skip
    if day is not None and (time := _TIME_BEHIND.match(text, day.span[1])):
        word = half_of_day(text, *time.span())
        hour, span = of_half(int(time[1]), word[0]) if word else int(time[1]), time.span()
        return Spotted(hour=hour, minute=int(time[2]), span=span, whole=span)
    return None


def _day_word(text: str, time: Spotted | None) -> Spotted | None:
    """Read a word for a day: `yesterday, 14:02`, `heute`, `刚刚`."""
    if len(text) > _LONGEST_DAY_WORD:
        return None
    low = text.lower()
    word = _named_day(low)
    if word is None:
        return None
    if word in LESS_THAN_ONE:
        return Spotted(back=timedelta()) if len(text.strip()) < 30 else None
    begin = low.find(word)
    time = time or _time(text, Spotted(span=(begin, begin + len(word))))
    rest = len(text.strip()) - len(word) - (time.span[1] - time.span[0] if time else 0)
    if rest > (25 if time else 12):
        return None
    back = timedelta(days=DAYS_BACK[word])
    if time is None:
        return Spotted(back=back, whole=(begin, begin + len(word)))
    whole = min(begin, time.whole[0]), max(begin + len(word), time.whole[1])
    return Spotted(back=back, hour=time.hour, minute=time.minute, second=time.second, offset=time.offset, whole=whole)


def _named_day(low: str) -> str | None:
    if _EASTERN.search(low):
        match = _EASTERN_DAY.search(low)
        return match[0] if match else None
    if _FIRST_WORDS.keys().isdisjoint(_LETTERS.findall(low)):
        return None
    for first in _LETTERS.finditer(low):
        for phrase in _FIRST_WORDS.get(first[0], ()):
            if low.startswith(phrase, first.start()):
                return phrase
    return None


def aged(text: str) -> Spotted | None:
    """Return the distance in a text whose number is in words, or left out: `half an hour ago`, `godzinę temu`."""
    return None if _FULL.search(text) or not AGE.search(text) else _relative(_HALF.sub("0.5 ", text)) or _relative(f"1 {text}")


def _relative(text: str) -> Spotted | None:
    if match := _EAST_RELATIVE.search(text):
        many = float(match[1]) if match[1][0].isdigit() else _NUMERALS.get(match[1]) or of_tens(match[1])
        return Spotted(back=(many + 0.5 * bool(match[2] or match[4])) * UNITS[match[3]], span=match.span(), whole=match.span())
    if match := _BARE_RELATIVE.match(text):
        return Spotted(back=int(match[1]) * UNITS[match[2].lower()], span=match.span())
    ago = AGE.search(text)
    if ago is None:
        return None
    for match in _RELATIVE.finditer(text):
        word = match[2].lower()
        unit = UNITS.get(f"{ago[0].lower()}_{word}", UNITS.get(word))
        number = float(match[1].replace(",", ".")) if match[1][0].isdigit() else NUMBERS.get(match[1].lower())
        if unit is not None and number is not None:
            more, end = _rest_of(text, match.end(), unit)
            whole = min(match.start(), ago.start()), max(end, ago.end())
            return Spotted(back=number * unit + more, span=(match.start(), end), whole=whole)
    return None


def _rest_of(text: str, start: int, unit: timedelta) -> tuple[timedelta, int]:
    """Return the sum of smaller units, `2 weeks` in `10 months, 2 weeks ago`, and the end of their text."""
    match = _SMALLER.match(text, start)
    smaller = UNITS.get(match[2].lower()) if match else None
    if match is None or smaller is None or smaller >= unit:
        return timedelta(0), start
    more, end = _rest_of(text, match.end(), smaller)
    return int(match[1]) * smaller + more, end
