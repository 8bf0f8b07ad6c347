"""Requests of a whole fleet to one site during kills and other events, by the log of the site.

    python -m benchmarks.fleet.polite_fleet [--seconds 30] [--only NAME ...]

Two nodes (`celery worker`, in separate sessions) with four crawlers each, a beat, a Redis with an append-only file; a site
that takes 0.1 s for an answer, limited to 20 requests a second and 6 at a time. The site notes when the kernel received each
request, so a thread of it that waits for a processor does not blur the log. Every window of one second counts that begins
with a request, also those that reach into the next row; the first second of all is left out.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.support.report import Report, options
from redis_components.admin import lanes
from redis_components.keys import CrawlKeys
from redis_components.politeness import limits
from redis_components.politeness.limits import LaneLimits
from tests.support.fleet import MARK, ROOT
from tests.support.processes import none_left, wait_until
from tests.support.redis_server import RedisServer
from tests.support.watched_fleet import WatchedFleet
from tests.support.watched_site import Page, WatchedSite

RATE, AT_A_TIME, CRAWLERS = 20.0, 6, 8
KEYS = CrawlKeys.for_spider("links", namespace="")
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
SETTINGS = """from tests.support.link_fleet_settings import *
CONCURRENT_REQUESTS = 16
DOWNLOAD_HANDLERS = {"http": "workers.http.client.DownloadHandler"}
DOWNLOADER_MIDDLEWARES = {"redis_components.scrapy_glue.retry_after.RetryAfterMiddleware": 555}
LOG_LEVEL = "WARNING"
"""


class PoliteFleet(WatchedFleet):
    """Two nodes; the clock of `b` is wrong by `wrong_s` seconds."""

    def __init__(self, folder: Path, site: WatchedSite, wrong_s: int = 0) -> None:
        project = folder / "project"
        project.mkdir()
        (project / "polite_settings.py").write_text(SETTINGS)
        self.site, self._wrong_s = site, wrong_s
        environment = {"SCRAPY_SETTINGS_MODULE": "polite_settings", "PYTHONPATH": str(project)}
        super().__init__(folder, f"links={CRAWLERS}", nodes="ab", beats=1, **environment)

    def start_node(self, name: str) -> None:
        usual = self.environment
        if self._wrong_s and name == "b":
            clock = {"FAKETIME": f"{self._wrong_s:+d}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "LD_PRELOAD": str(FAKETIME)}
            self.environment = usual | clock
        super().start_node(name)
        self.environment = usual

    def begin(self, pages: int) -> None:
        """All crawl."""
        limited = LaneLimits(rate=RATE, concurrency=AT_A_TIME)
        limits.change(self.client, KEYS.limits, self.site.url.removeprefix("http://"), limited)
        wait_until(lambda: len(self.at_work()) == CRAWLERS, self.said, 120)
        for first in range(0, pages, 1000):
            self.client.rpush(KEYS.start_tasks(), *(f"{self.site.url}/{page}" for page in range(first, first + 1000)))
        wait_until(lambda: len(self.site.times) > RATE, self.said, 60)

    def slowed(self) -> float | None:
        """Return the rate to which complaints have lowered the site's."""
        lane = self.site.url.removeprefix("http://")
        found = lanes.look(self.client, KEYS.limits, [], self.registry.now())
        return next((one.state.slowed for one in found if one.lane == lane), None)


# What happens, each for so many seconds


def nothing(_: PoliteFleet, seconds: float) -> None:
    """Let the fleet work."""
    time.sleep(seconds)


def kills(fleet: PoliteFleet, seconds: float) -> None:
    """Kill a crawler every 4 s."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if alive := fleet.at_work():
            with suppress(ProcessLookupError):
                os.kill(random.choice(list(alive.values())).pid, signal.SIGKILL)
        time.sleep(4)


def rolls(fleet: PoliteFleet, seconds: float) -> None:
    """All crawlers are replaced, one after another."""
    begun = time.monotonic()
    command = [sys.executable, "-m", "cli.main", "roll"]
    subprocess.run(command, cwd=ROOT, env=fleet.environment, capture_output=True, timeout=300, check=True)
    time.sleep(max(0.0, begun + seconds - time.monotonic()))


def scales(fleet: PoliteFleet, seconds: float) -> None:
    """12 crawlers in place of 8, then 8 again."""
    for crawlers in (12, CRAWLERS):
        fleet.registry.set_desired("links", crawlers)
        time.sleep(seconds / 2)


def redis_dies(fleet: PoliteFleet, seconds: float) -> None:
    """Redis is killed and back after 2 s."""
    time.sleep(seconds / 3)
    fleet.redis.kill()
    time.sleep(2)
    fleet.redis.start()
    time.sleep(max(0.0, seconds - seconds / 3 - 2))


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of the table: an action on a fleet."""

    act: Callable[[PoliteFleet, float], None]
    wrong_s: int = 0


