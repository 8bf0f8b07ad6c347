"""Dates that dateparser misreads or does not read: month and day as numbers (`11-21 08:03`), "just now" in a word, "2.87 years
ago", and dates in Chinese, Japanese and Korean (`11月21日 08:03`, `昨晚 20:11`, `3分鐘前`, `发表于 昨天 12:11`, `어제 08:00`).

The words before and after a date stand without a space in these three languages, so a date is searched within the text. Chinese
is read in its simplified and its traditional signs.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import datetime, time, timedelta

from .words import TABLES, of_half

_MONTH_DAY = re.compile(
    r"(\d{1,2})([-/.])\s?(\d{1,2})(\.?)"
    r"(?:[\s,T]+(?:[^\W\d]{1,3}\.?\s+)?(\d{1,2})[:h](\d{2})(?::(\d{2}))?\s*(?:uhr|ч\.?)?)?",
    re.IGNORECASE,
)
_JUST_NOW = frozenset(TABLES["now"]["alone"])


def month_day(text: str, now: datetime, *, day_first: bool, year_first: bool) -> datetime | None:
    """Read `11-21 08:03`, `21.11. um 8:03`: the latest such time that is not in the future. Where both orders give a day, the
    language decides; a point stands in dates of its order only.
    """
    match = _MONTH_DAY.fullmatch(text)
    if match is None or (match[2] == "." and not match[4] and match[5] is None):  # 10.15 may be a time
        return None
    first, second = int(match[1]), int(match[3])
    first_is_day = first > 12 or (second <= 12 and not year_first and (day_first or match[2] == "."))
    month, day = (second, first) if first_is_day else (first, second)
    return latest(now, month, day, int(match[5] or 0), int(match[6] or 0), int(match[7] or 0))


def latest(now: datetime, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> datetime | None:
    """Return the latest time of this month, day and time that is not after `now`; None where no calendar has it."""
    for year in range(now.year, now.year - 9, -1):  # 8 years lie between leap days at most
        try:
            found = datetime(year, month, day, hour, minute, second)
        except ValueError:
            continue
        if found <= now:
            return found
    return None


_DIRECTIVE = re.compile(r"%(.)", re.DOTALL)


def year_is_missing(form: str) -> bool:
    """Return True if a form in `strptime`'s letters has no year, neither alone nor within a whole date or timestamp."""
    return not {"Y", "y", "G", "c", "x", "s"}.intersection(_DIRECTIVE.findall(form))


def check_form(form: str) -> str:
    """Return `form`, if dates can be read by it. Raises ValueError."""
    sample = datetime(2000, 2, 29, 23, 58, 57)
    letters = set(_DIRECTIVE.findall(form)) - {"%"}
    if not letters:
        raise ValueError(f"formats: {form!r} has no letters of a date: write one as '%d.%m.%Y, %H:%M'")
    try:
        datetime.strptime(sample.strftime(form), form)
    except ValueError as exc:
        if "bad directive" in str(exc) or "stray" in str(exc) or "ISO" in str(exc):
            raise ValueError(f"formats: {form!r} cannot be read: {exc}") from None
    if year_is_missing(form) and not letters & {"m", "b", "B"} and letters & {"d", "j", "a", "A", "w", "u"}:
        raise ValueError(f"formats: {form!r} has a day without a month: leave `formats` out, or read the month, too")
    return form


def just_now(text: str, now: datetime) -> datetime | None:
    """Return `now`, where the text means that, or its last words do (`Отправлено только что`)."""
    words = text.lower().rstrip(".!").split()
    tails = (" ".join(words[-count:]) for count in range(2, 5) if count < len(words))
    return now if " ".join(words) in _JUST_NOW or any(tail in _JUST_NOW for tail in tails) else None


