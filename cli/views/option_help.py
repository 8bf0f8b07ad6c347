"""How options are described and refused: typer shows types of Python and sentences of its validator, people read words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typer import core
from typer.exceptions import TyperException

_NAMES = {"site": "SITE", "since": "WHEN", "service": "SERVICE", "file": "FILE"}  # by the parameter's name; others: TEXT
_REFUSALS: dict[str, Callable[[Any, dict[str, Any]], str]] = {  # pydantic's types of errors, with the value and their context
    "int_parsing": lambda value, _: f"{value!r} is not a whole number",
    "int_from_float": lambda value, _: f"{value!r} is not a whole number",
    "float_parsing": lambda value, _: f"{value!r} is not a number",
    "bool_parsing": lambda value, _: f"{value!r} is neither true nor false",
    "greater_than_equal": lambda value, context: f"{value} is too small: at least {context['ge']}",
    "less_than_equal": lambda value, context: f"{value} is too large: at most {context['le']}",
    "value_error": lambda _, context: str(context["error"]),
}


def describe_types_in_words() -> None:
    """From now on help shows `N`, `FILE`, `a | b` and nothing for a switch, where typer writes `<int range>` and `<bool>`; in
    a line of usage `SERVICE` for its `{SERVICE}`.

    typer has no setting for it, and makes the option --help only when it is shown; so the methods of all parameters are replaced.
    A parameter with a metavar keeps that.
    """
    core._TyperParameter.display_type = _type_in_words  # type: ignore[method-assign, assignment]
    core.TyperArgument._usage_display_name = argument_in_usage  # type: ignore[method-assign, assignment]


def argument_in_usage(one: Any) -> str:
    """`SERVICE` where it has to be given, `[SERVICE]` where it may be, with `...` where several are taken."""
    name = one.metavar or one.name.upper()
    return (name if one.required else f"[{name}]") + ("..." if one.nargs != 1 else "")


def _type_in_words(param: Any, _context: Any) -> str:
    kind = param.type_descriptor
    if kind.is_choice:
        return " | ".join(str(getattr(one, "value", one)) for one in kind.choices)
    if getattr(param, "is_flag", False) or param.param_type_name == "argument":  # an argument has its name in the first column
        return ""
    if kind.is_path:
        return "FILE"
    known = {int: "N", float: "NUMBER"}
    return known.get(kind.annotation) or _NAMES.get(param.name, "TEXT")


def refusal(error: TyperException) -> str:
    """The sentence for wrong use, "" where the help was shown instead. The validator's own words are translated."""
    message = error.format_message()
    faults: Callable[[], list[dict[str, Any]]] | None = getattr(error.__cause__, "errors", None)
    if faults is None:
        return message
    fault = faults()[0]
    words = _REFUSALS.get(fault["type"])
    return message.replace(str(fault["msg"]), words(fault["input"], fault.get("ctx", {}))) if words else message
