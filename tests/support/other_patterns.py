"""Expressions of the product that stand in no call: those of profiles, those of Lua, and those that functions build."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

from forum_reader.dates import words
from forum_reader.draft import boards, comment_service, row_fields
from forum_reader.draft.address_shape import shape_of
from forum_reader.draft.boards import _pattern_of
from forum_reader.draft.list_wrapper import _alone
from forum_reader.recognise import recognise
from forum_reader.recognise.page_marks import compiled_mark
from forums.overview import why
from redis_components.connection import _DIAGNOSES
from tests.support.product_patterns import ROOT, Use

_PROFILES = ROOT / "forum_reader/profiles"
_NUMBERED = [f"/t/how-to-prune-{n}/" for n in (1, 2, 3)]
_NAMED = [f"/2026/11/{name}.html" for name in ("pear", "plum", "fig")]
_DEEP = [f"/b/{name}/t/{n}" for n, name in enumerate(("pear", "plum", "fig"))]


def _shape(urls: list[str], *, whole: bool = False) -> Any:
    shape = shape_of([f"https://forum.example{url}" for url in urls], whole=whole)
    assert shape is not None
    return shape


BUILT: dict[str, Callable[[], list[tuple[str, str]]]] = {
    # Function: what it builds of what it may be given, and how that is used.
    "forums/events/expression.py:keyword": lambda: [("search", r"(?<!\w)two\s+words\s+of(?!\w)")],
    "forums/storage/read/search.py:excerpt": lambda: [("search", r"two|words\-of|a\+b")],  # escaped
    "monitoring/forums/search.py:marked": lambda: [("split", r"((?<![A-Za-z])two|(?<![A-Za-z])words\-of|\*)")],
    "forums/overview/why.py:_pattern": lambda: [
        ("fullmatch", why._pattern(one).pattern) for one in ("/t/{thread}?page={page}", "/b/{forum:path}/list.html")
    ],
    "forum_reader/definition/selectors.py:compile_pattern": list,  # within a time: tests/unit/forum_reader/test_site_patterns.py
    "forum_reader/fields/post_marks.py:_anywhere": list,  # kept by its module
    "forum_reader/dates/normalised.py:_with_months": list,  # kept by its module
    "forum_reader/dates/words.py:_halves": list,  # kept by its module
    "forum_reader/dates/words.py:_known": lambda: [("sub", found.pattern) for found, _ in words._known()],
    "forum_reader/dates/words.py:_translations": lambda: [
        ("sub", found.pattern)
        for names in (*words._OF_SCRIPT.values(), "hr en", "fr en", "vi en", "zh en")
        for found, _ in words._translations(names, has_number=True)
    ],
    "forums/spiders/base.py:_in_its_place": lambda: [("match", r"\d+(?=\D|$)"), ("match", r"[^/?&#]+")],
    "forum_reader/draft/comment_service.py:_matched": lambda: [
        ("search", one[key]) for one in comment_service._known() for key in ("address", "key") if key in one
    ],
    "forum_reader/definition/page_requests.py:number_in": lambda: [("search", r"(?:^|[/?&;])page-(\d{1,9})(?![\w.])")],
    "forum_reader/draft/boards.py:_forum_pattern": lambda: [
        ("match", boards._forum_pattern({"pages": {"list": {"url": one}}}).pattern)  # type: ignore[union-attr]
        for one in ("/f/{forum}/", "/f/{forum:path}/threads?page={page}")
    ],
    "forum_reader/draft/paging_links.py:_thread_url": list,  # expressions of AddressShape, below
    "forum_reader/draft/paging_links.py:_grade": list,
    "forum_reader/draft/list_wrapper.py:_part": list,
    "forum_reader/draft/address_shape.py:is_of_another": list,
    "forum_reader/draft/boards.py:_has_id": list,
    "forum_reader/draft/boards.py:of": list,
    "forum_reader/draft/row_fields.py:parent_field": lambda: [("search", one) for one in row_fields._TARGETS],
    "forum_reader/draft/address_shape.py:_of_path": lambda: [("search", _shape(_DEEP, whole=True).pattern)],
    "forum_reader/draft/address_shape.py:_patterns": lambda: [("match", _shape(one).inner) for one in (_NUMBERED, _NAMED)],
    "forum_reader/draft/address_shape.py:shape_of": lambda: [
        ("search", _shape(one).pattern) for one in (_NUMBERED, _NAMED, _DEEP)
    ],
    "forum_reader/draft/boards.py:_pattern_of": lambda: [("search", _pattern_of(_shape(_NAMED)).pattern)],
    "forum_reader/draft/list_wrapper.py:_count_in_words": lambda: [("search", r"(?<!\d)(\d+)\W*$")],
    "forum_reader/draft/list_wrapper.py:_token": lambda: [("search", _alone(one)) for one in ("12", "a-b")],
    "forum_reader/recognise/recognise.py:_found": list,  # marks and `base` of profiles, within a time: below
    "forum_reader/page/soft_block.py:": list,  # kept by its module
    "forum_reader/reading/markup_limits.py:": list,  # kept by its module
    "forums/storage/errors.py:storage_error": lambda: [("search", pattern) for pattern, _ in _fixes()],
    "workers/environment/declaration.py:parse": lambda: [("fullmatch", r"-?\d{1,15}"), ("fullmatch", r"\d{1,9}(?:\.\d{1,9})?")],
    "redis_components/connection.py:_diagnosis": lambda: [("search", words) for _, words, _, _ in _DIAGNOSES],
}


def _fixes() -> Any:
    from forums.storage import errors

    return errors._FIXES


def built(found: list[str]) -> list[Use]:
    """Examples of what each of these functions builds. Raises KeyError for one that is not in the list."""
    made = [(where, mode, pattern) for where in found for mode, pattern in BUILT[where]()]
    return [Use(where, pattern, 0, (mode,)) for where, mode, pattern in dict.fromkeys(made)]


def of_profiles() -> list[Use]:
    """Marks, `regex` of fields, `base`, `forum`, and what `re:test` is given: the package `regex` searches them, in a time."""
    marks = [mark for _, table, *_ in recognise._tables() for mark in table.hints + table.signatures]
    found = [
        Use(f"mark {mark.split()[0]}", pattern.pattern, re.MULTILINE, ("search",))
        for mark in marks
        if (pattern := compiled_mark(mark)[2]) is not None  # else it is plain text
    ]
    for path in sorted(_PROFILES.glob("*.toml")):
        for key, value in _texts(tomllib.loads(path.read_text())):
            modes = {"regex": "search", "base": "finditer", "forum": "match"}
            if key in modes and value != "/" and (key != "forum" or "(" in value):
                found.append(Use(f"{path.name}:{key}", value, 0, (modes[key],)))
            found += [
                Use(f"{path.name}:re:test", one, 0, ("search",)) for one in re.findall(r"\bre:test\([^,]*, '([^']*)'", value)
            ]
    return list({(use.pattern, use.modes): use for use in found}.values())


def _texts(table: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(table, dict):
        for name, value in table.items():
            yield from _texts(value, name)
    elif isinstance(table, list):
        for value in table:
            yield from _texts(value, key)
    elif isinstance(table, str):
        yield key, table


_LUA_CALL = re.compile(r"string\.(find|match|gmatch|gsub)\(")
_LUA_CLASSES = {
    "d": "0-9",
    "s": r"\s",
    "w": "A-Za-z0-9",
    "a": "A-Za-z",
    "x": "0-9A-Fa-f",
    "z": r"\x00",
    "l": "a-z",
    "u": "A-Z",
    "p": "!-/:-@",
}


def of_lua() -> list[Use]:
    """Patterns of Lua in its scripts, as expressions. Raises AssertionError for one that is no literal."""
    found = []
    for path in sorted(
        path
        for package in ("redis_components", "workers", "fleet_operations", "forums")
        for path in (ROOT / package).rglob("*.lua")
    ):
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            for call in _LUA_CALL.finditer(line):
                where = f"{path.relative_to(ROOT).as_posix()}:{number}"
                if (pattern := _lua_literal(line[call.end() :])) is not None:
                    mode = "finditer" if call[1].startswith("g") else "search"
                    found.append(Use(where, as_expression(pattern), re.ASCII, (mode,)))
    return found


def _lua_literal(arguments: str) -> str | None:
    """The second argument of a call; None where the text is looked for as it is, or where the pattern is on the next lines."""
    depth, at = 0, 0
    while at < len(arguments) and (depth or arguments[at] != ","):
        if arguments[at] in "'\"":
            at = arguments.index(arguments[at], at + 1)
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(arguments[at], 0)
        at += 1
    quoted = re.match(r", *'((?:[^'\\]|\\.)*)'(, *1, *true)?", arguments[at:])
    return None if quoted is None or quoted[2] else re.sub(r"\\(\d{1,3})", lambda code: chr(int(code[1])), quoted[1])


def as_expression(pattern: str) -> str:
    """A pattern of Lua as a regular expression. `%b` and `%f` are refused."""
    made, at, within = "", 0, False
    while at < len(pattern):
        char = pattern[at]
        if char == "%":
            at += 1
            known = _LUA_CLASSES.get(pattern[at].lower()) if pattern[at].isalpha() else None
            assert known or not pattern[at].isalpha(), f"%{pattern[at]} in {pattern!r}"
            negated = "^" if pattern[at].isupper() else ""
            made += re.escape(pattern[at]) if known is None else known if within else f"[{negated}{known}]"
        elif char == "[" and not within:
            within = True
            made += "["
        elif char == "]" and within:
            within = False
            made += "]"
        elif char == "-" and not within and made.rstrip("^("):
            made += "*?"
        else:
            made += char if within or char in "^$().*+?" else re.escape(char)
        at += 1
    return f"(?s:{made})"
