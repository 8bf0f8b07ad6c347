"""The text of a date in one form: years of other calendars converted to the common one, digits as ASCII, other words cut off."""

from __future__ import annotations

import re
import unicodedata
from datetime import date

from .words import DIRECTIONS, TABLES, in_english, in_known_words

_ERAS = {"明治": 1867, "大正": 1911, "昭和": 1925, "平成": 1988, "令和": 2018, "民國": 1911, "民国": 1911}  # their year 0
_ERA = re.compile(rf"({'|'.join(_ERAS)})\s*(元|\d{{1,3}})\s*年")
_OF_TAIWAN = re.compile(r"(?<!\d)1[0-4]\d(?=年\s*\d{1,2}\s*月)")
_LETTERS = {"S": "昭和", "H": "平成", "R": "令和"}
_LETTERED = re.compile(r"(?<![A-Za-z\d])([SHR])(\d{1,2})[./-](\d{1,2})[./-](\d{1,2})(?![\d.])")
_ENGLISH = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_NAMES = TABLES["months_of"]
_THAI, _EGYPTIAN = _NAMES["thai"], _NAMES["egypt"]


def _numbers(names: list[str]) -> dict[str, int]:
    return {name: number for number, all_names in enumerate(names, 1) for name in all_names.split("|")}


def _with_months(names: dict[str, int], year: str) -> re.Pattern[str]:
    months = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?<!\d)(\d{{1,2}})(?:ام|م)?\s*({months})(?:\s*ماه)?[\s,،]*{year}(?!\d)")


_SHORT_FROM = 43  # of two digits, a year of the Buddhist era: 2543 is 2000
_THAI_MONTHS, _PERSIAN_MONTHS = _numbers(_THAI), _numbers(_NAMES["iran"])
_ARABIC_MONTHS = _numbers(_NAMES["levant_and_maghreb"])
_ARABIC_MONTH = re.compile(rf"(?<!\w)(?:{'|'.join(_ARABIC_MONTHS)})(?!\w)")
_THAI_DAY = _with_months(_THAI_MONTHS, r"(?:(?:พ\.?\s?ศ\.?\s*)?(\d{4}|\d\d(?![:.]\d)))?")
_PERSIAN_DAY = _with_months(_PERSIAN_MONTHS, r"(\d{4}|\d\d(?![:.]\d))")
_MONTH_FIRST = re.compile(
    rf"({'|'.join(map(re.escape, [*_THAI_MONTHS, *_PERSIAN_MONTHS]))})\s*(\d{{1,2}})[,،]?\s+(\d{{4}})(?!\d)"
)
_VIETNAMESE = re.compile(r"(?:ngày\s+)?(\d{1,2})\s*(?:tháng|thg)\s*(\d{1,2})(?:\s*,|\s+năm)?\s*(\d{4})(?!\d)", re.IGNORECASE)
_VIETNAMESE_MONTH = re.compile(r"(?:tháng|thg)\s*(\d{1,2})\s+(\d{1,2}),?\s+(\d{4})(?!\d)", re.IGNORECASE)
_YEAR_BEFORE = re.compile(
    r"(?<!\d)((?:19|20)\d\d)\.?\s?(?:წლის|წ\.|m\.|gada|ж\.|жылғы|թ\.|(?:\(?e\)?)?ko)\s+"
    r"(?:(\d{1,2})\.?\s+([^\W\d_]{3,})|([^\W\d_]{3,})\.?\s+(\d{1,2})(?:\((?:an?|ean)\)|(?:an?|ean)?\b))"
)
"""`2026 წლის 20 ნოემბერი`, `2026(e)ko azaroaren 20a`: a word between the year and the day."""
_BUDDHIST = re.compile(
    r"(?<=\d[./-])2[45]\d\d(?!\d)|(?<!\d)2[45]\d\d(?=([./-])\d{1,2}\1\d{1,2}(?!\d))|(?<=[^\W\d]{3}[\s.,-])2[45]\d\d(?=$|[\s,])"
)
"""`20/11/2569`, `2569-11-20`, `20 Nov 2569`."""
_PERSIAN_NUMBERS = re.compile(r"(?<!\d)(1[34]\d\d)([./-])(\d{1,2})\2(\d{1,2})(?!\d)")
_PERSIAN_DAY_FIRST = re.compile(r"(?<!\d)(\d{1,2})([./-])(\d{1,2})\2(1[34]\d\d)(?!\d)")
_MONGOLIAN = re.compile(r"(\d{4})\s?оны\s(\d{1,2})(?:-р)?\s?сарын\s(\d{1,2})")
_SIGNS = "零一二三四五六七八九"
_CHINESE = re.compile(r"([〇零一二三四五六七八九]{4})年([一二三四五六七八九十]{1,2})月([一二三四五六七八九十]{1,3})日")
_VIETNAMESE_NUMBERS = {
    word: str(number) for number, words in enumerate(TABLES["months_of"]["vietnam"], 1) for word in words.split("|")
}
_VIETNAMESE_WORD = re.compile(
    rf"(?<=tháng )(?:{'|'.join(sorted(_VIETNAMESE_NUMBERS, key=len, reverse=True))})(?!\w)", re.IGNORECASE
)
_TWICE = re.compile(r"(?<![^\W\d_])([^\W\d_]{3,20}) ?/ ?\1(?!\w)")
_GERESH = re.compile("(?<=[\u05d0-\u05ea])[׳'](?!\\w)")
_DOTTED_IN_THAI = re.compile(r"(\d)\.(\d\d)(?=\s*น)")
_TIME_IN_THAI = re.compile(r"(\d)\s*น\.?(?!\w)|เวลา\s*")
_TIME_IN_PERSIAN = re.compile(r"(?<!\s)\s*+(?:،|ساعت|-)\s*")
_WEEKDAY_BEFORE = re.compile(r"^(?:วัน)?[\u0e01-\u0e5b]+(?:ที่)?\s+(?=\d)|^[\u0600-\u06ff\u200c\s]++(?:,\s++)?(?<=\s)(?=\d)")


