"""Years of other calendars, converted to the common one: Japanese eras (`令和8年`, `R8.11.21`), the Republic of
China's (`民國115年`), the Buddhist era of Thailand (`21 พ.ย. 2569`) and the Solar Hijri calendar of Iran (`30 آبان 1405`).
Arabic months have other names in the Levant and in the Maghreb; dateparser has only those of Egypt.
"""

from __future__ import annotations

import re
from datetime import date

_ERAS = {"明治": 1867, "大正": 1911, "昭和": 1925, "平成": 1988, "令和": 2018, "民國": 1911, "民国": 1911}  # their year 0
_ERA = re.compile(rf"({'|'.join(_ERAS)})\s*(元|\d{{1,3}})\s*年")
_LETTERS = {"S": "昭和", "H": "平成", "R": "令和"}
_LETTERED = re.compile(r"(?<![A-Za-z\d])([SHR])(\d{1,2})[./-](\d{1,2})[./-](\d{1,2})(?![\d.])")
_ENGLISH = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_THAI = (
    "มกราคม|ม.ค.", "กุมภาพันธ์|ก.พ.", "มีนาคม|มี.ค.", "เมษายน|เม.ย.", "พฤษภาคม|พ.ค.", "มิถุนายน|มิ.ย.",
    "กรกฎาคม|ก.ค.", "สิงหาคม|ส.ค.", "กันยายน|ก.ย.", "ตุลาคม|ต.ค.", "พฤศจิกายน|พ.ย.", "ธันวาคม|ธ.ค.",
)  # fmt: skip
_PERSIAN = (
    "فروردین", "اردیبهشت", "خرداد", "تیر", "مرداد|امرداد", "شهریور", "مهر", "آبان", "آذر", "دی", "بهمن", "اسفند",
)  # fmt: skip
_EGYPTIAN = ("يناير", "فبراير", "مارس", "أبريل", "مايو", "يونيو", "يوليو", "أغسطس", "سبتمبر", "أكتوبر", "نوفمبر", "ديسمبر")
_OTHER_ARABIC = (
    "كانون الثاني|كانون ثاني|جانفي", "شباط|فيفري", "آذار|اذار", "نيسان|أفريل|افريل", "أيار|ايار|ماي", "حزيران|جوان",
    "تموز|جويلية", "آب|اب|أوت|اوت", "أيلول|ايلول", "تشرين الأول|تشرين الاول|تشرين أول", "تشرين الثاني|تشرين ثاني",
    "كانون الأول|كانون الاول|كانون أول",
)  # fmt: skip


def _numbers(names: tuple[str, ...]) -> dict[str, int]:
    return {name: number for number, all_names in enumerate(names, 1) for name in all_names.split("|")}


def _with_months(names: dict[str, int], year: str) -> re.Pattern[str]:
    months = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?<!\d)(\d{{1,2}})\s*({months})[\s,،]*{year}(?!\d)")


_SHORT_FROM = 43  # of two digits, a year of the Buddhist era: 2543 is 2000
_THAI_MONTHS, _PERSIAN_MONTHS = _numbers(_THAI), _numbers(_PERSIAN)
_ARABIC_MONTHS = _numbers(_OTHER_ARABIC)
_ARABIC_MONTH = re.compile(rf"(?<!\w)(?:{'|'.join(_ARABIC_MONTHS)})(?!\w)")
_THAI_DAY = _with_months(_THAI_MONTHS, r"(?:(?:พ\.?\s?ศ\.?\s*)?(\d{4}|\d\d(?![:.]\d)))?")
_PERSIAN_DAY = _with_months(_PERSIAN_MONTHS, r"(\d{4})")
_THAI_NUMBERS = re.compile(r"(?<!\d)(\d{1,2})([./-])(\d{1,2})\2(2[45]\d\d)(?!\d)")
_PERSIAN_NUMBERS = re.compile(r"(?<!\d)(1[34]\d\d)([./-])(\d{1,2})\2(\d{1,2})(?!\d)")
_TIME_IN_THAI = re.compile(r"(\d)\s*น\.?(?!\w)|เวลา\s*")
_TIME_IN_PERSIAN = re.compile(r"(?<!\s)\s*+(?:،|ساعت|-)\s*")
_WEEKDAY_BEFORE = re.compile(r"^(?:วัน)?[\u0e01-\u0e5b]+(?:ที่)?\s+(?=\d)|^[\u0600-\u06ff\u200c\s]++(?:,\s++)?(?<=\s)(?=\d)")


