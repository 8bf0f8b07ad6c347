"""Plans a fleet's resources from the operator's numbers and measured constants. Pure. Each constant names the file of
`benchmarks/results/` where it was measured, on two cores with Python 3.11; a test compares them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# benchmarks/results/crawl_speed.md, "trawl 0 ms"
PAGES_PER_CORE_S = 900.0  # fetch, frontier and a page that is hardly read: 1.1 ms of CPU
REDIS_COMMANDS_PER_PAGE = 9.4
REDIS_CPU_PER_PAGE_S = 42e-6
# benchmarks/results/reading.md: the dearest of the JSON and of the HTML pages there
READ_PAGE_S = {"json": 0.55e-3, "html": 3.5e-3, "browser": 0.9}  # the last of sizes.md, "Chromium, headless"
# benchmarks/results/supervision.md: of a minute, "all commands"
REDIS_COMMANDS_OF_FLEET_S = 3_804 / 60
REDIS_COMMANDS_PER_CRAWLER_S = 14_784 / 60
# benchmarks/results/memory.md
BYTES_PER_QUEUED = 219
BYTES_PER_SEEN = 39.9
# benchmarks/results/sizes.md
BYTES_PER_THREAD = 100
BYTES_PER_ROW = 830  # SQLite, posts of 600 characters and comments of 300, indexes and the log of changes included
BROWSER_MIB = 450
# benchmarks/results/writer_rows.md, "new rows, SQLite"
ROWS_PER_S = 8_679
# A crawler that is forked: 44 to 52 MiB by its share of all pages, 36 of its pool process (members of a run, 2026-11-29).
CRAWLER_MIB = 96
# Docker containers of the demo fleet, 2026-11-22: a worker 215 to 312 MiB, the others together 300 MiB
WORKER_MIB = 312
OTHERS_MIB = 300

CONCURRENCY = 32  # workers/settings.py: CONCURRENT_REQUESTS
PLANNED = 0.6  # of a core, and of a crawler's concurrency: the rest is for bursts and for a node that is away


@dataclass(frozen=True, kw_only=True)
class Demand:
    """The operator's demand."""

    pages_per_s: float
    latency_s: float = 0.5  # of a page, from request to answer
    kind: str = "html"  # of the pages: json, html, browser
    rows_per_page: float = 10.0
    queued: int = 0  # most requests that wait at one time
    seen: int = 0  # URLs that the dupefilter holds
    threads: int = 0  # threads whose state is remembered
    stored: int = 0  # posts and comments in the database


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The resources for a demand; memory in MiB."""

    crawlers: int
    cores: float
    nodes_mib: int
    redis_mib: int
    redis_commands_per_s: float
    redis_core: float
    rows_per_s: float
    writer: float  # share of one writer's rate into SQLite
    database_mib: int  # on disk

    @property
    def warnings(self) -> tuple[str, ...]:
        """Limits that one Redis, or one writer, would exceed."""
        found = []
        if self.redis_core > PLANNED:
            found.append("one Redis is too slow: split the sites into jobs with a Redis each (TRAWL_NAMESPACE, a fleet for each)")
        if self.writer > PLANNED:
            found.append("one writer is too slow: fewer rows for each page, or PostgreSQL on faster disks")
        return tuple(found)


def plan(demand: Demand) -> Plan:
    """Return the resources for a demand. Raises KeyError for another kind of page."""
    page_s = 1 / PAGES_PER_CORE_S + READ_PAGE_S[demand.kind]
    cores = demand.pages_per_s * page_s / PLANNED
    by_latency = demand.pages_per_s * demand.latency_s / (CONCURRENCY * PLANNED)
    crawlers = max(1, math.ceil(cores), math.ceil(by_latency))  # a crawler uses one core at most
    redis = demand.queued * BYTES_PER_QUEUED + demand.seen * BYTES_PER_SEEN + demand.threads * BYTES_PER_THREAD
    commands = REDIS_COMMANDS_OF_FLEET_S + crawlers * REDIS_COMMANDS_PER_CRAWLER_S + demand.pages_per_s * REDIS_COMMANDS_PER_PAGE
    rows = demand.pages_per_s * demand.rows_per_page
    return Plan(
        crawlers=crawlers,
        cores=cores,
        nodes_mib=crawlers * (CRAWLER_MIB + (BROWSER_MIB if demand.kind == "browser" else 0)) + WORKER_MIB + OTHERS_MIB,
        redis_mib=math.ceil(redis * 1.5 / 2**20) + 64,  # an append-only file is rewritten by a fork, which copies changed pages
        redis_commands_per_s=commands,
        redis_core=demand.pages_per_s * REDIS_CPU_PER_PAGE_S + crawlers * 0.139 / 60 + 0.256 / 60,
        rows_per_s=rows,
        writer=rows / ROWS_PER_S,
        database_mib=math.ceil(demand.stored * BYTES_PER_ROW / 2**20),
    )
