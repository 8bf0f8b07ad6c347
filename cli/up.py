"""`trawl up`: the whole fleet on this machine, until Ctrl-C."""

from __future__ import annotations

import os
import re
import threading
import time
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import redis
    from rich.console import Console

    from .node_services import FlowerAccess

TICK_S = 0.1
_COLOURS = {"trawl": "bold", "worker": "cyan", "beat": "magenta", "flower": "yellow", "exporter": "green"}
# What beat starts every few seconds, and ended well: true, and of no interest to anybody.
_ROUTINE = re.compile(
    # also "Discarding revoked task": on a busy machine one that expired before its turn; the next one does its work
    r"([Tt]ask:?) trawl\.(store_items|reconcile_fleet|seed_forums|recheck_threads|probe_sites|prune_raw_pages)"
    r"\[[\w-]+\]( received| succeeded|$)"
)


def up(
    fleet: Annotated[
        str | None,
        typer.Option(metavar="SERVICE=N,...", help="Number of crawlers of some services, as `trawl scale`.", show_default=False),
    ] = None,
    port_flower: Annotated[int, typer.Option(min=0, max=65_535, help="Port of Flower, 0 for any.")] = 5555,
    port_exporter: Annotated[int, typer.Option(min=0, max=65_535, help="Port of metrics and status page, 0 for any.")] = 9410,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also log what crawlers do, and the tasks that run every few seconds.")
    ] = False,
) -> int:
    """Start Redis, a worker with its crawlers, beat, Flower and the exporter on this machine, until Ctrl-C.

    Everything listens on this machine only. What dies is started again. Ctrl-C stops all of it in order: crawlers finish their
    pages, and what is queued waits in `data/` for the next time; a second Ctrl-C does not wait.

    Flower asks for a password: a new one each time, or TRAWL_FLOWER_AUTH (`user:password`). Of the crawlers only warnings
    and errors are shown here; `trawl logs -f` shows all that they say.

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
    os.environ.setdefault("TRAWL_LOG_STREAM", "INFO" if verbose else "WARNING")  # of crawlers; everything is in their files
    flower = FlowerAccess.on(take(port_flower, of="Flower", option="--port-flower"))
    exporter = take(port_exporter, of="the exporter", option="--port-exporter")
    with redis_client() as client:
        size = _resize(client, fleet)
    log = _Log(console(), verbose=verbose)
    _welcome(log, size, flower, exporter)
    services = Services(node_services(flower, exporter), log.line)
    try:
        services.start()
        while not interrupts.asked:
            services.tend()
            time.sleep(TICK_S)
        log.line("trawl", "stopping: crawlers finish their pages (Ctrl-C again: at once)")
    finally:
        services.stop(hurry=lambda: interrupts.impatient)
    log.line("trawl", "everything is stopped; what is queued and stored stays")
    return 0


def _resize(client: redis.Redis, fleet: str | None) -> dict[str, int]:
    """Scale as asked, and make room for that on this node; the desired size of every service. Raises ConfigError."""
    from redis_components.autoscaling import Autoscaling
    from redis_components.registry import Registry
    from workers.fleet import node_crawlers, scale

    from .scale import parse_sizes

    desired = scale(Registry(client), Autoscaling(client), parse_sizes([fleet]) if fleet else {})
    # For the worker, our child: it would make room for the default fleet only.
    os.environ.setdefault("TRAWL_NODE_CRAWLERS", str(max(node_crawlers(), sum(desired.values()))))
    return desired


def _welcome(log: _Log, size: dict[str, int], flower: FlowerAccess, exporter_port: int) -> None:
    from redis_components.embedded import data_dir, redis_url
    from redis_components.redis_url import masked

    from .scale import sentence

    log.line("trawl", f"fleet     {sentence(size)}")
    log.line("trawl", f"Redis     {masked(redis_url())}")
    log.line("trawl", f"Flower    {flower.url}  user {flower.user}, password {flower.password}")
    log.line("trawl", f"exporter  http://127.0.0.1:{exporter_port}  (status page, /metrics)")
    log.line("trawl", f"logs      {data_dir() / 'logs'}  (one for each crawler)")
    log.line("trawl", "Ctrl-C stops everything; in another terminal: trawl seed, trawl status --watch")


class _Log:
    """One log of all processes, each line with the name of its process before it."""

    def __init__(self, console: Console, *, verbose: bool) -> None:
        self._console = console
        self._verbose = verbose
        self._lock = threading.Lock()

    def line(self, name: str, text: str) -> None:
        from rich.text import Text

        if not self._verbose and _ROUTINE.search(text):
            return
        with self._lock:
            self._console.print(Text.assemble((f"{name:<8} │ ", _COLOURS.get(name, "")), text), soft_wrap=True)
