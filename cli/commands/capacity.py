"""`trawl capacity`: what a fleet of a size needs, from measured constants."""

from __future__ import annotations

import math
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated

import typer

from cli.views.output import complain, print_json, say
from redis_components.errors import ConfigError
from workers.fleet.capacity_plan import Demand, plan


class Kind(StrEnum):
    """Of pages."""

    JSON = "json"
    HTML = "html"
    BROWSER = "browser"


_BIG = 1_000_000_000_000


def capacity(
    pages_per_second: Annotated[float, typer.Argument(metavar="PAGES_PER_SECOND", help="Of all sites.", min=0.001, max=1e6)],
    latency: Annotated[float, typer.Option(metavar="S", help="Seconds from a request to its page.", min=0.0, max=600)] = 0.5,
    kind: Annotated[Kind, typer.Option(help="Of the pages.")] = Kind.HTML,
    rows: Annotated[float, typer.Option(metavar="N", help="Posts and comments on a page.", min=0, max=1e5)] = 10.0,
    queued: Annotated[int, typer.Option(metavar="N", help="Most requests that wait at one time.", min=0, max=_BIG)] = 0,
    seen: Annotated[int, typer.Option(metavar="N", help="URLs that the dupefilter holds.", min=0, max=_BIG)] = 0,
    threads: Annotated[int, typer.Option(metavar="N", help="Threads that are watched.", min=0, max=_BIG)] = 0,
    stored: Annotated[int, typer.Option(metavar="N", help="Posts and comments in the database.", min=0, max=_BIG)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> int:
    """Compute what a fleet needs: crawlers, cores, memory, Redis operations, rows per second. Starts and asks nothing.

    The constants were measured on two cores (`benchmarks/results`, named in `workers/fleet/capacity_plan.py`). Your cores and
    pages are others: take it for a first guess, and look at `trawl status` then. Planned are 60 % of each core and of each
    crawler's requests at a time. `--kind browser` is for a download handler that opens each page in a headless Chromium.

    **Examples:**

        trawl capacity 20
        trawl capacity 200 --kind json --threads 2000000 --queued 500000
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
        print_json({**asdict(found), "warnings": list(found.warnings)})
        return 0
    say(
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
