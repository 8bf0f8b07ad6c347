"""Site of the merged content of a site file, the messages for its faults, which name the fix, and advice on allowed values."""

from __future__ import annotations

import json
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
_WORDS = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "int_parsing": "must be a whole number, without quotes",
    "int_type": "must be a whole number, without quotes",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number, without quotes",
    "float_type": "must be a number, without quotes",
    "string_type": "must be text: write it in quotes, as in {key} = {quoted}",
    "greater_than": "must be above {gt:g}",
    "greater_than_equal": "must be {ge:g} or more",
    "less_than_equal": "must be {le:g} or less",
    "less_than": "must be below {lt:g}",
    "literal_error": "must be one of {expected}",
    "string_too_long": "is longer than {max_length} characters",
    "string_pattern_mismatch": "must not hold spaces or signs that an address has no place for",
    "tuple_type": "must be a list, as in {key} = [{quoted}]",
    "url_scheme": "must begin with http:// or https://",
    "url_parsing": "must be an address, as https://forum.example.org",
    "url_type": "must be an address in quotes, as https://forum.example.org",
    "dict_type": "must be a table, as [{path}]",
}
_SELECTORS = ("FieldSpec", "Select")
_MOST_SHOWN = 300  # characters of a value


def shortened(text: str) -> str:
    """Shorten a value for an error: a long value ends with `…`."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def message_of(found: ErrorDetails, loc: tuple[str | int, ...], value: Any) -> str:
    """Return the message for one of pydantic's errors at `loc`, where the file has `value`."""
    key = next((str(part) for part in reversed(loc) if isinstance(part, str)), "")
    quoted = shortened(json.dumps(value, ensure_ascii=False, default=str))
    given = {"key": key, "path": ".".join(map(str, loc)), "quoted": quoted}
    if loc[:1] in (("headers",), ("cookies",)):
        given["quoted"] = '"…"'  # it may be a secret
    elif found["type"] == "string_type":
        given["quoted"] = shortened(json.dumps(str(value), ensure_ascii=False))
    if loc[-1:] == ("default",):
        return "must be text, a number, true or false"
    if found["type"].startswith("model_"):
        of = str((found.get("ctx") or {}).get("class_name", ""))
        return (_SELECTOR if of in _SELECTORS else "must be a table, as [{path}]").format(**given)
    words = _WORDS.get(found["type"])
    if words is not None:
        return words.format(**{**given, **(found.get("ctx") or {})})
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
    message = message_of(found, loc, value)
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


def advice(site: Site) -> list[str]:
    """Return one sentence for each setting that will cost requests, or lose data unnoticed."""
    found = []
    listed, comments = site.pages.list, site.pages.comments
    if not (listed.fields.token or listed.fields.reply_count or listed.fields.last_activity):
        found.append(
            "pages.list.fields has neither token nor reply_count nor last_activity: changed threads cannot be recognised"
        )
    if listed.next is None and listed.cursor is None and not listed.is_numbered:
        found.append("pages.list has no `next`, and neither url nor body a {page}: only its first page is read")
    if site.pages.thread is None and not comments.first_is_post and comments.post is None:
        found.append("the opening post is on no page: add [pages.thread], [pages.comments.post] or first_is_post = true")
    if comments.repeats_post and not comments.first_is_post:
        found.append("pages.comments.repeats_post has no effect without first_is_post = true")
    return found
