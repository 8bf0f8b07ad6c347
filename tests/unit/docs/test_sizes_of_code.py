"""How long files and functions are, and how many names a reader meets on opening a package."""

from __future__ import annotations

import ast
import statistics

import pytest

from tests.support.sources import definitions_of, sources

LONGEST_FILE = 400
LONG_FUNCTION = 40  # lines without the docstring
LONG_FILES: dict[str, str] = {}
"""Those that may be longer, and why."""


def lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Of its signature and its code."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    docstring = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
    return (function.end_lineno or 0) - function.lineno + 1 - docstring


def test_a_file_is_short_or_its_length_has_a_reason() -> None:
    lengths = {path: len(text.splitlines()) for path, text in sources().items()}
    assert statistics.median(length for length in lengths.values() if length > 5) <= 240
    assert {path for path, length in lengths.items() if length > LONGEST_FILE} == LONG_FILES.keys()


def test_at_most_one_function_in_a_hundred_is_long() -> None:
    functions = {
        f"{path}: {node.name}": lines(node)
        for path, text in sources().items()
        for node in definitions_of(text)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    long = {name: length for name, length in functions.items() if length > LONG_FUNCTION}
    assert len(long) <= len(functions) / 100, long


@pytest.mark.parametrize(("package", "most"), [("redis_components", 30), ("workers", 19), ("forums", 17)])
def test_a_package_has_few_entries(package: str, most: int) -> None:
    entries = {path.split("/")[1] for path in sources() if path.startswith(f"{package}/")} - {"__init__.py"}
    assert len(entries) <= most, sorted(entries)
