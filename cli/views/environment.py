"""The environment variables, for `trawl config show` and (`python -m cli.views.environment FILE`) docs/reference/settings.md."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from redis_components.server.variables import origin
from workers.application import application
from workers.environment import variables as of_workers
from workers.environment.declaration import PREFIX, Declared, Variables, WrongValues, is_secret, type_words, variable_name

BEGIN = "<!-- written by `make docs` from the declarations -->"
END = "<!-- end -->"
_OTHERS = ("TRAWL_DEMO_", "TRAWL_TEST_")
"""Of `make demo`, and of tests."""

_TYPES = {
    "Secret": "secret",
    "Literal": "level",
    "dict": "sizes",
    "tuple": "names",
    "frozenset": "names",
    "bool": "1 or 0",
    "int": "whole number",
    "float": "number",
    "Path": "path",
    "str": "text",
}
"""By a part of the annotation."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One variable in this process."""

    variable: str
    value: str
    """As it may be shown: of a secret no more than a URL without its password."""
    origin: str
    """`environment`, the file, or `default`."""
    fault: str = ""
    """One line, where the value is wrong; `value` is empty then."""


def groups() -> tuple[type[Variables], ...]:
    """Return the variables of the fleet and its application, in the groups in which they are read."""
    return (*of_workers.GROUPS, *application().variables())


def rows() -> list[Row]:
    """Return every variable in the order of docs/reference/settings.md. Raises ConfigError for a file that cannot be read."""
    return [row for group in groups() for row in _rows_of(group)]


def unknown() -> list[str]:
    """Return a line for each variable in the environment that has a name like one of Trawl's."""
    every: tuple[type[Variables], ...] = (*groups(), of_workers.Compose)
    names = [variable_name(field) for group in every for field in group.declared()]
    known = {*names, *(f"{name}_FILE" for name in names)}
    found = sorted(name for name in os.environ if name.startswith(PREFIX) and not name.startswith(_OTHERS) and name not in known)
    return [f"{name} is not a variable of Trawl{_meant(name, names)}" for name in found]


def page_with_tables(page: str) -> str:
    """Return the page with new tables between its two markers."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{_tables()}{END}{rest.split(END)[1]}"


def _rows_of(group: type[Variables]) -> list[Row]:
    wrong: Mapping[str, str] = {}
    values: Variables | None = None
    try:
        values = group.validated()
    except WrongValues as error:
        wrong = error.faults
    return [_row(name, group, values, wrong) for name in group.declared()]


def _row(name: str, group: type[Variables], values: Variables | None, wrong: Mapping[str, str]) -> Row:
    field = group.declared()[name]
    variable = variable_name(name)
    where = origin(variable) or "default"
    if name in wrong:
        return Row(variable=variable, value="", origin=where, fault=wrong[name])
    if values is None:  # another one of the group is wrong: this one as it is written
        written = os.environ.get(variable)
        shown = "***" if written and is_secret(group, name) else written or _unset(field)
        return Row(variable=variable, value=shown, origin=where)
    value = getattr(values, name)
    return Row(variable=variable, value=_unset(field) if value is None else _text(value), origin=where)


def _tables() -> str:
    return f"\n{_table(*groups())}\nOf `docker-compose.yml` alone:\n\n{_table(of_workers.Compose)}\n"


def _table(*groups: type[Variables]) -> str:
    lines = [
        f"| `{variable_name(name)}` | {_type(group, name)} | {_default(field)} | {field.meaning} |"
        for group in groups
        for name, field in group.declared().items()
    ]
    return "\n".join(["| variable | type | default | meaning |", "|---|---|---|---|", *lines]) + "\n"


def _type(group: type[Variables], name: str) -> str:
    written = type_words(group, name)
    return next(name for known, name in _TYPES.items() if known in written)


def _default(field: Declared) -> str:
    return field.shown or _text(field.default)


def _unset(field: Declared) -> str:
    shown = field.shown.replace("`", "")
    return f"({shown})" if shown else _default(field)


def _text(value: Any) -> str:
    match value:
        case bool():
            return str(int(value))
        case float():
            return f"{value:g}"
        case dict():
            return ",".join(f"{name}={number}" for name, number in value.items())
        case tuple() | frozenset():
            return ",".join(sorted(value) if isinstance(value, frozenset) else value)
    return str(value)


def _meant(name: str, names: list[str]) -> str:
    close = get_close_matches(name, names, n=1, cutoff=0.8)
    return f": did you mean {close[0]}?" if close else ": correct its name, or unset it"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(page_with_tables(path.read_text("utf-8")), "utf-8")