ROWS = {
    "undisturbed": Row(act=nothing),
    "a crawler killed every 4 s": Row(act=kills),
    "rolled": Row(act=rolls),
    "scaled to 12 and back": Row(act=scales),
    "Redis killed, back after 2 s": Row(act=redis_dies),
    "one node's clock a minute ahead": Row(act=nothing, wrong_s=60),
    "one node's clock a minute behind": Row(act=nothing, wrong_s=-60),
}


def row_of(name: str, times: list[float], begun: float, ended: float, most_open: int) -> list[object]:
    """One row: what the site saw in that time."""
    here = [place for place, at in enumerate(times) if begun <= at < ended]
    counts = [bisect_left(times, times[place] + 1) - place for place in here]
    gaps = [times[place + 1] - times[place] for place in here[:-1]]
    away_s = sum(gap for gap in gaps if gap > 1)
    over = sum(count > RATE for count in counts)
    return [name, len(here) / (ended - begun), len(here) / (ended - begun - away_s), max(counts), over, len(counts), most_open]


def run(wrong_s: int, names: list[str], seconds: float, arrivals: dict[str, list[float]]) -> list[list[object]]:
    """One fleet; these things happen to it. `arrivals` gets the seconds of each row in which requests came."""
    with tempfile.TemporaryDirectory(prefix="trawl-polite-") as folder, none_left((MARK, folder)), WatchedSite() as site:
        site.answer, site.latency_s = lambda path: Page("a page"), 0.1
        with PoliteFleet(Path(folder), site, wrong_s) as fleet:
            fleet.begin(round(RATE * (seconds * 1.5 + 10) * len(names)))
            time.sleep(2)
            parts = []
            for name in names:
                begun, site.most_open = time.monotonic(), 0
                ROWS[name].act(fleet, seconds)
                parts.append((name, begun, time.monotonic(), site.most_open))
                print(row_of(name, sorted(site.times), *parts[-1][1:]), fleet.slowed(), file=sys.stderr, flush=True)
            time.sleep(1)
            times = sorted(site.times)
            fleet.stop()
    arrivals.update({name: [round(at - begun, 4) for at in times if begun <= at < ended] for name, begun, ended, _ in parts})
    return [row_of(name, times, *rest) for name, *rest in parts]


def main() -> None:
    """Run the chosen cases and print the report."""
    parser = options(__doc__)
    parser.add_argument("--only", nargs="*", choices=list(ROWS), default=list(ROWS), metavar="NAME", help=", ".join(ROWS))
    parser.add_argument("--seconds", type=float, default=30.0, help="of each row (default: %(default)s)")
    chosen = parser.parse_args()
    report = Report(title="Politeness of a fleet", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    with RedisServer() as server:
        report.served_by(server.client())
    rows: list[list[object]] = []
    arrivals: dict[str, list[float]] = {}
    for wrong_s in (0, 60, -60):
        names = [name for name in chosen.only if ROWS[name].wrong_s == wrong_s]
        if names and wrong_s and not FAKETIME.exists():
            report.caveats.append("No libfaketime (apt-get install faketime): no clock was set wrong.")
        elif names:
            rows += run(wrong_s, names, chosen.seconds, arrivals)
    head = ["20/s, 6 at a time", "1/s", "1/s but for gaps over 1 s", "most in 1 s", "windows above 20", "of", "most open"]
    report.table(head, rows)
    report.target("at most 20 in every window of one second", all(row[4] == 0 for row in rows))
    report.target("at least 19/s while there is work and Redis is there", all(float(str(row[2])) >= 19 for row in rows))
    report.target("never more than 6 open", all(int(str(row[6])) <= AT_A_TIME for row in rows))
    report.figures["arrivals"] = arrivals
    report.finish(chosen)


if __name__ == "__main__":
    main()