def in_common_era(text: str, language: str | None) -> str:
    """Convert a date of another calendar to the common calendar; any other text is unchanged. Digits are ASCII's."""
    base = (language or "").partition("-")[0]
    if not text.isascii():
        text = _ERA.sub(lambda found: f"{_ERAS[found[1]] + (1 if found[2] == '元' else int(found[2]))}年", text)
        if (thai := _THAI_DAY.search(text)) is not None:
            return _thai(text, thai)
        if (persian := _PERSIAN_DAY.search(text)) is not None:
            return _persian(text, persian, (int(persian[3]), _PERSIAN_MONTHS[persian[2]], int(persian[1])))
        if base in ("ar", ""):
            text = _ARABIC_MONTH.sub(lambda found: _EGYPTIAN[_ARABIC_MONTHS[found[0]] - 1], text)
    if base == "ja":
        return _LETTERED.sub(lambda found: f"{_ERAS[_LETTERS[found[1]]] + int(found[2])}年{found[3]}月{found[4]}日", text)
    if base == "th":
        return _THAI_NUMBERS.sub(lambda found: f"{found[1]}{found[2]}{found[3]}{found[2]}{int(found[4]) - 543}", text)
    if base == "fa" and (numbers := _PERSIAN_NUMBERS.search(text)) is not None:
        return _persian(text, numbers, (int(numbers[1]), int(numbers[3]), int(numbers[4])))
    return text


def _thai(text: str, found: re.Match[str]) -> str:
    month = _THAI_MONTHS[found[2]] - 1
    written = f"{found[1]} {_THAI[month].partition('|')[0]} "
    if found[3]:
        year = int(found[3])
        year += 2500 if _SHORT_FROM <= year < 100 else 2000 if year < 100 else 0
        written = f"{found[1]} {_ENGLISH[month]} {year - 543 if year >= 2400 else year} "
    text = f"{text[: found.start()]}{written}{text[found.end() :]}"
    return _WEEKDAY_BEFORE.sub("", _TIME_IN_THAI.sub(r"\1", text)).strip()


def _persian(text: str, found: re.Match[str], day: tuple[int, int, int]) -> str:
    known = _of_iran(*day)
    if known is None:
        return text
    written = f"{known.day} {_ENGLISH[known.month - 1]} {known.year}"
    behind = _TIME_IN_PERSIAN.sub(" ", text[found.end() :], count=1)
    return _WEEKDAY_BEFORE.sub("", f"{text[: found.start()]}{written}{behind}").strip()


def _of_iran(year: int, month: int, day: int) -> date | None:
    """Return a day of the Solar Hijri calendar; None where it does not exist. Leap years are those of the cycle of 33 years."""
    if not (1300 <= year <= 1500 and 1 <= month <= 12 and 1 <= day <= (31 if month < 7 else 30)):
        return None
    years = year + 1595
    days = 365 * years + years // 33 * 8 + (years % 33 + 3) // 4 + day
    days += (month - 1) * 31 if month < 7 else (month - 7) * 30 + 186
    return date.fromordinal(days + _TO_ORDINAL)


_TO_ORDINAL = date(2021, 3, 21).toordinal() - (365 * 2995 + 2995 // 33 * 8 + (2995 % 33 + 3) // 4 + 1)  # the 1st of 1400
