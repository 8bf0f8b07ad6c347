"""Options of a command that is a group, too: they are for the command alone."""

from __future__ import annotations

import typer


def refuse_own_options(context: typer.Context, *, given: bool) -> None:
    """Raise BadParameter where options stand before the subcommand. `given`: whether one other than `--limit` does."""
    if given or context.get_parameter_source("limit").name == "COMMANDLINE":  # type: ignore[union-attr]  # it was parsed
        raise typer.BadParameter(f"options of {context.invoked_subcommand} stand behind it")
