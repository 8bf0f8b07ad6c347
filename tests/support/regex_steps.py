"""A regular expression as a matcher that counts its steps: those of Python's `re`, character by character, with a cap.

`re` backtracks in C, where nothing but a clock shows how far. This does the same on the tree that `re` parses, so that a test
can say how the work grows with the text, by a number that is the same on each machine and under each load.
`tests/unit/test_regex_steps.py` compares what it finds with what `re` finds.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

Step = Callable[[int], int]
"""The end of the match that begins at a place, or -1."""

_CATEGORIES = {
    sre.CATEGORY_DIGIT: r"\d",
    sre.CATEGORY_NOT_DIGIT: r"\D",
    sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w",
    sre.CATEGORY_NOT_WORD: r"\W",
}
_IGNORECASE, _DOTALL = int(re.IGNORECASE), int(re.DOTALL)  # as members of an enum they are slow
_ONE_CHARACTER = (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN)


class TooManySteps(Exception):
    """The cap is reached."""


class CharSet(dict[str, bool]):
    """The characters that one element of a pattern matches, each asked once."""

    def __init__(self, op: Any, value: Any, flags: int) -> None:
        super().__init__()
        self._op, self._value, self._flags = op, value, int(flags)

    def __missing__(self, char: str) -> bool:
        variants = {char, char.lower(), char.upper()} if self._flags & _IGNORECASE else {char}
        self[char] = found = self._matches({ord(one) for one in variants if len(one) == 1})
        return found

    def _matches(self, codes: set[int]) -> bool:
        if self._op is sre.ANY:
            return bool(self._flags & _DOTALL) or ord("\n") not in codes
        if self._op is sre.LITERAL:
            return self._value in codes
        if self._op is sre.NOT_LITERAL:
            return self._value not in codes
        negated = any(op is sre.NEGATE for op, _ in self._value)
        return negated != any(self._has(op, value, code) for op, value in self._value for code in codes)

    def _has(self, op: Any, value: Any, code: int) -> bool:
        if op is sre.LITERAL:
            return bool(value == code)
        if op is sre.RANGE:
            return bool(value[0] <= code <= value[1])
        if op is sre.CATEGORY:
            return re.fullmatch(_CATEGORIES[value], chr(code), self._flags & re.ASCII) is not None
        return False


class StepCounter:
    """One expression. `longest_bound` cuts the upper bounds of its repeats: what is linear from 500 characters on is linear from
    16 on, too, in a thousandth of the steps.
    """

    def __init__(self, pattern: str | bytes, flags: int = 0, longest_bound: int = sys.maxsize) -> None:
        self.tree = parsed(pattern, flags)
        self.steps = 0
        self._text = ""
        self._cap = 0
        self._longest_bound = longest_bound
        self._groups: dict[int, tuple[int, int]] = {}
        flags = self.tree.state.flags
        self._anywhere = self._sequence(list(self.tree), flags, lambda at: at)
        self._whole = self._sequence(list(self.tree), flags, lambda at: at if at == len(self._text) else -1)

    def run(self, mode: str, text: str, cap: int = sys.maxsize) -> list[tuple[int, int]]:
        """Spans of the matches that `match`, `fullmatch`, `search` or `finditer` finds; the number of steps is in `steps`. Raises
        TooManySteps.
        """
        self._text, self._cap, self.steps = text, cap, 0
        step = self._whole if mode == "fullmatch" else self._anywhere
        starts = iter((0,)) if mode in ("match", "fullmatch") else iter(range(len(text) + 1))
        found: list[tuple[int, int]] = []
        for start in starts:
            if found and (start < found[-1][1] or (start, start) == found[-1]):
                continue
            self._count(1)
            self._groups = {}
            if (end := step(start)) >= 0:
                found.append((start, end))
                if mode != "finditer":
                    break
        return found

    def _count(self, steps: int) -> None:
        self.steps += steps
        if self.steps > self._cap:
            raise TooManySteps

    def _sequence(self, items: Sequence[Any], flags: int, following: Step) -> Step:
        for op, value in reversed(items):
            following = self._item(op, value, flags, following)
        return following

    def _item(self, op: Any, value: Any, flags: int, following: Step) -> Step:
        if op in _ONE_CHARACTER:
            return self._character(CharSet(op, value, flags), following)
        if op is sre.SUBPATTERN:
            group, added, removed, body = value
            return self._group(group, body, (flags | added) & ~removed, following)
        if op is sre.BRANCH:
            return self._branch([(_first(one, flags), self._sequence(list(one), flags, following)) for one in value[1]])
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            return self._repeat(op, value, flags, following)
        if op is sre.POSSESSIVE_REPEAT:
            return self._atomic(self._repeat(sre.MAX_REPEAT, value, flags, lambda at: at), following)
        if op is sre.ATOMIC_GROUP:
            return self._atomic(self._sequence(list(value), flags, lambda at: at), following)
        if op in (sre.ASSERT, sre.ASSERT_NOT):
            return self._assertion(op is sre.ASSERT, value, flags, following)
        if op is sre.AT:
            return self._place(value, flags, following)
        if op is sre.GROUPREF:
            return self._reference(value, flags, following)
        raise NotImplementedError(f"{op} of a pattern")

    def _character(self, chars: CharSet, following: Step) -> Step:
        def step(at: int) -> int:
            self.steps += 1
            return following(at + 1) if at < len(self._text) and chars[self._text[at]] else -1

        return step

    def _group(self, group: int | None, body: Any, flags: int, following: Step) -> Step:
        if group is None:
            return self._sequence(list(body), flags, following)
        begun: list[int] = []

        def close(at: int) -> int:
            before, start = self._groups.get(group), begun.pop()
            self._groups[group] = (start, at)
            end = following(at)
            if end < 0:
                begun.append(start)
                if before is None:
                    del self._groups[group]
                else:
                    self._groups[group] = before
            return end

        inner = self._sequence(list(body), flags, close)

        def step(at: int) -> int:
            begun.append(at)
            end = inner(at)
            if end < 0:
                begun.pop()
            return end

        return step

    def _branch(self, ways: Sequence[tuple[CharSet | None, Step]]) -> Step:
        """Ways whose first character is another one are passed over, as `re` does."""
        by_char: dict[str, list[Step]] = {}

        def step(at: int) -> int:
            self._count(1)
            char = self._text[at : at + 1]
            if (chosen := by_char.get(char)) is None:
                chosen = by_char[char] = [way for first, way in ways if first is None or (char and first[char])]
            for way in chosen:
                if (end := way(at)) >= 0:
                    return end
            return -1

        return step

    def _repeat(self, op: Any, value: Any, flags: int, following: Step) -> Step:
        least, most, body = value
        least = min(int(least), self._longest_bound)
        if most is not sre.MAXREPEAT:
            most = min(int(most), self._longest_bound)
        if len(body) == 1 and body[0][0] in _ONE_CHARACTER:
            chars = CharSet(*body[0], flags)
            return (
                self._greedy(chars, least, most, following) if op is sre.MAX_REPEAT else self._lazy(chars, least, most, following)
            )
        return self._loop(op is sre.MAX_REPEAT, body, (least, most), flags, following)

    def _greedy(self, chars: CharSet, least: int, most: int, following: Step) -> Step:
        def step(at: int) -> int:
            text, end = self._text, at
            last = min(len(text), at + most)
            while end < last and chars[text[end]]:
                end += 1
            self._count(end - at + 1)
            while end >= at + least:
                if (found := following(end)) >= 0:
                    return found
                self._count(1)
                end -= 1
            return -1

        return step

    def _lazy(self, chars: CharSet, least: int, most: int, following: Step) -> Step:
        def step(at: int) -> int:
            end = at
            while True:
                self._count(1)
                if end >= at + least and (found := following(end)) >= 0:
                    return found
                if end == len(self._text) or end == at + most or not chars[self._text[end]]:
                    return -1
                end += 1

        return step

    def _loop(self, is_greedy: bool, body: Any, bounds: tuple[int, int], flags: int, following: Step) -> Step:
        least, most = bounds
        state = (0, -1)  # iterations so far, and where the last one began

        def more(at: int) -> int:
            nonlocal state
            before = state
            if before[0] >= most or (before[0] >= least and at == before[1]):
                return -1
            state = (before[0] + 1, at)
            end = inner(at)
            state = before
            return end

        def enough(at: int) -> int:
            return following(at) if state[0] >= least else -1

        first, second = (more, enough) if is_greedy else (enough, more)

        def loop(at: int) -> int:
            self._count(1)
            end = first(at)
            return end if end >= 0 else second(at)

        inner = self._sequence(list(body), flags, loop)

        def step(at: int) -> int:
            nonlocal state
            before, state = state, (0, -1)
            end = loop(at)
            state = before
            return end

        return step

    def _atomic(self, inner: Step, following: Step) -> Step:
        def step(at: int) -> int:
            end = inner(at)
            return following(end) if end >= 0 else -1

        return step

    def _assertion(self, is_positive: bool, value: Any, flags: int, following: Step) -> Step:
        direction, body = value
        inner = self._sequence(list(body), flags, lambda at: at)
        width = body.getwidth()[0] if direction < 0 else 0

        def step(at: int) -> int:
            self._count(1)
            holds = at >= width and inner(at - width) >= 0
            return following(at) if holds == is_positive else -1

        return step

    def _place(self, where: Any, flags: int, following: Step) -> Step:
        holds = _PLACES[where]
        is_word = CharSet(sre.IN, [(sre.CATEGORY, sre.CATEGORY_WORD)], flags & re.ASCII)
        lines = bool(flags & re.MULTILINE)

        def step(at: int) -> int:
            self.steps += 1
            return following(at) if holds(self._text, at, lines, is_word) else -1

        return step

    def _reference(self, group: int, flags: int, following: Step) -> Step:
        def step(at: int) -> int:
            if group not in self._groups:
                return -1
            start, end = self._groups[group]
            self._count(end - start + 1)
            known, found = self._text[start:end], self._text[at : at + end - start]
            is_same = known.lower() == found.lower() if flags & re.IGNORECASE else known == found
            return following(at + end - start) if is_same else -1

        return step


def _first(items: Any, flags: int) -> CharSet | None:
    return CharSet(*items[0], flags) if len(items) and items[0][0] in _ONE_CHARACTER else None


def _is_boundary(text: str, at: int, _: bool, is_word: CharSet) -> bool:
    before = at > 0 and is_word[text[at - 1]]
    return before != (at < len(text) and is_word[text[at]])


_PLACES: dict[Any, Callable[[str, int, bool, CharSet], bool]] = {
    sre.AT_BEGINNING: lambda text, at, lines, _: at == 0 or (lines and text[at - 1] == "\n"),
    sre.AT_BEGINNING_STRING: lambda _text, at, _lines, _: at == 0,
    sre.AT_END: lambda text, at, lines, _: at == len(text) or ((at == len(text) - 1 or lines) and text[at] == "\n"),
    sre.AT_END_STRING: lambda text, at, _lines, _: at == len(text),
    sre.AT_BOUNDARY: _is_boundary,
    sre.AT_NON_BOUNDARY: lambda text, at, lines, words: not _is_boundary(text, at, lines, words),
}


def parsed(pattern: str | bytes, flags: int = 0) -> Any:
    """The tree of a pattern; one of bytes as one of the characters that have their numbers."""
    if isinstance(pattern, bytes):
        pattern, flags = pattern.decode("latin-1"), flags | re.ASCII
    return _parser.parse(pattern, flags & ~re.DEBUG)


@contextmanager
def deep_calls() -> Iterator[None]:
    """A matcher calls itself for each element and iteration; calls of Python functions by each other need no C stack."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 100_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
