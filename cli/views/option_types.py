"""Options whose values need no validator: typer builds pydantic's for each option of a command, which takes 0.1 s to load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from typer import core
from typer._click import Context
from typer._coercion import RuntimeParam, TypeDescriptor, build_runtime_param


def validate_what_needs_it() -> None:
    """From now on a default, and a text for an option that is a text, are taken as they are; all else goes through typer.

    typer has no setting for it, so the function that makes validators is replaced by one that waits until one is needed.
    """
    core.build_runtime_param = _WhenNeeded.of  # type: ignore[attr-defined]


@dataclass(frozen=True)
class _WhenNeeded(RuntimeParam):
    """Makes typer's validator for a value that needs one."""

    descriptor: TypeDescriptor

    @classmethod
    def of(cls, descriptor: TypeDescriptor) -> RuntimeParam:
        return cls(parameter_info=descriptor.parameter_info, annotation=descriptor.annotation, descriptor=descriptor)

    def _coerce_value(self, value: Any, param: Any, ctx: Context) -> Any:
        is_of_its_type = self.parameter_info.parser is None and type(value) is self.annotation
        if is_of_its_type and (self.annotation is str or value == param.default):
            return value
        return build_runtime_param(self.descriptor)._coerce_value(value, param=param, ctx=ctx)