EAST = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""A sign of one of the three languages."""

_SIMPLE = str.maketrans("鐘剛後個週時點兩間號幾億萬", "钟刚后个周时点两间号几亿万")
_NUMERAL = r"(?:\d{1,9}(?:\.\d{1,9})?|[半一两二三四五六七八九十几数]{1,4}|[한두세네몇]|일(?=\s*년))"
_NUMERALS = {
    "半": 0.5, "一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10,
    "几": 3, "数": 3, "한": 1, "일": 1, "두": 2, "세": 3, "네": 4, "몇": 3,
}  # fmt: skip
_UNITS = {
    "秒": 1, "초": 1, "分": 60, "분": 60, "小时": 3600, "时": 3600, "钟头": 3600, "시간": 3600,
    "天": 86400, "日": 86400, "일": 86400, "周": 604800, "星期": 604800, "礼拜": 604800, "주": 604800, "주일": 604800,
}  # fmt: skip
_AGO = re.compile(
    rf"(?<![\d.])({_NUMERAL})\s*+(?:(?:个|か|ヶ|カ)\s*+)?(半)?(?:个)?"
    r"(秒|초|分|분|小时|时间|时|钟头|시간|天|日|일|周间|周|星期|礼拜|주일|주|月|개월|달|年|년)(半)?(?:钟|间)?\s*+(?:多\s*+)?(?:以|之)?(?:前|전)"
)
_DAYS = {
    "刚刚": 0, "今天": 0, "今日": 0, "今晚": 0, "今早": 0, "今晨": 0, "本日": 0, "きょう": 0, "오늘": 0,
    "昨天": -1, "昨日": -1, "昨晚": -1, "昨夜": -1, "きのう": -1, "어제": -1,
    "前天": -2, "前日": -2, "一昨日": -2, "おととい": -2, "그저께": -2, "그제": -2, "大前天": -3,
}  # fmt: skip
_WEEKDAY = {
    sign: day
    for day, signs in enumerate(["一月월", "二火화", "三水수", "四木목", "五金금", "六土토", "日天일"])
    for sign in signs
}
_NOW = re.compile(r"刚刚|刚才|方才|たった今|たったいま|ただいま|방금|지금|几秒前|数秒前")
_DAY = (
    r"(?:(?P<year>\d{4}|\d{2})\s*[年년./-]\s*)?(?P<month>\d{1,2})\s*[月월./-]\s*(?P<day>\d{1,2})(?:\s*[日号일])?\.?"
    rf"|(?P<word>{'|'.join(sorted(_DAYS, key=len, reverse=True))})"
    r"|(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])|(?P<weekday_ja>[月火水木金土日])曜日?|(?P<weekday_ko>[월화수목금토일])요일"
)
_TIME = (
    r"(?:(?P<half>[AaPp])[Mm]\s*)?(?P<hour>\d{1,2})\s*(?:[:时시]|点)"
    r"(?:\s*(?P<minute>\d{1,2})(?:\s*[分분])?(?:[:\s]?\s*(?P<second>\d{1,2})(?:\s*[秒초])?)?)?"
)
_WEEKDAY_BEHIND = r"\s*[(（]?(?:周|星期)?[一二三四五六日天月火水木金土월화수목금토][)）]?(?:曜日)?"
_WHOLE = re.compile(rf"(?<![\d.:])(?:{_DAY})(?:{_WEEKDAY_BEHIND})?(?:[\s,，·]*+(?:的)?{_TIME})?(?![\d.])")
_EVENING = frozenset({"今晚", "昨晚", "昨夜"})


def read(text: str, now: datetime) -> datetime | None:
    """Return the time in a text, relative to `now`; None without a date, or where other numbers stand next to it."""
    text = text.translate(_SIMPLE).replace("하루", "1일").replace("이틀", "2일")
    ago = _AGO.search(text)
    if ago is not None and not _has_digits_around(text, ago):
        return _ago(ago, now)
    whole = _WHOLE.search(text)
    if whole is not None and not _has_digits_around(text, whole):
        return _whole(whole, now)
    return now if _NOW.search(text) and not re.search(r"\d", text) else None


def _has_digits_around(text: str, match: re.Match[str]) -> bool:
    return re.search(r"\d", text[: match.start()] + text[match.end() :]) is not None


def _ago(match: re.Match[str], now: datetime) -> datetime | None:
    count = _count(match[1])
    if count is None:
        return None
    count += 0.5 if match[2] or match[4] else 0
    unit = match[3]
    if unit in ("月", "개월", "달", "年", "년"):
        months = count * (12 if unit in ("年", "년") else 1)
        return months_before(now, int(months)) if months == int(months) else now - timedelta(days=30.436875 * months)
    name = next(name for name in sorted(_UNITS, key=len, reverse=True) if unit.startswith(name))
    return now - timedelta(seconds=count * _UNITS[name])


def _count(text: str) -> float | None:
    if text[0].isdigit():
        return float(text)
    if text in _NUMERALS:
        return _NUMERALS[text]
    if "十" not in text or len(text) > 3:
        return None
    tens, _, ones = text.partition("十")
    try:
        return _NUMERALS.get(tens, 1) * 10 + (_NUMERALS[ones] if ones else 0)
    except KeyError:
        return None


def _whole(match: re.Match[str], now: datetime) -> datetime | None:
    at = _time(match, evening=match["word"] in _EVENING) if match["hour"] else time()
    if at is None:
        return None
    if match["month"]:
        if not match["year"]:
            return latest(now, int(match["month"]), int(match["day"]), at.hour, at.minute, at.second)
        year = int(match["year"]) + (0 if len(match["year"]) == 4 else 2000)
        try:
            return datetime.combine(datetime(year, int(match["month"]), int(match["day"])), at)
        except ValueError:
            return None
    if match["word"]:
        if match["word"] == "刚刚":
            return now
        return datetime.combine(now + timedelta(days=_DAYS[match["word"]]), at)
    weekday = _WEEKDAY[match["weekday"] or match["weekday_ja"] or match["weekday_ko"]]
    found = datetime.combine(now - timedelta(days=(now.weekday() - weekday) % 7), at)
    return found if found <= now else found - timedelta(days=7)


def _time(match: re.Match[str], *, evening: bool) -> time | None:
    hour = int(match["hour"])
    if match["half"] or (evening and hour >= 5):
        hour = of_half(hour, "am" if match["half"] in ("A", "a") else "pm")
    try:
        return time(hour, int(match["minute"] or 0), int(match["second"] or 0))
    except ValueError:
        return None


def months_before(now: datetime, months: int) -> datetime:
    """Return the time of some months before; the 31st of a month that has fewer days is its last. Raises ValueError."""
    year, month = divmod(now.year * 12 + now.month - 1 - months, 12)
    return now.replace(year=year, month=month + 1, day=min(now.day, monthrange(year, month + 1)[1]))
