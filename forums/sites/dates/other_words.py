"""Words of dates that dateparser lacks or misreads, and their replacements: `een uur geleden` as `1 uur geleden`, `eilen klo
14.05` as `eilen 14:05`, `לפני שעתיים` as `לפני 2 שעות`.
"""

from __future__ import annotations

import re
from functools import lru_cache

_AT = re.compile(
    r"(?<!\S)(?:saat|klo|kl\.?|jam|pukul|lúc|godz\.?|الساعة|ساعت|בשעה|เวลา)\s*(?=\d{1,2}[:.][0-5]\d(?!\d))", re.IGNORECASE
)
_CLOCK = re.compile(r"(?<![\w.,:/-])([01]?\d|2[0-3])(?:h|(?<=[^\W\d]\s\d)\.|(?<=[^\W\d]\s\d\d)\.)([0-5]\d)$", re.IGNORECASE)
_WORDS = {
    "ar": {
        "دقيقتين": "2 دقيقة", "ساعتين": "2 ساعة", "يومين": "2 يوم", "[أا]سبوعين": "2 أسبوع", "شهرين": "2 شهر",
        "سنتين|عامين": "2 سنة", "[أا]سابيع": "أسبوع", "[أا]شهر|شهور": "شهر", "سنوات|سنين|[أا]عوام": "سنة",
        "[أا]ول [أا]مس|[أا]مس ال[أا]ول": "قبل 2 يوم", r"(?:منذ|قبل) (?=(?:ثانية|دقيقة|ساعة|يوم|أسبوع|شهر|سنة|عام)\b)": "قبل 1 ",
    },
    "bg": {"завчера": "преди 2 дни"},
    "cs": {"dnem": "1 dnem"},
    "da": {"i forgårs": "2 dage siden"},
    "el": {"προχ[θτ][έε]ς": "πριν από 2 ημέρες", r"πριν(?= \d)": "πριν από"},
    "fa": {"پریروز": "2 روز پیش", "یک": "1", "دو": "2"},
    "fi": {"toissapäivänä": "2 päivää sitten"},
    "he": {
        "דקותיים": "2 דקות", "שעתיים": "2 שעות", "יומיים": "2 ימים", "שבועיים": "2 שבועות", "חודשיים": "2 חודשים",
        "שנתיים": "2 שנים", r"לפני כ?(?=(?:דקה|שעה|יום|שבוע|חודש|שנה)\b)": "לפני 1 ",
    },
    "id": {r"se(?=(?:menit|jam)\b)": "1 "},
    "it": {r"un['’](?=\w)|un[oa]? (?=\w)": "1 "},
    "nb": {"i forgårs": "2 dager siden"},
    "nl": {"een": "1"},
    "pl": {"pół godziny": "30 minut"},
    "ro": {"alaltăieri": "acum 2 zile", "acum (?:o|un)": "acum 1"},
    "sl": {"predvčerajšnjim": "pred 2 dnevi"},
    "sv": {"i förrgår": "2 dagar sedan"},
    "th": {r"(?<=[\d ])(?:ชั่วโมง|ชม\.?)\s?": "ชั่วโมง ", "ก่อน|ที่ผ่านมา": "ที่แล้ว"},
    "tr": {"(?:evvelsi|önceki) gün": "2 gün önce"},
    "vi": {"hôm kia": "2 ngày trước", "một": "1"},
}  # fmt: skip
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
    names = [language] if language else ["ar", "el", "fa", "he", "th"]
    words = [(name, *pair) for name in names for pair in _WORDS.get(name, {}).items()]
    return tuple(
        (re.compile(text if name in _WITHIN else _WHOLE.format(text), re.IGNORECASE), known) for name, text, known in words
    )
