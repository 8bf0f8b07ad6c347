"""`trawl up`: the whole fleet on this machine, until Ctrl-C; `trawl api`: its HTTP API."""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from contextlib import suppress
from typing import Annotated, NoReturn

import psutil
import redis
import typer
from rich.console import Console
from rich.text import Text

from cli.access.redis import redis_client, running_url
from cli.processes.interrupts import Interrupts
from cli.processes.node_services import FlowerAccess, node_services
from cli.processes.ports import PortInUse, take
from cli.processes.services import Services
from cli.views.environment import rows, unknown
from cli.views.output import complain
from cli.views.tables import console
from redis_components.embedded import data_dir, redis_url
from redis_components.errors import ConfigError, TrawlError
from redis_components.server.untrusted_values import server_time
from redis_components.server.url import masked
from redis_components.server.variables import refuse_example_secrets, variable
from workers.application import application
from workers.environment.machine import memory_bytes
from workers.fleet.shared_files import differences, shared_digests
from workers.fleet.sizes import default_fleet, largest_fleet, node_crawlers, scale
from workers.process import start_checks
from workers.process.run_module import own_module
from workers.state.autoscaling import Autoscaling
from workers.state.nodes import NodeRecord, Nodes
from workers.state.registry import Registry

from .scale import parse_sizes, sentence, too_much_for_machine

TICK_S = 0.1
INTERRUPTED = 130
_COLOURS = {"trawl": "bold", "worker": "cyan", "beat": "magenta", "flower": "yellow", "exporter": "green"}
# Successful tasks that beat starts every few seconds.
_ROUTINE = re.compile(
    # also "Discarding revoked task": on a busy machine one that expired before its turn; the next one does its work
    r"([Tt]ask:?) trawl\.(store_items|consume_items|reconcile_fleet|seed_forums"
    r"|recheck_threads|probe_sites|publish_events|notify_alarms|sample_fleet|prune_raw_pages)"
    r"\[[\w-]+\]( received| succeeded|$)"
    r"|Inspect method \w+ failed"  # Flower asks before the worker answers, and again soon
)


def up(
    fleet: Annotated[
        str | None, typer.Option(metavar="SERVICE=N,...", help="Number of crawlers of services, as for `trawl scale`.")
    ] = None,
    port_flower: Annotated[int, typer.Option(min=0, max=65_535, help="Port of Flower; 0 takes a free one.")] = 5555,
    port_exporter: Annotated[
        int, typer.Option(min=0, max=65_535, help="Port of metrics and status page; 0 takes a free one.")
    ] = 9410,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also show INFO lines of crawlers, and tasks that run every few seconds.")
    ] = False,
) -> int:
    """Start Redis, a worker with its crawlers, beat, Flower and the exporter on this machine, until Ctrl-C.

    Everything listens on loopback only. A process that dies is restarted. Ctrl-C stops everything in order: crawlers finish
    their pages, and queued requests wait in `data/` for the next start; a second Ctrl-C does not wait. The exit code is 0
    after Ctrl-C or SIGTERM, 1 where something did not start or did not stay up.

    A second `trawl up` with the same Redis is a second node of the same fleet, and prints that; on one machine it takes
    other ports (`--port-flower 0 --port-exporter 0`). Another fleet has another TRAWL_DATA_DIR, or another TRAWL_NAMESPACE.

    Flower asks for a password: a new one each time, or TRAWL_FLOWER_AUTH (`user:password`). Only warnings
    and errors of the crawlers are shown; `trawl logs -f` shows everything.

    **Examples:**

        trawl up
        trawl up --fleet forum_list=1,forum_detail=4 --port-flower 0
    """
    refuse_example_secrets(os.environ)
    _refuse_wrong_variables()
    start_checks.require_for_worker(node_crawlers())
    application().check()
    interrupts = Interrupts()
    interrupts.listen()
    if variable("TRAWL_LOG_STREAM") is None:
        os.environ["TRAWL_LOG_STREAM"] = "INFO" if verbose else "WARNING"  # of crawlers; everything is in their files
    try:
        flower = FlowerAccess.on(take(port_flower, of="Flower", option="--port-flower"), kept=port_flower != 0)
        exporter = take(port_exporter, of="the exporter", option="--port-exporter")
    except PortInUse as error:
        if _runs_here() is None:
            raise
        raise TrawlError(
            "this fleet runs here already (trawl up): trawl status shows it; a second node on this machine takes other "
            "ports: trawl up --port-flower 0 --port-exporter 0"
        ) from error
    first = _runs_here()
    for line in application().start_warnings(default_fleet()):
        complain(line)
    with redis_client() as client:
        _refuse_to_differ(client)
        size = _resize(client, fleet)
    if interrupts.count:
        return INTERRUPTED
    log = _Log(console(), verbose=verbose)
    if first:
        log.line("trawl", f"this fleet runs here already, as node {first}: this is a second node of it, not a second fleet")
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


