"""Docstrings as shared engineers' English has them, where ruff's D401 does not look: clauses, words, names of files.

A docstring begins with a verb or a noun. Data is sent, stored and reported; it does not speak. A file named in backticks exists.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("redis_components", "workers", "tasks", "forums", "forum_reader", "monitoring", "demo")
CLAUSE = re.compile(r"(What|Whether|How|Which|Who|Whose|Where|Why)\b(?! is the name)")
WORDS = re.compile(r"\b(tells?|told|says?|said|somebody|nobody|whoever)\b", re.IGNORECASE)
MOST_LINES = 40
"""Lines of code that may have such a word: names of authors, sentences of the practice forum, `file.tell()`."""
FILE = re.compile(r"`((?:[\w-]+/)*[\w-]+\.(?:py|lua))`")
ELSEWHERE = {"settings.py", "middlewares.py", "pipelines.py", "items.py", "tasks.py"}
"""Files of users' projects."""


@cache
def sources() -> dict[str, str]:
    return {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    }


def docstrings(text: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
                yield first.lineno, first.value.value


def clauses(text: str) -> list[int]:
    """Return the lines of docstrings that begin with a clause."""
    return [line for line, docstring in docstrings(text) if CLAUSE.match(docstring)]


def test_no_docstring_begins_with_a_clause() -> None:
    found = [f"{path}:{line}" for path, text in sources().items() for line in clauses(text)]
    assert not found, "begin with a verb or a noun: " + ", ".join(found)


@pytest.mark.parametrize("docstring", ["Whether it is open.", "What is held.", "How long it lasts.", "Who holds it."])
def test_a_clause_is_found(docstring: str) -> None:
    assert clauses(f'def open():\n    """{docstring}"""') == [2]
    assert clauses(f'def open():\n    """Return {docstring}"""') == []


def test_data_does_not_speak() -> None:
    found = [
        f"{path}:{number}: {line.strip()}"
        for path, text in sources().items()
        for number, line in enumerate(text.splitlines(), 1)
        if WORDS.search(line)
    ]
    assert len(found) <= MOST_LINES, "\n".join(found)


def test_a_file_in_backticks_exists() -> None:
    folders = [one for one in ROOT.iterdir() if one.is_dir() and not one.name.startswith(".")]
    files = [*ROOT.glob("*.py"), *(path for one in folders for ending in ("py", "lua") for path in one.rglob(f"*.{ending}"))]
    known = {f"/{path.relative_to(ROOT).as_posix()}" for path in files}
    found = [
        f"{path}:{line}: {name}"
        for path, text in sources().items()
        for line, docstring in docstrings(text)
        for name in FILE.findall(docstring)
        if name not in ELSEWHERE and not any(one.endswith(f"/{name}") for one in known)
    ]
    assert not found, "\n".join(found)
