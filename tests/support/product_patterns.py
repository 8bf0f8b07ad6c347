"""Every regular expression of the product: each call of `re` and `regex` is looked up in the source, and what it is given is
evaluated with the names of its module.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.support.sources import PACKAGES

ROOT = Path(__file__).parents[2]
_MODES = {
    "match": "match",
    "fullmatch": "fullmatch",
    "search": "search",
    **dict.fromkeys(("findall", "finditer", "split", "sub", "subn"), "finditer"),
}
_ENGINES = ("re", "regex")
_LETTER = re.compile(r"\[\[\\p\{L\}[^-]*--\[[^\]]*\]\]")  # of forums/events/expression.py, which `re` cannot read


@dataclass(frozen=True)
class Use:
    """One expression, and how it is used."""

    where: str  # file and name, or file and function
    pattern: str | bytes
    flags: int
    modes: tuple[str, ...]


class Source:
    """One module: its text and, where it is asked for, its tree."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text()

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of its tree."""
        return list(ast.walk(ast.parse(self.text)))

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The node around each node."""
        return {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @cached_property
    def readers(self) -> dict[str, set[str]]:
        """For each name, the attributes that are read of it, `finditer` where the value is handed on."""
        found: dict[str, set[str]] = {}
        for node in self.nodes:
            name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else getattr(node, "attr", None)
            if isinstance(name, str):
                parent = self.parents[node]
                found.setdefault(name, set()).add(parent.attr if isinstance(parent, ast.Attribute) else "finditer")
        return found

    @property
    def name(self) -> str:
        """The file as the repository names it."""
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def imported(self) -> set[tuple[str, str]]:
        """The last part of a module's name, and what is imported of it, of each `from .module import CONSTANT`."""
        found = re.findall(r"^ *from [\w.]*?(\w+) import (\([^)]*\)|.*)$", self.text, re.MULTILINE)
        return {(module, name) for module, names in found for name in re.findall(r"\b_?[A-Z][A-Z_]+\b", names)}

    @cached_property
    def engines(self) -> set[str]:
        """The names of `re` and `regex` in it. Importing a function of them is refused: its calls could not be found."""
        found: set[str] = set()
        if not re.search(r"^\s*(?:import|from) re", self.text, re.MULTILINE):
            return found
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found |= {one.asname or one.name for one in node.names if one.name in _ENGINES}
            if isinstance(node, ast.ImportFrom) and node.module in _ENGINES:
                raise AssertionError(f"{self.name}: import the module {node.module}, not names of it")
        return found

    def calls(self) -> Iterator[ast.Call]:
        """Those of the engines that take an expression."""
        for node in self.nodes if self.engines else ():
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            engine = node.func.value
            if isinstance(engine, ast.Name) and engine.id in self.engines and node.func.attr in {"compile", *_MODES}:
                yield node

    def globals(self) -> dict[str, Any]:
        """What its names stand for."""
        parts = self.path.relative_to(ROOT).with_suffix("").parts
        return vars(importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts)))

    def function_around(self, node: ast.AST) -> str:
        """The name of the function in which something stands; "" in none."""
        while (node := self.parents.get(node)) is not None:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                return node.name
        return ""


def sources() -> list[Source]:
    """Of all modules of the product."""
    return [Source(path) for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def uses(all_sources: list[Source]) -> tuple[list[Use], list[str]]:
    """What each call is given; and the calls (file and function) whose expression is made of what a function is given."""
    found, built = [], []
    for source in all_sources:
        calls = list(source.calls())
        names = source.globals() if calls else {}
        for call in calls:
            function = source.function_around(call)
            try:
                pattern, flags = _evaluated(call, names)
            except NameError:
                built.append(f"{source.name}:{function}")
                continue
            kept = _name_of(source, call)
            modes = _modes(source, call, kept, all_sources)
            found.append(Use(f"{source.name}:{kept or function}", pattern, flags, modes))
    return found, sorted(set(built))


def _evaluated(call: ast.Call, names: dict[str, Any]) -> tuple[str | bytes, int]:
    """Raises NameError where local names stand in it."""
    pattern = _value(call.args[0], names)
    if not isinstance(pattern, str | bytes):
        return pattern.pattern, pattern.flags
    if isinstance(pattern, str):
        pattern = _LETTER.sub(r"\\w", pattern).removeprefix("(?V1)")
    last = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(call.func.attr, 2)  # type: ignore[attr-defined]
    given = [one.value for one in call.keywords if one.arg == "flags"] or call.args[last : last + 1]
    return pattern, int(_value(given[0], names)) if given else 0


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "<pattern>", "eval"), dict(names))  # our own source


def _name_of(source: Source, call: ast.Call) -> str:
    """The global name that a compiled pattern, or a method of it, gets."""
    parent = source.parents[call]
    if isinstance(parent, ast.Attribute):
        parent = source.parents[parent]
    if (
        isinstance(parent, ast.Assign)
        and isinstance(source.parents[parent], ast.Module)
        and isinstance(parent.targets[0], ast.Name)
    ):
        return parent.targets[0].id
    return ""


def _modes(source: Source, call: ast.Call, name: str, all_sources: list[Source]) -> tuple[str, ...]:
    method = call.func.attr  # type: ignore[attr-defined]
    parent = source.parents[call]
    if method == "compile" and isinstance(parent, ast.Attribute):
        method = parent.attr
    if method != "compile":
        return (_MODES.get(method, "finditer"),)
    readers = [one for one in all_sources if one is source or (source.path.stem, name) in one.imported] if name else []
    methods = {method for one in readers for method in one.readers.get(name, ())} - {"pattern", "flags", "groups"}
    return tuple(sorted({_MODES.get(one, "finditer") for one in methods or {"finditer"}}))


def kept_patterns(all_sources: list[Source]) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Compiled patterns among the values of the modules, also within tuples and dictionaries."""
    for source in all_sources:
        if source.engines:
            for name, value in source.globals().items():
                yield from ((f"{source.name}:{name}", one) for one in _patterns_in(value))


def _patterns_in(value: Any) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _patterns_in(one)
    elif isinstance(value, tuple | list | set | frozenset):
        for one in value:
            yield from _patterns_in(one)


def of_product() -> tuple[list[Use], list[str]]:
    """Each expression once, and the functions that build others."""
    all_sources = sources()
    found, built = uses(all_sources)
    known = {use.pattern for use in found}
    kept = (
        Use(where, one.pattern, one.flags, ("finditer",)) for where, one in kept_patterns(all_sources) if one.pattern not in known
    )
    return list({(use.pattern, use.flags, use.modes): use for use in [*found, *kept]}.values()), built
