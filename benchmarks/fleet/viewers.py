"""Cost of viewers of the status page: none, one, and fifty viewers of a fleet that crawls.

    python -m benchmarks.fleet.viewers [--rounds 8] [--seconds 15] [--viewers 50]

One fleet (a beat, a worker with two crawlers, the exporter) crawls a site on this machine all the time. In each round there is a
window of equal length without a viewer, with one and with many, in random order. A viewer does what the page's script does:
asks for its page every five seconds, on a connection that stays: the overview, a service, a crawler, the history or dead letters.
Pages a second are counted by the site. The exporter's CPU is that of its process in the window, as a share of one core.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import psutil

from benchmarks.support.report import BenchmarkFailed, Report, options
from benchmarks.support.rounds import Figures, Rounds, pages_per_s
from monitoring.pages.rendering import REFRESH_S
from redis_components.embedded.files import free_port
from redis_components.keys import CrawlKeys
from tests.support.crawl import ask_site, hits_of, link_site
from tests.support.fleet import ToyFleet
from tests.support.processes import wait_until

PATHS = ("/", "/service/links", "/crawler/links/0", "/history", "/dead")
SETTINGS = {"SCRAPY_SETTINGS_MODULE": "tests.support.link_fleet_settings", "TRAWL_NODE_CRAWLERS": "2"}
CHAINS = 24
NO_VIEWER, ONE = "no viewer", "1 viewer"
CPU_TARGET, SPEED_TARGET = 1.0, 0.98


def main() -> None:
    """Run the benchmark and print the report."""
    parser = options(__doc__, rounds=8)
    parser.add_argument("--seconds", type=float, default=15, help="of each window (default: %(default)s)")
    parser.add_argument("--viewers", type=int, default=50, help="default: %(default)s")
    chosen = parser.parse_args()
    report = Report(title="What viewers of the page cost", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    many = f"{chosen.viewers} viewers"
    numbers = {NO_VIEWER: 0, ONE: 1, many: chosen.viewers}
    with tempfile.TemporaryDirectory(prefix="trawl-viewers-") as folder, ToyFleet(Path(folder), "links=2", **SETTINGS) as fleet:
        report.served_by(fleet.redis.client())
        with link_site(fleet.folder, pages=3, latency_s=0.05) as site:
            url, exporter = crawling(fleet, site)

            def measure(variant: str) -> Figures:
                return asyncio.run(window(site, url, exporter, numbers[variant], chosen.seconds))

            measure(many)  # the first answers import and compile
            rounds = Rounds.play(chosen.rounds, list(numbers), measure)
    report.figures["rounds"] = rounds.played
    add_tables(report, rounds, numbers)
    report.finish(chosen)


def crawling(fleet: ToyFleet, site: str) -> tuple[str, psutil.Process]:
    """Yield the exporter's address and process, once the whole fleet crawls without an end."""
    port = free_port()
    fleet.beat()
    fleet.node()
    exporter = fleet.program("exporter", "-m", "monitoring.exporter", "--port", str(port))
    fleet.wait_whole("links/0", "links/1")
    first = ask_site(site, f"begin/{CHAINS}", post=True)
    fleet.redis.client().rpush(CrawlKeys.for_spider("links").start_tasks(), f"{site}/{first}")
    wait_until(lambda: sum(hits_of(site).values()) > 500, fleet.said, 60)
    if exporter.process.poll() is not None:
        raise BenchmarkFailed(f"the exporter ended: {exporter.said()}")
    return f"http://127.0.0.1:{port}", psutil.Process(exporter.process.pid)


async def window(site: str, url: str, exporter: psutil.Process, viewers: int, seconds: float) -> Figures:
    """Pages that the site served, the exporter's CPU, and how long viewers waited."""
    waits: list[float] = []
    async with looking(url, viewers, waits):
        await asyncio.sleep(1)
        waits.clear()
        before, began, used = sum(hits_of(site).values()), time.monotonic(), _cpu_s(exporter)
        await asyncio.sleep(seconds)
        spent, wall = _cpu_s(exporter) - used, time.monotonic() - began
        pages = sum(hits_of(site).values()) - before
    return {"pages": pages, "wall_s": wall, "exporter_cpu": 100 * spent / wall, "waits": waits, "looks": len(waits)}


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@contextlib.asynccontextmanager
async def looking(url: str, viewers: int, waits: list[float]) -> AsyncIterator[None]:
    """So many viewers, who came at different moments."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(trust_env=False, connector=connector) as session:

        async def viewer(number: int) -> None:
            await asyncio.sleep(REFRESH_S * number / viewers)
            while True:
                began = time.monotonic()
                async with session.get(url + PATHS[number % len(PATHS)], headers={"X-Refresh": "1"}) as answer:
                    if answer.status != 200:
                        raise BenchmarkFailed(f"{answer.url}: HTTP {answer.status}")
                    await answer.read()
                waits.append(time.monotonic() - began)
                await asyncio.sleep(REFRESH_S)

        tasks = [asyncio.create_task(viewer(number)) for number in range(viewers)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            for ended in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(ended, Exception):
                    raise ended


def add_tables(report: Report, rounds: Rounds, numbers: dict[str, int]) -> None:
    """Add the table and the aims."""

    def cpu(one: Figures) -> float:
        return float(one["exporter_cpu"])

    idle = rounds.median(NO_VIEWER, cpu)
    rows: list[list[Any]] = []
    for variant, number in numbers.items():
        ratios = rounds.ratios(variant, NO_VIEWER)
        waits = sorted(wait for one in rounds.played for wait in one[variant]["waits"])
        more = statistics.median(cpu(one[variant]) - cpu(one[NO_VIEWER]) for one in rounds.played)
        speed = [rounds.median(variant, pages_per_s), rounds.ratio(variant, NO_VIEWER), f"{ratios[0]:.2f}-{ratios[-1]:.2f}"]
        each = more / number if number else ""
        answer = [1000 * statistics.median(waits), 1000 * waits[int(0.99 * len(waits))]] if waits else ["", ""]
        rows.append([variant, *speed, rounds.median(variant, cpu), each, *answer])
    report.table(
        ["who looks", "pages/s", "÷ none", "from-to", "exporter, % of a core", "each viewer, %", "answer, ms", "99 %, ms"],
        rows,
    )
    report.caveats += [
        f"The exporter takes {idle:.2f} % of a core without a viewer: nothing scrapes it here.",
        "The viewers' own CPU is taken from the same cores as the fleet's: in life they are elsewhere.",
    ]
    each = [float(row[5]) for row in rows[1:]]
    report.target(f"a viewer costs ≤ {CPU_TARGET:g} % of a core: {max(each):.2f}", max(each) <= CPU_TARGET)
    report.target(f"{rows[-1][0]} do not slow the fleet (≥ {SPEED_TARGET:g}): {rows[-1][2]:.3f}", rows[-1][2] >= SPEED_TARGET)


if __name__ == "__main__":
    main()
