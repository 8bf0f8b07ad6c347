"""Recognises the forum software of a page: matches the `[recognise]` tables of the profiles with its marks."""

from __future__ import annotations

import re
import re._parser as sre  # type: ignore[import-not-found]
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

import msgspec
import regex

from forum_reader.definition import load
from forum_reader.errors import UnreadablePage
from forum_reader.page.page_address import host_of
from forum_reader.reading.parse_body import Budget

from .page_marks import PageMarks, Recognise, compiled_mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from forum_reader.page.response import TextResponse

SURE = 0.6
"""The least score at which a software is named."""

_MOST_S = 0.5  # for an expression and a page; a slower expression does not match
_LEAST = 3
_MARGIN = 2
_DOUBT = 0.7  # factor of the doubt for each unit of weight


class Guess(msgspec.Struct, frozen=True, kw_only=True):
    """A profile that fits: the weight of its marks that the page has, and the marks."""

    profile: str
    score: int
    marks: tuple[str, ...]
    base_url: str


class Recognition(msgspec.Struct, frozen=True, kw_only=True):
    """Software of a page. `score`: certainty from 0 to 1. Below `SURE` none is named: `software` and both profiles are None, and
    `score` and `marks` are those of the likeliest.

    `profile` is for crawling the site, `html_profile` for reading pages like this: they differ where the software has an API.
    """

    software: str | None
    version: str | None
    score: float
    marks: tuple[str, ...]
    profile: str | None
    html_profile: str | None
    comment_ids: str | None = None


def recognise(page: TextResponse, marks: PageMarks | None = None) -> Recognition:
    """Recognise the software of a page. `marks`: its marks, where they were opened already. One mark is not enough: a software is
    named where its marks weigh at least `_LEAST`, are at least two and not only assets, and outweigh those of any other software
    by `_MARGIN`.
    """
    found = _weighed(page, marks)
    best = found[0] if found else None
    if best is None:
        return Recognition(software=None, version=None, score=0.0, marks=(), profile=None, html_profile=None)
    others = [one for one in found if one.software != best.software]
    is_sure = _is_sure(found)
    score = round(1 - _DOUBT ** (best.weight - (others[0].weight / 2 if others else 0)), 2)
    return Recognition(
        software=best.software if is_sure else None,
        version=_version(best.table, best.page) if is_sure else None,
        score=score if is_sure else min(score, SURE - 0.01),
        marks=best.marks,
        profile=best.profile if is_sure else None,
        html_profile=(best.table.html_profile or best.profile) if is_sure else None,
        comment_ids=best.table.comment_ids if is_sure else None,
    )


def guesses(response: TextResponse) -> list[Guess]:
    """Return the profiles that fit a page, the likeliest first; none where no software is sure."""
    found = _weighed(response, every=True)
    software = found[0].software if _is_sure(found) else None
    return [
        Guess(profile=one.profile, score=one.weight, marks=one.marks, base_url=_base(one.table, response, one.page))
        for one in found
        if one.software == software and one.is_enough
    ]


class _Weighed(msgspec.Struct, frozen=True, kw_only=True):
    profile: str
    software: str
    weight: int
    marks: tuple[str, ...]
    table: Recognise
    page: PageMarks

    @property
    def is_enough(self) -> bool:
        assets = sum(mark.startswith("asset ") for mark in self.marks)  # a site loads them on pages of other software, too
        return self.weight >= _LEAST and len(self.marks) >= 2 and assets < len(self.marks)


def _is_sure(found: list[_Weighed]) -> bool:
    """Return True if the heaviest has enough marks, and outweighs those of any other software."""
    if not found or not found[0].is_enough:
        return False
    others = (one.weight for one in found if one.software != found[0].software)
    return found[0].weight - max(others, default=0) >= _MARGIN


def _weighed(response: TextResponse, known: PageMarks | None = None, *, every: bool = False) -> list[_Weighed]:
    """Return the profiles that a page has marks of, the heaviest first. Without `every` those are left out that are lighter than
    the heaviest and no heavier than the next software: they decide nothing.
    """
    page = _Page(known or PageMarks(response))
    likely = [(page.most(table), name, table) for name, table in _tables() if page.possible & table.quick]
    found: list[_Weighed] = []
    for most, name, table in sorted(likely, key=lambda one: -one[0]):
        best = max(found, key=lambda one: one.weight, default=None)
        if (
            best
            and not every
            and most < best.weight
            and any(most <= one.weight and one.software != best.software for one in found)
        ):
            break
        sure, marks = (tuple(mark for mark in given if page.has(mark)) for given in (table.signatures, table.hints))
        if (
            table.quick.isdisjoint((*sure, *marks))
            or any(page.has(mark) for mark in table.never)
            or not all(page.has(mark) for mark in table.requires)
        ):
            continue
        found.append(
            _Weighed(
                profile=name,
                software=table.software or name,
                weight=2 * len(sure) + len(marks),
                marks=(*sure, *marks),
                table=table,
                page=page.marks,
            )
        )
    return sorted(found, key=lambda one: (-one.weight, -one.table.rank, one.profile))


