"""Filters of events: keywords, regular expressions, fields, `and`, `or`, `not`, as docs/events.md has them.

    "price drop" or /rtx ?50\\d0/ and not author:spambot
    显卡 and (site:demo or forum:12) and type:new

A keyword is a whole word where the script puts spaces between words, and anywhere in a text where it does not. A regular
expression that takes longer than 50 ms for one text raises Undecided: the author of a page must not be able to hide a post, or
to stop the other outputs, by a text.
"""

from __future__ import annotations

import re
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from typing import Any

import regex

from forum_reader.definition.selectors import PatternError, compile_pattern
from forums.storage.read.event_reader import Event
from forums.storage.write.changes import PAST_WORDS, ChangeKind, FleetKind, FleetRow
from redis_components.errors import ConfigError, did_you_mean

_NO_SPACES = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"  # scripts without spaces between words
_LETTER = rf"[[\p{{L}}\p{{N}}\p{{M}}_]--[{_NO_SPACES}]]"  # what a neighbour must not be: it would make another word
_IS_LETTER = regex.compile(rf"(?V1){_LETTER}")


def folded(text: str) -> str:
    """Fold a text for comparison: full-width and half-width forms as one, without case."""
    return text.casefold() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


@lru_cache(maxsize=4096)
def keyword(words: str) -> regex.Pattern[str]:
    """Compile a keyword for a folded text. Spaces match any white space; `*` at the end stands for the rest of the word.

    `cat` is found in "a cat, two" and in "我的cat很好", not in "concatenate"; `显卡` in "新显卡到货". The cost is linear in
    the text: the pattern has no repetition of a repetition.
    """
    word = folded(words.strip())
    open_end = word.endswith("*")
    word = word.rstrip("*").rstrip()
    parts = r"\s+".join(re.escape(part) for part in word.split())
    before = rf"(?<!{_LETTER})" if _IS_LETTER.match(word[:1]) else ""
    after = rf"(?!{_LETTER})" if not open_end and _IS_LETTER.match(word[-1:]) else ""
    return regex.compile(f"(?V1){before}{parts}{after}")


LONGEST = 4000  # characters of an expression
DEEPEST = 50  # parentheses and `not`s within one another
LONGEST_TEXT = 200_000  # characters that are searched
REGEX_S = 0.05
_SEARCHED = ("title", "text", "author", "url")
_EXACT = ("site", "forum", "thread", "type", "row")
ROWS = ("post", "comment", *map(str, FleetRow))
_VALUES = {"type": (*map(str, ChangeKind), *map(str, FleetKind)), "row": ROWS}


class Undecided(Exception):
    """A regular expression took too long for this text."""