def _in_common_era(text: str) -> str:
    """Convert a date of another calendar to the common calendar; any other text is unchanged. Digits are ASCII's."""
    if "th" in text.lower():
        text = _VIETNAMESE_WORD.sub(lambda found: _VIETNAMESE_NUMBERS[found[0].lower()], text)
        text = _VIETNAMESE_MONTH.sub(r"\3-\1-\2", _VIETNAMESE.sub(r"\3-\2-\1", text))
    text = _YEAR_BEFORE.sub(lambda found: f"{found[2] or found[5]} {found[3] or found[4]} {found[1]}", text)
    text = _PERSIAN_DAY_FIRST.sub(r"\4\2\3\2\1", _BUDDHIST.sub(lambda found: str(int(found[0]) - 543), text))
    if (numbers := _PERSIAN_NUMBERS.search(text)) is not None:
        text = _persian(text, numbers, (int(numbers[1]), int(numbers[3]), int(numbers[4])))
    if not text.isascii():
        text = _ERA.sub(lambda found: f"{_ERAS[found[1]] + (1 if found[2] == '元' else int(found[2]))}年", text)
        text = _OF_TAIWAN.sub(lambda found: str(int(found[0]) + 1911), text)
        text = _MONGOLIAN.sub(r"\1-\2-\3", _CHINESE.sub(_in_digits, _GERESH.sub("", text)))
        text = _TIME_IN_THAI.sub(r"\1", _DOTTED_IN_THAI.sub(r"\1:\2", text))
        text = _MONTH_FIRST.sub(r"\2 \1 \3", text)
        if (thai := _THAI_DAY.search(text)) is not None:
            return _thai(text, thai)
        if (persian := _PERSIAN_DAY.search(text)) is not None:
            return _persian(text, persian, (int(persian[3]), _PERSIAN_MONTHS[persian[2]], int(persian[1])))
        text = _TWICE.sub(r"\1", _ARABIC_MONTH.sub(lambda found: _EGYPTIAN[_ARABIC_MONTHS[found[0]] - 1], text))
    return _LETTERED.sub(lambda found: f"{_ERAS[_LETTERS[found[1]]] + int(found[2])}年{found[3]}月{found[4]}日", text)


def _in_digits(found: re.Match[str]) -> str:
    """Return `2026-11-20` of `二〇二六年十一月二十日`."""
    year = "".join(str(max(0, _SIGNS.find(sign))) for sign in found[1])
    return "-".join((year, *(str(of_tens(part)) for part in found.groups()[1:])))


def of_tens(text: str) -> int:
    """Return the number in Chinese signs, below 100: `十五`, `二十`."""
    tens, ten, ones = text.rpartition("十")
    return (10 * (_SIGNS.find(tens) if tens else 1) if ten else 0) + (_SIGNS.find(ones) if ones else 0)


def common(text: str) -> str:
    """Return a date of any script and calendar in the forms that `dates_in_text` finds."""
    text = _NUMBER.sub(_ascii, DIRECTIONS.sub("", text))
    text = _in_common_era(text)
    english = in_english(text)
    if english != text or (known := in_known_words(text)) == text:  # as most texts of a page
        return english
    return in_english(known)


def _ascii(found: re.Match[str]) -> str:
    return "".join(str(unicodedata.decimal(digit)) for digit in found[0])


def _thai(text: str, found: re.Match[str]) -> str:
    month = _THAI_MONTHS[found[2]] - 1
    written = f"{found[1]} {_THAI[month].partition('|')[0]} "
    if found[3]:
        year = int(found[3])
        year += 2500 if _SHORT_FROM <= year < 100 else 2000 if year < 100 else 0
        written = f"{found[1]} {_ENGLISH[month]} {year - 543 if year >= 2400 else year} "
    text = f"{text[: found.start()]}{written}{text[found.end() :]}"
    return _WEEKDAY_BEFORE.sub("", text).strip()


def _persian(text: str, found: re.Match[str], day: tuple[int, int, int]) -> str:
    year, *month_and_day = day
    known = _of_iran(year + (0 if year > 99 else 1400 if year < 30 else 1300), *month_and_day)
    if known is None:
        return text
    written = f"{known.day} {_ENGLISH[known.month - 1]} {known.year}"
    behind = _TIME_IN_PERSIAN.sub(" ", text[found.end() :], count=1)
    return _WEEKDAY_BEFORE.sub("", f"{text[: found.start()]}{written}{behind}").strip()


def _of_iran(year: int, month: int, day: int) -> date | None:
    """Return a day of the Solar Hijri calendar; None where it does not exist. Leap years are those of the cycle of 33 years."""
    if not (1300 <= year <= 1420 and 1 <= month <= 12 and 1 <= day <= (31 if month < 7 else 30)):
        return None
    years = year + 1595
    days = 365 * years + years // 33 * 8 + (years % 33 + 3) // 4 + day
    days += (month - 1) * 31 if month < 7 else (month - 7) * 30 + 186
    return date.fromordinal(days + _TO_ORDINAL)


_TO_ORDINAL = date(2021, 3, 21).toordinal() - (365 * 2995 + 2995 // 33 * 8 + (2995 % 33 + 3) // 4 + 1)  # the 1st of 1400


_NUMBER = re.compile(r"\d+")