class _Page:
    """Marks of profiles that a page has. `possible`: marks that are plain, expressions a text of which is on the page, and those
    of scripts, which are long, and decide nothing alone.
    """

    def __init__(self, marks: PageMarks) -> None:
        self.marks = marks
        self._budget = Budget(0, strict=False)
        known, scripts = _marks()
        self.possible = set(scripts)
        for kind, (plain, expressions) in known.items():
            if plain:
                self.possible.update(plain[text] for text in plain.keys() & marks.of(kind))
            if expressions and (lines := marks.lines(kind)):
                self.possible |= {mark for mark, text in expressions if text in lines}
        self._known: dict[str, bool] = {}

    def most(self, table: Recognise) -> int:
        """Return the most that a table can weigh."""
        return 2 * len(self.possible.intersection(table.signatures)) + len(self.possible.intersection(table.hints))

    def has(self, mark: str) -> bool:
        """Return True if the page has a mark."""
        if mark not in self.possible and not mark.startswith("script "):
            return False
        known = self._known.get(mark)
        if known is None:
            kind, _, pattern = compiled_mark(mark)
            known = self._known[mark] = pattern is None or self._matches(kind, pattern)
        return known

    def _matches(self, kind: str, pattern: regex.Pattern[str]) -> bool:
        """Return True if a mark matches; False where the page's time for expressions is over."""
        try:
            return self._budget.search(pattern, pattern.pattern, self.marks.lines(kind)) is not None
        except UnreadablePage:
            return False


@lru_cache(maxsize=2048)
def _literals(expression: str) -> tuple[str, ...]:
    """Return texts of which each match has one; an empty one where unknown syntax leaves none."""
    try:
        return _texts_in(sre.parse(expression)) if "(?" not in expression.replace("(?:", "") else ("",)
    except re.error:  # syntax of `regex` alone
        return ("",)


def _texts_in(parsed: Iterable[tuple[Any, Any]]) -> tuple[str, ...]:
    options: list[tuple[str, ...]] = [("",)]
    run = ""
    for name, value in parsed:
        run = run + chr(value) if name is sre.LITERAL else ""
        if name is sre.SUBPATTERN:
            options.append(_texts_in(value[3]))
        elif name is sre.BRANCH:
            options.append(tuple(text for one in value[1] for text in _texts_in(one)))
        else:
            options.append((run,))
    return max(options, key=lambda texts: min(map(len, texts)))


@cache
def _marks() -> tuple[dict[str, tuple[dict[str, str], list[tuple[str, str]]]], list[str]]:
    """Return for each kind the profiles' marks that are plain text, by that text, and the expressions, each with the texts of
    which its matches have one; the marks of scripts apart.
    """
    found: dict[str, tuple[dict[str, str], list[tuple[str, str]]]] = {}
    scripts: list[str] = []
    every = (mark for _, table in _tables() for mark in (*table.signatures, *table.hints, *table.never, *table.requires))
    for mark in dict.fromkeys(every):
        kind, text, pattern = compiled_mark(mark)
        if kind == "script":
            scripts.append(mark)
        elif pattern is None:
            found.setdefault(kind, ({}, []))[0][text] = mark
        else:
            found.setdefault(kind, ({}, []))[1].extend((mark, one) for one in _literals(pattern.pattern))
    return found, scripts


@cache
def _tables() -> tuple[tuple[str, Recognise], ...]:
    """Return the tables of the profiles that have marks other than of scripts."""
    named = ((name, load.profile_table(name)) for name in load.profile_names())
    tables = ((name, Recognise.model_validate(table.get("recognise", {}))) for name, table in named)
    return tuple((name, table) for name, table in tables if table.quick)


def _version(table: Recognise, page: PageMarks) -> str | None:
    if table.version is None:
        return None
    kind, _, pattern = compiled_mark(table.version)
    match = next(_found(pattern or "", page.lines(kind)), None)
    return str(match[1]) if match else None


def base_of(url: str) -> str:
    """Return the folder that a page is in, which is where most forums have their root."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rpartition('/')[0]}"


def _base(marks: Recognise, response: TextResponse, page: PageMarks) -> str:
    """Return the forum's root, from the first link to the page's own host that matches `base`."""
    if marks.base == "/":
        return urljoin(response.url, "/").rstrip("/")
    asked = urlsplit(response.url)
    for match in _found(marks.base or "", _lines_with(page.addresses(), marks.base or "")):
        found: str = urljoin(response.url, match[1] or ".")
        if host_of(urlsplit(found)) == host_of(asked):  # a page must not choose another host, nor another scheme
            return f"{asked.scheme}://{asked.netloc}{urlsplit(found).path}".rstrip("/")
    return base_of(response.url).rstrip("/")


def _lines_with(text: str, expression: str) -> str:
    """Return the lines that hold a text of an expression: a page has hundreds of links."""
    texts = _literals(expression)
    return "\n".join(line for line in text.split("\n") if any(one in line for one in texts))


def _found(pattern: str | regex.Pattern[str], text: str) -> Iterator[Any]:
    """Yield the matches, at most 100, until they take longer than `_MOST_S`."""
    try:
        yield from islice(regex.finditer(pattern, text, timeout=_MOST_S), 100) if pattern else ()
    except TimeoutError:
        return
