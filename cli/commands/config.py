"""`trawl config show`: the environment variables as this command, and every process that it starts, reads them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from cli.views.environment import rows, unknown
from cli.views.output import complain, console, plain_table, print_json

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


@app.callback()
def config() -> None:
    """Show the configuration.

    **Examples:**

        trawl config show
        trawl config show --origin
    """


@app.command()
def show(
    with_origin: Annotated[bool, typer.Option("--origin", help="Also show where each value comes from.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> int:
    """Show every TRAWL_* variable with its value; passwords are masked.

    A value comes from the environment, from the file that NAME_FILE names, from `.env` next to `scrapy.cfg`, or is the default.
    Wrong values and unknown names are reported on standard error; with a wrong value the exit code is 2.

    **Examples:**

        trawl config show --origin
        trawl config show --json | jq '.[] | select(.origin != "default")'
    """
    found = rows()
    if as_json:
        print_json([asdict(row) for row in found])
    else:
        table = plain_table("variable", "value", *(["origin"] if with_origin else []))
        for row in found:
            table.add_row(row.variable, row.value or ("wrong" if row.fault else ""), *([row.origin] if with_origin else []))
        console().print(table)
    wrong = [row.fault for row in found if row.fault]
    for line in (*wrong, *unknown()):
        complain(line)
    return 2 if wrong else 0
