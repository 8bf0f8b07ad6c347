"""Messages for wrong values of a site file, which name the fix: pydantic's own are for programmers."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import ErrorDetails

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
