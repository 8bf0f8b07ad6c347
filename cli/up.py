"""`trawl up`: the whole fleet on this machine, until Ctrl-C."""

from __future__ import annotations

import os
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from .node_services import FlowerAccess

TICK_S = 0.1
_COLOURS = {"trawl": "bold white", "worker": "cyan", "beat": "magenta", "flower": "yellow", "exporter": "green"}


def up(
    fleet: Annotated[
        str | None,
        typer.Option(
            metavar="SERVICE=N,...", help="Services and their number of crawlers; none: as it was.", show_default=False
        ),
    ] = None,
    port_flower: Annotated[int, typer.Option(min=0, max=65_535, help="Port of Flower, 0 for any.")] = 5555,
    port_exporter: Annotated[int, typer.Option(min=0, max=65_535, help="Port of metrics and status page, 0 for any.")] = 9410,
) -> int:
    """Start Redis, a worker with its crawlers, beat, Flower and the exporter here, until Ctrl-C.

    Everything listens on this machine only. What dies is started again; Ctrl-C stops all of it in order: crawlers finish their
    pages, and what is queued waits in `data/` for the next time. A second Ctrl-C does not wait.

    Flower asks for a password: a new one each time, or TRAWL_FLOWER_AUTH (`user:password`). The crawlers' own logs are in
    `data/logs/`.

    **Examples:**

        trawl up
        trawl up --fleet forum_list=1,forum_detail=4 --port-flower 0
    """
    from .interrupts import Interrupts
    from .node_services import FlowerAccess, node_services
    from .output import console
    from .ports import take
    from .redis_access import redis_client
    from .services import Services

    interrupts = Interrupts()
    interrupts.listen()
    flower = FlowerAccess.on(take(port_flower, of="Flower", option="--port-flower"))
    exporter = take(port_exporter, of="the exporter", option="--port-exporter")
    log = _Log(console())
    with redis_client() as client:
        _resize(client, fleet)
    _welcome(log, flower, exporter)
    services = Services(node_services(flower, exporter), log.line)
    try:
        services.start()
        while not interrupts.asked:
            services.tend()
            time.sleep(TICK_S)
        log.line("trawl", "stopping; crawlers finish their pages (Ctrl-C again: at once)")
    finally:
        services.stop(hurry=lambda: interrupts.impatient)
    log.line("trawl", "everything is stopped")
    return 0
