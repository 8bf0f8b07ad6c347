"""Docstrings as shared engineers' English has them, where ruff's D401 does not look: clauses, words, names of files.

A docstring begins with a verb or a noun. Data is sent, stored and reported; it does not speak. A file named in backticks exists.
"""

from __future__ import annotations

import re

import pytest

from tests.support.sources import PACKAGES as ALL_PACKAGES
from tests.support.sources import ROOT, docstrings_of, sources

PACKAGES = tuple(one for one in ALL_PACKAGES if one != "cli")
CLAUSE = re.compile(r"(What|Whether|How|Which|Who|Whose|Where|Why)\b(?! is the name)")
WORDS = re.compile(r"\b(tells?|told|says?|said|somebody|nobody|whoever)\b", re.IGNORECASE)
MOST_LINES = 40
"""Lines of code that may have such a word: names of authors, sentences of the practice forum, `file.tell()`."""
FILE = re.compile(r"`((?:[\w-]+/)*[\w-]+\.(?:py|lua))`")
ELSEWHERE = {"settings.py", "middlewares.py", "pipelines.py", "items.py", "tasks.py", "redis.py"}
"""Files of users' projects."""


def clauses(text: str) -> list[int]:
    """Return the lines of docstrings that begin with a clause."""
    return [line for line, docstring in docstrings_of(text) if CLAUSE.match(docstring)]


def test_no_docstring_begins_with_a_clause() -> None:
    found = [f"{path}:{line}" for path, text in sources(PACKAGES).items() for line in clauses(text)]
    assert not found, "begin with a verb or a noun: " + ", ".join(found)


@pytest.mark.parametrize("docstring", ["Whether it is open.", "What is held.", "How long it lasts.", "Who holds it."])
def test_a_clause_is_found(docstring: str) -> None:
    assert clauses(f'def open():\n    """{docstring}"""') == [2]
    assert clauses(f'def open():\n    """Return {docstring}"""') == []


def test_data_does_not_speak() -> None:
    found = [
        f"{path}:{number}: {line.strip()}"
        for path, text in sources(PACKAGES).items()
        for number, line in enumerate(text.splitlines(), 1)
        if WORDS.search(line)
    ]
    assert len(found) <= MOST_LINES, "\n".join(found)


def test_a_file_in_backticks_exists() -> None:
    folders = [one for one in ROOT.iterdir() if one.is_dir() and not one.name.startswith(".")]
    files = [*ROOT.glob("*.py"), *(path for one in folders for ending in ("py", "lua") for path in one.rglob(f"*.{ending}"))]
    paths = [path.relative_to(ROOT).parts for path in files]
    known = {"/".join(parts[at:]) for parts in paths for at in range(len(parts))}
    found = [
        f"{path}:{line}: {name}"
        for path, text in sources(PACKAGES).items()
        for line, docstring in docstrings_of(text)
        for name in FILE.findall(docstring)
        if name not in ELSEWHERE and name not in known
    ]
    assert not found, "\n".join(found)
