"""How environment variables are declared and read: a model of pydantic for each group that is read together.

    class Logs(Variables):
        log_files: Whole = declare(3, "rotated log files of each slot", rule="must be from 1 to 100", ge=1, le=100)

    Logs.read().log_files        TRAWL_LOG_FILES, else 3; ConfigError "TRAWL_LOG_FILES='0': must be from 1 to 100"

A group is validated as a whole when it is read, and only then: a wrong value stops what reads its group, nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, Self

import pydantic
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from redis_components.errors import ConfigError
from redis_components.server.url import masked
from redis_components.server.variables import variable

PREFIX = "TRAWL_"


class Secret(pydantic.Secret[str]):
    """A text that is never printed: `str`, `repr` and JSON show a URL without its password, and of any other text nothing.

    `get_secret_value()` returns it.
    """

    def _display(self) -> str:
        text = self.get_secret_value()
        return masked(text) if "://" in text else "***" if text else ""


class Variables(BaseModel):
    """Base of a group."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="ignore")

    @classmethod
    def read(cls) -> Self:
        """The values now. Raises ConfigError for the first one that is wrong."""
        try:
            return cls.validated()
        except ValidationError as error:
            raise ConfigError(next(iter(faults(cls, error).values()))) from None

    @classmethod
    def validated(cls) -> Self:
        """The values now. Raises ValidationError for all that are wrong, ConfigError for a file that cannot be read."""
        found = {field: variable(variable_name(field)) for field in cls.model_fields}
        return cls.model_validate({field: text for field, text in found.items() if text is not None})


def faults(group: type[Variables], error: ValidationError) -> dict[str, str]:
    """By the name of the field one line with variable, value (unless it is secret) and what it must be."""
    wrong = [one for one in error.errors() if one["type"] != "default_factory_not_called"]  # follows from another one
    return {str(one["loc"][0]): _line(group, one) for one in reversed(wrong)}  # of several in one field the first


def declare(
    default: Any = ...,
    meaning: str = "",
    *,
    rule: str = "",
    shown: str = "",
    factory: Callable[..., Any] | None = None,
    **bounds: Any,
) -> Any:
    """A variable. `meaning` is Markdown of docs/settings.md, `shown` the default there; `rule` ends "NAME='value': "."""
    more: dict[str, Any] = {"rule": rule, "shown": shown}
    if factory:
        return Field(default_factory=factory, description=meaning, json_schema_extra=more, **bounds)
    return Field(default=default, description=meaning, json_schema_extra=more, validate_default=False, **bounds)


def variable_name(field: str) -> str:
    """`TRAWL_LOG_FILES` for `log_files`."""
    return f"{PREFIX}{field.upper()}"


def extra(field: FieldInfo, name: str) -> str:
    """`rule` or `shown` of a declared field."""
    return str(field.json_schema_extra[name]) if isinstance(field.json_schema_extra, dict) else ""


def is_secret(field: FieldInfo) -> bool:
    """Whether its value is never printed."""
    return "Secret" in str(field.annotation)


def _line(group: type[Variables], error: Any) -> str:
    field = str(error["loc"][0])
    name, info = variable_name(field), group.model_fields[field]
    if error["type"] == "value_error":  # of a parser in `values.py`, which has its own sentence
        return str(error["ctx"]["error"])
    value = "" if is_secret(info) else f"={variable(name)!r:.200}"
    return f"{name}{value}: {extra(info, 'rule')}"


# types


def parsed_by(parse: Callable[[str], Any]) -> BeforeValidator:
    """The text goes through `parse`, which raises ConfigError."""

    def validate(value: Any) -> Any:
        try:
            return parse(value) if isinstance(value, str) else value
        except ConfigError as error:
            raise ValueError(str(error)) from None

    return BeforeValidator(validate)


def _plain_number(form: str) -> BeforeValidator:
    """Pydantic also takes 1_000 and 1e3, which nobody means."""

    def validate(value: Any) -> Any:
        return value if not isinstance(value, str) or re.fullmatch(form, value, re.ASCII) else None

    return BeforeValidator(validate)


def _none_if_empty(value: Any) -> Any:
    return None if value == "" else value


Whole = Annotated[int, _plain_number(r"\d{1,18}")]
Number = Annotated[float, _plain_number(r"\d{1,18}(\.\d{1,18})?")]
EmptyIsNone = BeforeValidator(_none_if_empty)
"""An empty text is none: compose files pass `${NAME:-}` on."""
Switch = Annotated[bool, BeforeValidator(lambda value: value.strip() or False if isinstance(value, str) else value)]
