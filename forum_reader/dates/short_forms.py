"""Dates that dateparser misreads or does not read, in every language: month and day as numbers (`11-21 08:03`), "just now" in a
word, and "2.87 years ago".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta

_MONTH_DAY = re.compile(
    r"(\d{1,2})([-/.])\s?(\d{1,2})(\.?)"
    r"(?:[\s,T]+(?:[^\W\d]{1,3}\.?\s+)?(\d{1,2})[:h](\d{2})(?::(\d{2}))?\s*(am|pm|a\.m\.|p\.m\.|uhr|ч\.?)?)?",
    re.IGNORECASE,
)
_DECIMAL = re.compile(r"(?<!\d)(\d+)[.,](\d+)(?!\d)")
_HALF = re.compile(r"\bhalf an? ", re.IGNORECASE)
_JUST_NOW = frozenset(
    {
        "just now", "right now", "a moment ago", "moments ago", "a few moments ago", "a few seconds ago", "few seconds ago",
        "seconds ago", "current ago", "just posted", "gerade eben", "eben", "soeben", "gerade jetzt", "vor wenigen sekunden",
        "vor einem moment", "vor einem augenblick", "vor kurzem", "à l'instant", "a l'instant", "il y a quelques secondes",
        "il y a un instant", "à l’instant", "maintenant", "ahora mismo", "ahora", "justo ahora", "hace un momento",
        "hace unos segundos", "hace unos instantes", "agora mesmo", "agora", "agora há pouco", "há poucos segundos",
        "há alguns segundos", "adesso", "proprio ora", "poco fa", "pochi secondi fa", "qualche secondo fa", "zojuist", "zonet",
        "net", "daarnet", "enkele seconden geleden", "только что", "сейчас", "прямо сейчас", "несколько секунд назад", "щойно",
        "зараз", "кілька секунд тому", "przed chwilą", "teraz", "kilka sekund temu", "právě teď", "před chvílí",
        "před několika sekundami", "práve teraz", "pred chvíľou", "upravo sada", "pravkar", "az önce", "şimdi", "biraz önce",
        "birkaç saniye önce", "just nu", "nyss", "alldeles nyss", "lige nu", "akkurat nå", "nettopp", "juuri nyt",
        "hetki sitten", "äsken", "éppen most", "most", "chiar acum", "acum", "μόλις τώρα", "τώρα", "току-що", "vừa xong",
        "mới đây", "baru saja", "เมื่อสักครู่", "เมื่อกี้", "الآن", "قبل لحظات", "منذ لحظات",
        "همین الان", "لحظاتی پیش", "چند لحظه پیش", "چند ثانیه پیش", "همین حالا", "לפני רגע", "הרגע", "כרגע", "ממש עכשיו",
        "לפני מספר שניות", "לפני כמה שניות", "עכשיו", "अभी",
    }
)  # fmt: skip


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
    hour = hour_of(int(match[5] or 0), (match[8] or "").lower()[:1])
    return latest(now, month, day, hour, int(match[6] or 0), int(match[7] or 0))


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


def hour_of(hour: int, half: str) -> int:
    """Return the hour of a day of 24; `half` is `a`, `p`, or neither."""
    if half in ("a", "p") and 1 <= hour <= 12:
        return hour % 12 + (12 if half == "p" else 0)
    return hour


def just_now(text: str, now: datetime) -> datetime | None:
    """Return `now`, where the text means that, or its last words do (`Отправлено только что`)."""
    words = text.lower().rstrip(".!").split()
    tails = (" ".join(words[-count:]) for count in range(2, 5) if count < len(words))
    return now if " ".join(words) in _JUST_NOW or any(tail in _JUST_NOW for tail in tails) else None


def parts_ago(text: str, now: datetime, read: Callable[[str], datetime | None]) -> datetime | None:
    """Read `2.87 years ago`, `half an hour ago`, with `read` for the same with a whole number."""
    text = _HALF.sub("0.5 ", text)
    found = _DECIMAL.findall(text)
    if len(found) != 1 or re.search(r"\d", _DECIMAL.sub("", text)):
        return None
    whole = read(_DECIMAL.sub("1", text))
    if whole is None or whole >= now or now - whole > timedelta(days=367):
        return None
    return now - (now - whole) * float(".".join(found[0]))
