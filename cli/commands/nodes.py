"""`trawl nodes`: the machines that host crawlers, and what a fleet of a size needs, from measured constants."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Annotated

import typer

from cli.access.redis import redis_client
from cli.views.fleet_tables import node_json, nodes_table
from cli.views.options import AsJson
from cli.views.output import complain, echo, in_plain_json, print_json
from cli.views.tables import console
from redis_components.errors import ConfigError
from redis_components.server.untrusted_values import server_time
from workers.fleet.capacity_plan import Demand, plan
from workers.state.nodes import Nodes

app = typer.Typer(no_args_is_help=True, help="Show the nodes (`trawl nodes`), and compute what a fleet needs.")


@app.command("list")
def list_nodes(as_json: AsJson = False) -> int:
    """Show the nodes: their services, crawlers and capacity, and whether they are drained.

    A node is a Celery worker that consumes the queue of a service (`-Q crawlers.forum_detail`), or of all (`-Q crawlers`). A node
    without a heartbeat for 15 s is **gone**; its crawlers start on other nodes when their slots have expired.

    **Examples:**

        trawl nodes
        trawl nodes --json | jq '.[] | select(.state == "up") | .name'
    """
    with redis_client() as client:
        found, now = Nodes(client).all(), server_time(client)
    if as_json:
        print_json([node_json(one, now) for one in found])
    elif found:
        console().print(nodes_table(found, now))
    else:
        echo("No node is running. Start one with `trawl up`, or with `celery -A tasks worker`.")
    return 0


class Kind(StrEnum):
    """Kinds of pages."""

    JSON = "json"
    HTML = "html"
    BROWSER = "browser"


_BIG = 1_000_000_000_000


@app.command()
def capacity(
    pages_per_second: Annotated[float, typer.Argument(metavar="PAGES_PER_SECOND", help="Of all sites.", min=0.001, max=1e6)],
    latency: Annotated[float, typer.Option(metavar="S", help="Seconds from a request to its page.", min=0.0, max=600)] = 0.5,
    kind: Annotated[Kind, typer.Option(help="Of the pages.")] = Kind.HTML,
    rows: Annotated[float, typer.Option(metavar="N", help="Posts and comments on a page.", min=0, max=1e5)] = 10.0,
    queued: Annotated[int, typer.Option(metavar="N", help="Most requests that wait at one time.", min=0, max=_BIG)] = 0,
    seen: Annotated[int, typer.Option(metavar="N", help="URLs that the dupefilter holds.", min=0, max=_BIG)] = 0,
    threads: Annotated[int, typer.Option(metavar="N", help="Threads that are watched.", min=0, max=_BIG)] = 0,
    stored: Annotated[int, typer.Option(metavar="N", help="Posts and comments in the database.", min=0, max=_BIG)] = 0,
    as_json: AsJson = False,
) -> int:
    """Compute what a fleet needs: crawlers, cores, memory, Redis operations, rows per second. Nothing is started.

    The constants were measured on two cores (`benchmarks/results`, named in `workers/fleet/capacity_plan.py`). Your cores and
    pages are others: take it for a first guess, and look at `trawl status` then. Planned are 60 % of each core and of each
    crawler's requests at a time. `--kind browser` is for a download handler that opens each page in a headless Chromium.

    **Examples:**

        trawl nodes capacity 20
        trawl nodes capacity 200 --kind json --threads 2000000 --queued 500000
    """
    if not all(map(math.isfinite, (pages_per_second, latency, rows))):
        raise ConfigError("PAGES_PER_SECOND, --latency and --rows are numbers, such as 20 or 0.5")
    demand = Demand(
        pages_per_s=pages_per_second,
        latency_s=latency,
        kind=kind.value,
        rows_per_page=rows,
        queued=queued,
        seen=seen,
        threads=threads,
        stored=stored,
    )
    found = plan(demand)
    if as_json:
        print_json(in_plain_json(found) | {"warnings": found.warnings})
        return 0
    echo(
        f"crawlers            {found.crawlers:,}",
        f"cores for them      {found.cores:.1f}",
        f"memory of nodes     {found.nodes_mib:,} MiB",
        f"memory of Redis     {found.redis_mib:,} MiB",
        f"Redis operations    {found.redis_commands_per_s:,.0f}/s, {found.redis_core:.0%} of a core",
        f"database            {found.rows_per_s:,.0f} rows/s, {found.writer:.0%} of what one writer stores into SQLite",
        f"disk of database    {found.database_mib:,} MiB",
    )
    for warning in found.warnings:
        complain(warning)
    return 0
