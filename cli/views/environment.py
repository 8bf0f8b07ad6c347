"""The environment variables of this process: values, origins and faults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redis_components.errors import did_you_mean
from redis_components.server.variables import origin
from workers.application import application
from workers.environment import variables as of_workers
from workers.environment.declaration import PREFIX, Declared, Variables, WrongValues, is_secret, variable_name

_OTHERS = ("TRAWL_DEMO_", "TRAWL_TEST_")
"""Of `make demo`, and of tests."""


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
    names = [variable_name(field) for group in groups() for field in group.declared()]
    names += map(variable_name, of_workers.COMPOSE)
    known = {*names, *(f"{name}_FILE" for name in names)}
    found = sorted(name for name in os.environ if name.startswith(PREFIX) and not name.startswith(_OTHERS) and name not in known)
    return [f"{name} is not a variable of Trawl{did_you_mean(name, names)}" for name in found]


def _rows_of(group: type[Variables]) -> list[Row]:
    wrong: Mapping[str, str] = {}
    values: Variables | None = None
    try:
        values = group.read()
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


def default_of(field: Declared) -> str:
    """Return the default as the docs show it."""
    return field.shown or _text(field.default)


def _unset(field: Declared) -> str:
    shown = field.shown.replace("`", "")
    return f"({shown})" if shown else default_of(field)


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