def _refuse_wrong_variables() -> None:
    """Raise ConfigError for a value that crawlers or another process would refuse again and again; report unknown names."""
    if wrong := [row.fault for row in rows() if row.fault]:
        raise ConfigError("; ".join(wrong))
    for line in unknown():
        complain(line)


def _runs_here() -> str | None:
    """Return the node of another `trawl up` of this fleet on this machine; None where none runs."""
    if (url := running_url()) is None:
        return None
    with suppress(TrawlError), redis_client(url) as client:
        now, here = server_time(client), re.compile(rf"up-(\d+)@{re.escape(socket.gethostname())}")
        for node in Nodes(client).all():
            # The heartbeat of a killed node is valid for some seconds more.
            if (found := here.fullmatch(node.name)) and node.alive(now) and psutil.pid_exists(int(found[1])):
                return node.name
    return None


def _refuse_to_differ(client: redis.Redis) -> None:
    """Raise TrawlError where this machine has another database or other files than the nodes that run elsewhere."""

    application().check_node(client)
    here, now = socket.gethostname(), server_time(client)
    others = [node for node in Nodes(client).all() if node.alive(now) and not node.name.endswith(f"@{here}")]
    if found := differences([*others, NodeRecord(name=f"this machine ({here})", files=shared_digests())]):
        raise TrawlError(f"{'; '.join(found)}: copy them from one to the other, then start again")


def _resize(client: redis.Redis, fleet: str | None) -> dict[str, int]:
    """Scale as requested, and make room for that on this node; return the size of every service. Raises ConfigError."""
    autoscaling = Autoscaling(client)
    desired = scale(Registry(client), autoscaling, parse_sizes([fleet]) if fleet else {})
    _make_room(largest_fleet(desired, autoscaling))
    return desired


def _make_room(largest: dict[str, int]) -> None:
    """Size the node, which is a child, for the requested fleet; report crawlers that have no room."""
    room, wanted = node_crawlers(), sum(largest.values())
    named = variable("TRAWL_NODE_CRAWLERS") is not None
    if named and room < wanted:
        complain(f"TRAWL_NODE_CRAWLERS={room}: this node has no room for {wanted - room} of {wanted} crawlers; raise or unset it")
    elif warning := too_much_for_machine(wanted, memory_bytes()):
        complain(warning)
    # The worker would make room for the default fleet only.
    if not named:
        os.environ["TRAWL_NODE_CRAWLERS"] = str(max(room, wanted))


def _welcome(log: _Log, size: dict[str, int], flower: FlowerAccess, exporter_port: int) -> None:
    log.line("trawl", f"fleet     {sentence(size)}")
    log.line("trawl", f"Redis     {masked(redis_url())}")
    log.line("trawl", f"Flower    {flower.url}  user {flower.user}, {flower.how_to_log_in}")
    log.line("trawl", f"exporter  http://127.0.0.1:{exporter_port}  (status page, /metrics)")
    log.line("trawl", f"logs      {data_dir() / 'logs'}  (one for each crawler)")
    seed = f"{first}, " if (first := application().first_command(size)) else ""
    log.line("trawl", f"Ctrl-C stops everything; in another terminal: {seed}trawl status --watch")


class _Log:
    """One log of all processes, each line with the name of its process before it."""

    def __init__(self, console: Console, *, verbose: bool) -> None:
        self._console = console
        self._verbose = verbose
        self._lock = threading.Lock()

    def line(self, name: str, text: str) -> None:
        if not self._verbose and _ROUTINE.search(text):
            return
        with self._lock:
            self._console.print(Text.assemble((f"{name:<8} │ ", _COLOURS.get(name, "")), text), soft_wrap=True)


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
