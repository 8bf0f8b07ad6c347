"""Site of the merged content of a site file, and the messages for its faults, which name the fix."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from forum_reader.errors import SiteError

from . import layers
from .site import Site

_SELECTOR = 'must be a selector, as in {key} = "a.title", a list of them, or a table {{ select = "a.title", … }}'
_SELECTORS = ("FieldSpec", "Select")
_MOST_SHOWN = 300  # characters of a value


def shortened(text: str) -> str:
    """Shorten a value for an error: a long value ends with `…`."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def message_of(found: ErrorDetails, loc: tuple[str | int, ...]) -> str:
    """Return the message for one of pydantic's errors at `loc`."""
    if loc[-1:] == ("default",):  # each kind that it may have is an error
        return "must be text, a number, true or false"
    if found["type"].startswith("model_"):
        key = next((str(part) for part in reversed(loc) if isinstance(part, str)), "")
        of = str((found.get("ctx") or {}).get("class_name", ""))
        return _SELECTOR.format(key=key) if of in _SELECTORS else f"must be a table, as [{'.'.join(map(str, loc))}]"
    return found["msg"].removeprefix("Value error, ").replace("Input should be ", "must be ")


_SECRET = re.compile(r"(?i)^(authorization|proxy-authorization|cookie|set-cookie)$|token|secret|passw|api[-_]?key|session")
_MOST_LINES = 40  # a list of 1,000 wrong values is 1,000 faults, each of which shows the list
_FROM_ENVIRONMENT = re.compile(r"\$\{\w+\}")


def lines(read: layers.Layers, error: ValidationError) -> list[str]:
    """Return one line for each of pydantic's errors, up to a limit."""
    found = error.errors()
    messages = list(dict.fromkeys(_line(read, one) for one in found[:_MOST_LINES]))
    more = len(found) - _MOST_LINES
    return [*messages, f"{read.files[0]}: {more:,} more faults"] if more > 0 else messages


def secrets(read: layers.Layers) -> list[str]:
    """Return one line for each secret in a file: files are copied, committed and shown."""
    found = []
    for table in ("headers", "cookies"):
        values = read.written.get(table)
        for name, value in values.items() if isinstance(values, dict) else ():
            secret = table == "cookies" or _SECRET.search(name)
            if secret and isinstance(value, str) and value and not _FROM_ENVIRONMENT.search(value):
                file = layers.origin(read, (table, name))
                variable = re.sub(r"\W+", "_", f"{read.files[0].stem}_{name}").upper()
                found.append(
                    f"{file}: {table}.{name} = '…': a secret must not stand in the file: write {name} = \"${{{variable}}}\" and "
                    f"set {variable} in the environment"
                )
    return found


def _line(read: layers.Layers, found: ErrorDetails) -> str:
    loc = tuple(part for part in found["loc"] if part != "function-before")
    if loc[-2:-1] == ("default",):  # a union: the last part is the member that was tried
        loc = loc[:-1]
    key = ".".join(str(part) for part in loc) or "file"
    file = layers.origin(read, loc)
    value = _written(read.written, loc)
    message = message_of(found, loc)
    if found["type"] == "extra_forbidden":
        message = f"there is no such key{_hint(loc)}"
    elif loc == ("name",) and found["type"] == "string_pattern_mismatch":
        return f"{file}: a site's name has letters, digits, '.', '_', '-' and begins with a letter or digit: rename the file"
    elif found["type"] == "missing":
        return f"{read.files[0]}: {key} is missing{_fix(loc)}"
    shown = "" if isinstance(value, dict) else f" = {shortened(repr(value))}"
    if loc[:1] in (("headers",), ("cookies",)):
        shown = " = '…'"
    return f"{file}: {key}{shown}: {message}"


def _fix(loc: tuple[str | int, ...]) -> str:
    if loc[:1] == ("pages",):
        return f': write it, or name the software, as profile = "…" (profiles: {", ".join(layers.profile_names())})'
    return ": write it"


def _hint(loc: tuple[str | int, ...]) -> str:
    """Return a hint: the most similar key, else the known keys."""
    model = _model_at(loc[:-1])
    if model is None:
        return ""
    known = [field.alias or name for name, field in model.model_fields.items() if not field.exclude]
    close = get_close_matches(str(loc[-1]), known, n=1)
    return f": did you mean {close[0]}?" if close else f": known are {', '.join(known)}"


def _model_at(loc: tuple[str | int, ...]) -> type[BaseModel] | None:
    model: type[BaseModel] | None = Site
    for part in loc:
        field = model.model_fields.get(str(part)) if model else None
        model = _model_of(field.annotation) if field else None
    return model


def _model_of(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_of(part) for part in getattr(annotation, "__args__", ()))
    return next((model for model in found if model), None)


def _written(values: Any, loc: tuple[str | int, ...]) -> Any:
    for part in loc:
        try:
            values = values[part]
        except (KeyError, IndexError, TypeError):
            return values
    return values


Checks = Mapping[str, Callable[[str], None]]
"""Checks of options that only their user can read (`quiet`, `lane`), by name. Each raises ValueError."""


def site_of(read: layers.Layers, checks: Checks | None = None) -> Site:
    """Return the site that a file and its profiles describe. Raises SiteError with all faults, one line each."""
    path = read.files[0]
    fields: dict[str, Any] = {"name": path.stem, **read.values}
    wrong = secrets(read)
    try:
        site = Site.model_validate(fields, context=checks)
    except ValidationError as exc:
        raise SiteError("\n".join(lines(read, exc) + wrong)) from exc
    if site.name != path.stem:
        wrong.append(f"{path}: name = {site.name!r}: must be {path.stem!r}, as the file is named")
    if wrong:
        raise SiteError("\n".join(wrong))
    return site
