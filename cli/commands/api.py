"""`trawl api`: serve the HTTP API."""

from __future__ import annotations

import os
from typing import Annotated, NoReturn

import typer

from workers.process.run_module import own_module


def api(
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="PORT", help="0 takes any free one.")] = 6800,
) -> NoReturn:
    """Serve the fleet's HTTP API, with scrapyd's schedule.json, until Ctrl-C or SIGTERM.

    It needs TRAWL_API_READ_TOKEN or TRAWL_API_ACT_TOKEN, in the environment or in `.env`. Exit code 1 if it cannot serve.

    **Examples:**

        trawl api
        trawl api --host 0.0.0.0 --port 6801
    """
    command = own_module("monitoring.api", f"--host={host}", f"--port={port}")
    os.execv(command[0], command)  # noqa: S606 - no shell is what we want
