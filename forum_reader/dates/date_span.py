"""The part of a text that is a date: `Nov 21, 2026 9:01 am` of `Posted by ann on Nov 21, 2026 9:01 am`.

Words of the language that dateparser has, numbers and the text between them belong together; any other word ends a stretch.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from typing import Any

_TOKEN = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+")
_ESCAPED = re.compile(r"\\[a-zA-Z0-9]")
_COUNT_BEHIND = re.compile(r"(?<![\s,;|•·–—-])[\s,;|•·–—-]++\d{1,3}\s*$")  # the 14 of "21 Nov 2026, 14 replies"
_PART_OF_DATE = re.compile(r"(?<![\w#№])(?:\d{1,2}|\d{4})(?!\w)")
_COUNT = re.compile(r"\d{1,3}(?=\s+[^\W\d]{3})")
_LITTLE = re.compile(
    r"(?!in\b)[A-Za-z]{1,3}(?:\s*:|\.?\s+(?=\d\d?\b\.?\s*[^\W\d]{2}|\d+[./-]))"
)  # "am 21.11.2026" is not a morning in German
_EDGES = " \t\r\n\u200b\ufeff»«›‹•·|–—,:;()[]\"'"
_HALF_OF_DAY = re.compile(
    r"(?<=\d)([ \u00a0\u202f]?)([ap])\.[ \u00a0\u202f]?m\b\.?", re.IGNORECASE
)  # as words, p and m are unknown
_WIDE = re.compile(r"[^\x00-\x7f]")
_MANY = 40  # languages whose words are used where none is given: the most frequent, in dateparser's order
_TABLES = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "am", "pm", "year", "month", "week", "day",
    "hour", "minute", "second", "ago", "morning", "afternoon", "evening", "night", "relative-type", "relative-type-regex",
    "simplifications",
)  # fmt: skip
_ELAPSED = ("year", "month", "week", "day", "hour", "minute", "second", "ago", "relative-type-regex")


def plain(text: str) -> str:
    """Return the text without ornaments around it, and `2:31 p.m.` as `2:31 pm`; wide forms and digits of other scripts as ASCII
    (`２０２６`, `：`).
    """
    text = _HALF_OF_DAY.sub(r"\1\2m", text.strip(_EDGES))
    if not _WIDE.search(text):
        return text
    text = unicodedata.normalize("NFKC", text)
    return _NUMBER.sub(lambda found: "".join(str(unicodedata.decimal(digit)) for digit in found[0]), text).strip(_EDGES)


def span(text: str, language: str | None) -> str:
    """Return the stretch of `text` that holds most of a date; all of it where each word is known or none is."""
    known, skipped = _words(language)
    runs: list[tuple[int, int, int]] = []  # weight, begin, end
    run: list[tuple[int, int, int]] = []
    unknown = False
    for token in _TOKEN.finditer(text):
        word = _folded(token[0])
        weight = 2 if _is_number(word, known) else int(word in known)
        if weight or word in skipped:
            run.append((weight, token.start(), token.end()))
            continue
        unknown = True
        runs.append(_weighed(text, run, text[run[-1][2] : token.start()].isspace() if run else False))
        run = []
    if not unknown:
        return text
    weight, begins, ends = max([*runs, _weighed(text, run, False)], key=lambda found: found[0])
    if not weight or _PART_OF_DATE.search(text[:begins]) or _PART_OF_DATE.search(_COUNT.sub("", text[ends:])):
        return text  # 21 févr. 2017 13:00, where févr. is not a word of the language, must not become "2017 13:00"
    return text[begins:ends].strip(_EDGES)


def is_elapsed_time(text: str) -> bool:
    """Return True if a text is a number and words of elapsed time in some language, one of them of three letters at least: `vor
    3 Stunden`, not `3 m` or `3 posts`. Names of months do not count: `listopad` is October in Croatian, and November in Polish.
    """
    words = [_folded(word) for word in _TOKEN.findall(text)]
    known, skipped = _words(None, _ELAPSED)
    named = [word for word in words if not word.isdecimal()]
    return (
        len(named) < len(words)
        and any(len(word) > 2 and word in known for word in named)
        and all(word in known or word in skipped for word in named)
    )


def _weighed(text: str, run: list[tuple[int, int, int]], is_before_word: bool) -> tuple[int, int, int]:
    """Return a run of known words: its weight as a date, its begin and end. A number alone, or a short word, is not a date."""
    while len(run) > 1 and _LITTLE.match(text, run[0][1]):
        run = run[1:]
    weight = sum(weight for weight, begins, ends in run if weight == 2 or ends - begins > 2 or not text[begins].isascii())
    if len([1 for weight, _, _ in run if weight]) == 1 and text[run[0][1] : run[-1][2]].isdecimal():
        weight = 0
    if not weight:
        return 0, 0, 0
    begins, ends = run[0][1], run[-1][2]
    shorter = _COUNT_BEHIND.sub("", text[begins:ends]) if is_before_word else ""
    return weight, begins, begins + len(shorter) if _NUMBER.search(shorter) else ends


def _is_number(word: str, known: frozenset[str]) -> bool:
    """Return True if a token is a number, or one with a unit: `21st`, `3d`, `08h03`, `2026年`."""
    if not word[:1].isdigit():
        return False
    return all(not part or part in known or len(part) <= 2 for part in _NUMBER.split(word))


def _folded(word: str) -> str:
    """Return the word in lower case, without accents."""
    if word.isascii():
        return word.lower()
    return "".join(sign for sign in unicodedata.normalize("NFKD", word.lower()) if not unicodedata.combining(sign))


@lru_cache(maxsize=512)
def _words(language: str | None, parts: tuple[str, ...] = _TABLES) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of dates of a language, and the words that may stand between them."""
    from dateparser.data.languages_info import language_locale_dict, language_order

    if language is None:
        names = language_order[:_MANY]
    elif language in language_order:
        names = [language]
    else:
        names = [name for name, locales in language_locale_dict.items() if language in locales]
    tables = [import_module(f"dateparser.data.date_translation_data.{name}").info for name in names]
    skipped = frozenset(word for table in tables for word in _parts(table.get("skip")))
    known = frozenset({"half"}.union(word for table in tables for key in parts for word in _parts(table.get(key))))
    return known - skipped, skipped


def _parts(value: Any) -> Iterator[str]:
    """Yield the words in a table of dateparser's, some of which are regular expressions."""
    if isinstance(value, str):
        yield from (_folded(word) for word in _TOKEN.findall(_ESCAPED.sub(" ", value)))
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _parts(key if "\\1" not in key else None)
            yield from _parts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _parts(inner)
