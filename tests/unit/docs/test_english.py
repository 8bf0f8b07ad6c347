"""Plain English: idioms that readers stumble over do not come back into packages that are free of them.

`IDIOMS` holds each idiom as a regular expression, in which a space also stands for a line break, and what to write instead.
Add a package to `PACKAGES` once it is clean.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sources import PACKAGES as ALL_PACKAGES

ROOT = Path(__file__).parents[3]
PACKAGES = [one for one in ALL_PACKAGES if one != "demo"]
FILES = ("celeryconfig.py",)
ENDINGS = {".py", ".lua", ".html"}

IDIOMS = {
    r"\b(?<!there )(is|are|was|were) no (?!longer\b|more\b)[a-z]": "is not a …, or has no …",
    r"\bof (ours|its own|their own|theirs)\b": "our …, its own …, a separate …",
    r"\bwhatever\b": "any …, or name the cases",
    r"\bby (itself|themselves)\b": "say who does it, or alone, automatically",
    r"\bbeside\b": "next to, in addition to, while … runs",
    r"\bfor so long\b": "for this time",
    r"\banew\b": "again, from the start",
    r"\blikewise\b": "also, in the same way",
}

_MARKS = re.compile(r'(?:\s|#|\bf(?=")|"|--)*')
"""What begins a line before its words: the quote of a part of a string, the mark of a comment."""


def test_the_packages_are_free_of_the_idioms() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {words!r}: write {instead}"
        for path in _texts()
        for line, words, instead in _idioms(path.read_text("utf-8"))
    ]
    assert not found, "\n".join(["idioms in the text:", *found])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("text that is no JSON", "is no J"),
        ("# They are\n    # no daemons.", "are no d"),
        ('f"{url} was "\n    f"no address"', "was no a"),
        ("a thread of its own", "of its own"),
        ("none of\n    ours", "of ours"),
        ("Whatever the value", "Whatever"),
        ("it ends by itself", "by itself"),
        ("safe beside crawlers", "beside"),
        ("silent for so long", "for so long"),
        ("begins anew", "anew"),
        ("Likewise here", "Likewise"),
    ],
)
def test_an_idiom_is_found_across_lines_and_cases(text: str, words: str) -> None:
    assert [found for _, found, _ in _idioms(f"first line\n{text}\n")] == [words]
    assert [line for line, _, _ in _idioms(f"first line\n{text}\n")] == [2]


@pytest.mark.parametrize(
    "text",
    [
        "if there is no answer",
        "where there\n    is no terminal",
        "it is no longer there",
        "it is not a number",
        "besides",
        "its own",
    ],
)
def test_plain_english_is_left_alone(text: str) -> None:
    assert not list(_idioms(text))


def _texts() -> Iterator[Path]:
    for package in PACKAGES:
        yield from (path for path in sorted((ROOT / package).rglob("*")) if path.suffix in ENDINGS)
    yield from (ROOT / name for name in FILES)


def _idioms(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, words and the alternative of each idiom in `text`, also of those that a line break divides."""
    starts, numbers, parts, length = [], [], [], 0
    for number, line in enumerate(text.splitlines(), 1):
        if words := line[_marks_end(line) :].rstrip(' \t"'):
            starts.append(length)
            numbers.append(number)
            parts.append(words)
            length += len(words) + 1
    joined = " ".join(parts)
    for pattern, instead in IDIOMS.items():
        for match in re.finditer(pattern, joined, re.IGNORECASE):
            yield numbers[bisect_right(starts, match.start()) - 1], match[0], instead


def _marks_end(line: str) -> int:
    match = _MARKS.match(line)
    return match.end() if match else 0


SPEECH = re.compile(r"\b(tells?|told|says?|said|somebody|nobody|whoever|anew|beside)\b", re.IGNORECASE)
QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”")
GENERATED = "cli.md"  # from the commands' docstrings
PAGES = [
    page for page in (*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), ROOT / "packaging/README.md") if page.name != GENERATED
]


def _speech(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and word where a page lets data speak, or names no role; blocks of code and quotations are left out."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        fenced ^= line.startswith("```")
        if not fenced:
            yield from ((number, word) for word in SPEECH.findall(QUOTED.sub("", line)))


def test_in_the_pages_data_is_sent_and_shown_and_people_have_roles() -> None:
    found = [f"{page.relative_to(ROOT)}:{line}: {word}" for page in PAGES for line, word in _speech(page.read_text("utf-8"))]
    assert not found, "\n".join(["write shows, reports, returns; operator, user, client, process:", *found])


def test_speech_is_found_outside_of_quotations() -> None:
    page = 'Nobody asks.\n`trawl status` says why, "said".\n```\ntell\n```\nIt shows `told`.'
    assert list(_speech(page)) == [(1, "Nobody"), (2, "says")]