class JudgingTime:
    """CPU time of one output's rules in one round: in all, and for each site's texts in regular expressions."""

    def __init__(self, whole_s: float = float("inf"), clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._ends_at = clock() + whole_s
        self._left_s: defaultdict[str, float] = defaultdict(lambda: whole_s / 5)
        self.undecided: Counter[tuple[str, str]] = Counter()  # (rule, site) -> events

    @property
    def over(self) -> bool:
        """True once all of it is spent."""
        return self._clock() >= self._ends_at

    def search(self, pattern: Any, text: str, site: str) -> bool:
        """Return True if a regular expression matches in a text of the site. Raises Undecided."""
        if (left_s := self._left_s[site]) <= 0:
            raise Undecided
        begun = self._clock()
        try:
            return pattern.search(text, timeout=min(REGEX_S, left_s), concurrent=False) is not None
        except TimeoutError:
            raise Undecided from None
        finally:
            self._left_s[site] -= self._clock() - begun


class Subject:
    """An event as input of filters: each text is folded once, for the first keyword."""

    def __init__(self, event: Event, judging: JudgingTime | None = None) -> None:
        self.event = event
        self.judging = judging or JudgingTime()

    def raw(self, field: str) -> str:
        """Return a field's text; for `any` title and text."""
        if field == "any":
            return f"{self.event.title or ''}\n{self.event.text or ''}"[:LONGEST_TEXT]
        return (getattr(self.event, field) or "")[:LONGEST_TEXT]

    @cached_property
    def _folded(self) -> dict[str, str]:
        return {}

    def folded(self, field: str) -> str:
        """Return a field's text without case and width."""
        if field not in self._folded:
            self._folded[field] = folded(self.raw(field))
        return self._folded[field]


Filter = Callable[[Subject], bool]
"""A parsed expression: returns True if the event matches. Raises Undecided."""


def parse(text: str) -> Filter:
    """Parse an expression. Raises ConfigError with the position of an error."""
    if len(text) > LONGEST:
        raise ConfigError(f"a filter has {LONGEST:,} characters at most, this one {len(text):,}: write several rules")
    return _Parser(text).whole()


_TOKEN = regex.compile(
    r"""\s*(?:(?P<open>\()|(?P<close>\))
    |(?P<field>[a-z]+):(?=[^\s)])
    |"(?P<quoted>(?:[^"\\]|\\.)*)"
    |/(?P<regex>(?:[^/\\]|\\.)+)/
    |(?P<word>[^\s()"]+))""",
    regex.VERBOSE,
)


class _Parser:
    """Recursive descent; `_depth` bounds it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str, int]] = []
        place = 0
        while text[place:].strip():
            found = _TOKEN.match(text, place)
            if found is None:
                raise self._wrong(place, 'a " is not closed')
            kind = str(found.lastgroup)
            value = found[kind]
            operator = kind == "word" and value.lower() in ("and", "or", "not")
            self._tokens.append((value.lower() if operator else kind, value, found.start(kind)))
            place = found.end()
        self._at = self._depth = 0

    def whole(self) -> Filter:
        if not self._tokens:
            raise ConfigError("a filter is empty: write a keyword, for example")
        result = self._either()
        if self._at < len(self._tokens):
            raise self._wrong(self._tokens[self._at][2], "a ( is missing before it")
        return result

    def _next(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else "end"

    def _either(self) -> Filter:
        parts = [self._all()]
        while self._next() == "or":
            self._at += 1
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else lambda subject: any(part(subject) for part in parts)

    def _all(self) -> Filter:
        parts = [self._negated()]
        while self._next() not in ("or", "close", "end"):
            self._at += self._next() == "and"
            parts.append(self._negated())
        return parts[0] if len(parts) == 1 else lambda subject: all(part(subject) for part in parts)

    def _negated(self) -> Filter:
        kind, value, place = self._tokens[self._at] if self._at < len(self._tokens) else ("end", "", len(self._text))
        self._at += 1
        if kind in ("not", "open"):
            self._depth += 1
            if self._depth > DEEPEST:
                raise self._wrong(place, f"more than {DEEPEST} levels")
            inner = self._negated() if kind == "not" else self._either()
            if kind == "open" and self._next() != "close":
                raise self._wrong(place, "this ( is not closed")
            self._at += kind == "open"
            self._depth -= 1
            return (lambda subject: not inner(subject)) if kind == "not" else inner
        if kind == "field":
            return self._of_field(value, place)
        return self._searched("any", kind, value, place)

    def _of_field(self, field: str, place: int) -> Filter:
        if field not in (*_SEARCHED, *_EXACT):
            hint = did_you_mean(field, [*_SEARCHED, *_EXACT])
            raise self._wrong(place, f"there is no field {field}{hint}; to look for a colon, write the whole in quotes")
        kind, value, at = self._tokens[self._at]
        self._at += 1
        if field in _SEARCHED:
            return self._searched(field, kind, value, at)
        if kind not in ("word", "quoted"):
            raise self._wrong(at, f"{field}: needs a word or a text in quotes")
        wanted = _unescaped(value) if kind == "quoted" else value
        if field in _VALUES and wanted not in (*_VALUES[field], *PAST_WORDS):
            raise self._wrong(at, f"{field} is one of {', '.join(_VALUES[field])}{did_you_mean(wanted, _VALUES[field])}")
        return lambda subject: getattr(subject.event, field) == wanted

    def _searched(self, field: str, kind: str, value: str, place: int) -> Filter:
        if kind == "regex":
            pattern = self._compiled(value, place)
            return lambda subject: subject.judging.search(pattern, subject.raw(field), subject.event.site)
        if kind not in ("word", "quoted"):
            raise self._wrong(place, "a keyword, /…/ or ( is missing here")
        words = _unescaped(value) if kind == "quoted" else value
        if not folded(words).strip(" *\t\n"):
            raise self._wrong(place, "a keyword is empty")
        found = keyword(words)
        return lambda subject: found.search(subject.folded(field)) is not None

    def _compiled(self, value: str, place: int) -> Any:
        try:
            return compile_pattern(value.replace("\\/", "/"), regex.IGNORECASE | regex.FULLCASE)
        except PatternError as error:
            raise self._wrong(place, f"the regular expression is wrong: {error}") from None

    def _wrong(self, place: int, what: str) -> ConfigError:
        shown = self._text[place : place + 30] or "its end"
        return ConfigError(f"filter {self._text!r:.200}: at {shown!r}: {what}")


def _unescaped(quoted: str) -> str:
    return str(regex.sub(r"\\(.)", r"\1", quoted))


_DAY, _MINUTE = timedelta(days=1), timedelta(minutes=1)  # times of posts are often shown without seconds


def is_old(event: Event, since: datetime) -> bool:
    """Return True for a post that is new to the database, and was written before. One without a date counts as new, and so does
    one of the same day whose date has no time: on a whole or half hour of UTC, which is midnight in its zone.
    """
    at = event.created_at
    if at is None or event.row not in ("post", "comment") or event.type not in (ChangeKind.NEW, ChangeKind.CORRECTED):
        return False
    is_day = at.minute % 30 == at.second == at.microsecond == 0
    return at < since - (_DAY if is_day else _MINUTE)
