"""Modules of the tree for tests that look at the code: each is read and parsed once in a process."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("redis_components", "workers", "fleet_operations", "tasks", "forums", "forum_reader", "cli", "monitoring", "demo")
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def sources(packages: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    """Return the text of each module of the packages by its path."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
        for package in packages
        for path in sorted((ROOT / package).rglob("*.py"))
    }


@cache
def definitions_of(text: str) -> list[ast.Module | Definition]:
    """Return the module, and each class and function at any depth."""
    tree = ast.parse(text)
    return [tree, *_definitions(tree)]


def _definitions(node: ast.AST) -> Iterator[Definition]:
    """Go through statements alone: a definition stands in no expression, and most of a tree is expressions."""
    for block in _BLOCKS:
        for one in getattr(node, block, ()):
            if isinstance(one, Definition):
                yield one
            yield from _definitions(one)


def docstrings_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring."""
    for node in definitions_of(text):
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            yield first.lineno, first.value.value
