"""`trawl health`, as the help lists it; `cli.start` runs it without loading this."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.health import main


def health(
    target: Annotated[str, typer.Argument(metavar="worker|beat|URL", help="Of which process on this machine.")] = "worker",
) -> None:
    """Check that the worker of this machine does its job, or waits and knows why; for containers and systemd.

    Exit code 0, else 1, and a line. Asks neither Redis nor Celery: it reads the status files in TRAWL_HEALTH_DIR. Flower and the
    exporter are asked at http://127.0.0.1:5555/healthcheck and http://127.0.0.1:9410/livez.
    """
    raise typer.Exit(main([target]))
