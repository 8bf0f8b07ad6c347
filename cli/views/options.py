"""Options of all commands: those that several commands share, and how typer describes, validates and refuses them.

typer shows types of Python and sentences of its validator, and loads pydantic for options that need no validator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer import core
from typer._click import Context
from typer._coercion import RuntimeParam, TypeDescriptor, build_runtime_param

AsJson = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Service = Annotated[str, typer.Argument(metavar="SERVICE", help="Name of the service.")]
SiteArgument = Annotated[str | None, typer.Argument(metavar="SITE", help="Name of a site.")]
OnlySite = Annotated[str | None, typer.Option("--site", metavar="SITE", help="Only of this site.")]
Since = Annotated[
    str | None, typer.Option(metavar="WHEN", help="Only what happened since then: 2h, 7d, 2026-01-31, 2026-01-31T12:00Z.")
]
SpiderArguments = Annotated[list[str] | None, typer.Option("-a", metavar="NAME=VALUE", help="An argument of the spider.")]
ScrapySettings = Annotated[list[str] | None, typer.Option("-s", metavar="NAME=VALUE", help="A Scrapy setting.")]

Services = Annotated[list[str] | None, typer.Argument(metavar="SERVICE", help="Services; by default all.")]
Newest = Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="Show at most this many.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for its end; Ctrl-C only ends the waiting.")]
SiteName = Annotated[str | None, typer.Option("--name", help="Name of the site; by default taken from its host.")]
Contact = Annotated[
    str | None, typer.Option(metavar="EMAIL|URL", help="How the site's operator reaches you; sent as User-Agent.")
]
AllowPrivate = Annotated[bool, typer.Option("--allow-private", help="Allow a private address, for a forum in your own network.")]


def command_group(**given: Any) -> typer.Typer:
    """Return a group of commands, whose help is its line in the list of commands unless it has another."""
    return typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", **given)


def prepare_typer() -> None:
    """Replace what typer has no setting for: the shown types of parameters, and the time at which validators are made.

    From then on help shows `VALUE`, `a | b` and nothing for a switch, where typer writes `<int range>` and `<bool>`; in a line
    of usage `SERVICE` for its `{SERVICE}`. A parameter with a metavar keeps that.
    """
    core._TyperParameter.display_type = _value  # type: ignore[method-assign, assignment]
    core.TyperArgument._usage_display_name = argument_in_usage  # type: ignore[method-assign, assignment]
    core.build_runtime_param = _WhenNeeded.of  # type: ignore[attr-defined]


@dataclass(frozen=True)
class _WhenNeeded(RuntimeParam):
    """Makes typer's validator for a value that needs one: pydantic takes 0.1 s to load.

    A default, and a text for an option that is a text, are taken as they are.
    """

    descriptor: TypeDescriptor

    @classmethod
    def of(cls, descriptor: TypeDescriptor) -> RuntimeParam:
        return cls(parameter_info=descriptor.parameter_info, annotation=descriptor.annotation, descriptor=descriptor)

    def _coerce_value(self, value: Any, param: Any, ctx: Context) -> Any:
        is_of_its_type = self.parameter_info.parser is None and type(value) is self.annotation
        if is_of_its_type and (self.annotation is str or value == param.default):
            return value
        return build_runtime_param(self.descriptor)._coerce_value(value, param=param, ctx=ctx)


def argument_in_usage(one: Any) -> str:
    """Return `SERVICE` for a required argument, `[SERVICE]` for an optional one, with `...` where several are taken."""
    name = one.metavar or one.name.upper()
    return (name if one.required else f"[{name}]") + ("..." if one.nargs != 1 else "")


def _value(param: Any, _context: Any) -> str:
    kind = param.type_descriptor
    if not kind.is_choice:
        return "" if getattr(param, "is_flag", False) or param.param_type_name == "argument" else "VALUE"
    return " | ".join(str(getattr(one, "value", one)) for one in kind.choices)
