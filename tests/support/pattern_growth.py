"""How the work of a regular expression grows with its text: texts made from the pattern's own parts, and steps on each.

A text is a beginning of what the pattern matches, a part again and again, and an end that does not match. Parts are: one
character of each kind that the pattern distinguishes, what a repeat matches once, each alternative, each beginning (where a
search begins again and again), two or three elements in a row, and two characters in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from re import _constants as sre  # type: ignore[attr-defined]
from typing import Any

from tests.support.regex_steps import CharSet, StepCounter, TooManySteps, parsed

MOST_GROWTH = 2.5
"""Of the steps, where the text is twice as long."""
MOST_STEPS = 300
"""For each character of a text of `LONG` parts, with the pattern's own bounds."""
LONG = 1_000
_BOUND = 16
_SMALL = (10, 20, 40)
_LARGE = (64, 128, 256)
_MOST_SUSPECTS = 4
_PLAIN = 6  # steps for each character of a short text which no pattern grows from
_CAP = 2_000_000
_MOST_SETS = 30
_MOST_PAIRED = 6
_FEW = 4  # iterations
_CHARS = (*" a1-\n.,:/\"'<>()[]{}_@\\é中年\x00~Z", "\u0434")
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)


@dataclass(frozen=True)
class Growth:
    """The worst of the texts of one pattern."""

    ratio: float  # of the steps, where the text is twice as long
    steps: float  # for each character of a long text
    begin: str = ""
    part: str = ""
    end: str = ""
    mode: str = ""

    def text(self, characters: int) -> str:
        """The text of about that length."""
        return self.begin + self.part * max(characters // max(len(self.part), 1), 1) + self.end

    @property
    def is_linear(self) -> bool:
        """Within both limits."""
        return self.ratio <= MOST_GROWTH and self.steps <= MOST_STEPS


def growth_of(pattern: str | bytes, flags: int, modes: Sequence[str], *, is_shown: bool = False) -> Growth:
    """The worst growth in any of the modes: `match`, `fullmatch`, `search`, `finditer`. Of an expression that no short text makes
    suspect the ratio is 0, unless it is to be shown.
    """
    short = StepCounter(pattern, flags, _BOUND)
    long = StepCounter(pattern, flags)
    worst, suspects = Growth(0.0, 0.0), []
    for (begin, part, end), mode in product(texts_of(pattern, flags), modes):
        text = begin + part * _SMALL[-1] + end
        cap = 10_000 + len(text) ** 2
        if (most := _steps(short, mode, text, cap)) > cap:  # more than the square
            return Growth(float("inf"), float("inf"), begin, part, end, mode)
        worst = max(worst, Growth(0.0, most / len(text), begin, part, end, mode), key=_badness)
        if most <= _PLAIN * len(text):
            continue
        small = [_steps(short, mode, begin + part * n + end, cap) for n in _SMALL[:-1]]
        growth = (most - small[1]) / max(small[1] - small[0], 1)
        if growth > 2.1:
            suspects.append((growth, most / len(text), mode, begin, part, end))
    for _, _, mode, *parts in sorted(suspects, reverse=True)[:_MOST_SUSPECTS]:
        worst = max(worst, _confirmed(short, long, mode, *parts), key=_badness)
        if not worst.is_linear:
            break
    if is_shown and not worst.ratio and worst.part:
        return _confirmed(short, long, worst.mode, worst.begin, worst.part, worst.end)
    return worst


def _confirmed(short: StepCounter, long: StepCounter, mode: str, begin: str, part: str, end: str) -> Growth:
    """The growth on long texts."""
    large = [_steps(short, mode, begin + part * n + end, _CAP) for n in _LARGE]
    text = begin + part * max(LONG // len(part), 1) + end
    each = _steps(long, mode, text, (MOST_STEPS + 1) * len(text)) / len(text)
    return Growth(max(large[1] / large[0], large[2] / large[1]), each, begin, part, end, mode)


def _badness(growth: Growth) -> tuple[bool, float, float]:
    return (not growth.is_linear, growth.ratio, growth.steps)


def _steps(counter: StepCounter, mode: str, text: str, cap: int) -> int:
    try:
        counter.run(mode, text, cap)
    except TooManySteps:
        return cap + 1
    return counter.steps


def texts_of(pattern: str | bytes, flags: int) -> list[tuple[str, str, str]]:
    """Beginning, part and end of each text."""
    parts = _Parts(parsed(pattern, flags))
    if not parts.is_repeated:  # a bounded number of steps from each place
        return [("", char, "") for char in parts.chars[:_MOST_PAIRED]]
    begins = list(dict.fromkeys(begin for begin, _ in parts.repeats))
    pumps = dict.fromkeys([*parts.chars, *(part for _, part in parts.repeats)])
    few = parts.chars[:_MOST_PAIRED]
    pairs = [one + two for one in [*few, *begins[:_MOST_PAIRED]] for two in few]
    again = dict.fromkeys([*pumps, *begins, *parts.runs, *pairs])
    ends = ["", parts.odd, *([parts.common * (_BOUND + 4)] if parts.is_bounded else [])]
    found = [(begin, part, end) for begin in begins if begin for part in pumps for end in ends]
    return [(begin, part, end) for begin, part, end in [*(("", part, end) for part in again for end in ends), *found] if part]


class _Parts:
    """Of the tree of one pattern."""

    def __init__(self, tree: Any) -> None:
        self._groups: dict[int, str] = {}
        self.chars, self.odd, self.common = _kinds(tree, tree.state.flags)
        self.is_repeated = any(op in _REPEATS and value[1] > _FEW for op, value in _elements(tree))
        self.is_bounded = any(op in _REPEATS and _FEW < value[1] < sre.MAXREPEAT for op, value in _elements(tree))
        self.repeats: list[tuple[str, str]] = []  # what stands before, and one iteration
        self.runs: list[str] = []  # two or three elements, of which one is a repeat
        self._walk(list(tree), tree.state.flags, "")
        self.repeats = list(dict.fromkeys(self.repeats))

    def _walk(self, items: list[Any], flags: int, before: str) -> None:
        for at, (op, value) in enumerate(items):
            for run in (items[at : at + 2], items[at : at + 3]):
                if any(one in _REPEATS for one, _ in run):
                    self.runs.append(self._sample(run, flags, full=True))
            if op in _REPEATS:
                for way in _ways(value[2]):
                    self.repeats += [(before, self._sample(way, flags, full)) for full in (False, True)]
                    self._walk(way, flags, before)
            elif op is sre.BRANCH:
                for way in value[1]:
                    self._walk(list(way), flags, before)
            elif op in (sre.SUBPATTERN, sre.ATOMIC_GROUP, sre.ASSERT, sre.ASSERT_NOT):
                self._walk(list(value[-1] if op is not sre.ATOMIC_GROUP else value), flags, before)
            before += self._sample([(op, value)], flags, full=True)

    def _sample(self, items: Any, flags: int, full: bool) -> str:
        return "".join(self._one(op, value, flags, full) for op, value in items)

    def _one(self, op: Any, value: Any, flags: int, full: bool) -> str:
        if op is sre.LITERAL:
            return chr(value)
        if op in (sre.IN, sre.ANY, sre.NOT_LITERAL):
            chars = CharSet(op, value, flags)
            return next((char for char in (*self.chars, *_CHARS) if chars[char]), "")
        if op in _REPEATS:
            return self._sample(value[2], flags, full) * min(max(value[0], int(full)), 20)
        if op is sre.BRANCH:
            return self._sample(value[1][0], flags, full)
        if op is sre.SUBPATTERN:
            text = self._sample(value[3], flags, full)
            self._groups[value[0]] = text
            return text
        if op is sre.ATOMIC_GROUP:
            return self._sample(value, flags, full)
        if op is sre.ASSERT:
            return self._sample(value[1], flags, full) if value[0] < 0 else ""
        return self._groups.get(value, "") if op is sre.GROUPREF else ""


def _ways(body: Any) -> list[list[Any]]:
    """The alternatives of a repeat's body."""
    if len(body) == 1 and body[0][0] is sre.SUBPATTERN:
        return _ways(body[0][1][3])
    if len(body) == 1 and body[0][0] is sre.BRANCH:
        return [list(way) for way in body[0][1][1]]
    return [list(body)]


def _kinds(tree: Any, flags: int) -> tuple[list[str], str, str]:
    """One character of each kind that the pattern distinguishes, and those that the fewest and the most of its elements match. Of
    a long list of words only what repeats match.
    """
    sets = list(_sets(tree, flags))
    if len(sets) > _MOST_SETS:
        sets = [one for op, value in _elements(tree) if op in _REPEATS for one in _sets(value[2], flags)][:_MOST_SETS]
    literals = [chr(code) for code in _literals(tree)]
    known: dict[tuple[bool, ...], str] = {}
    for char in dict.fromkeys([*_CHARS, *literals]):
        known.setdefault(tuple(one[char] for one in sets), char)
    fewest, most = min(known, key=sum), max(known, key=sum)
    return [char for kinds, char in known.items() if any(kinds)], known[fewest], known[most]


def _sets(node: Any, flags: int) -> Iterator[CharSet]:
    for op, value in _elements(node):
        if op in (sre.IN, sre.ANY, sre.NOT_LITERAL, sre.LITERAL):
            yield CharSet(op, value, flags)


def _literals(node: Any) -> Iterator[int]:
    for op, value in _elements(node):
        if op in (sre.LITERAL, sre.NOT_LITERAL):
            yield value
        elif op is sre.IN:
            for kind, one in value:
                if kind is sre.LITERAL:
                    yield one
                elif kind is sre.RANGE:
                    yield one[0]


def _elements(node: Any) -> Iterator[tuple[Any, Any]]:
    for op, value in node:
        yield op, value
        if op in _REPEATS:
            yield from _elements(value[2])
        elif op is sre.BRANCH:
            for way in value[1]:
                yield from _elements(way)
        elif op in (sre.SUBPATTERN, sre.ASSERT, sre.ASSERT_NOT):
            yield from _elements(value[-1])
        elif op is sre.ATOMIC_GROUP:
            yield from _elements(value)
