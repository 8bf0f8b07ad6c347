"""What a site gets of a fleet under each limit and each pair of limits: by the log of the site.

    python -m benchmarks.fleet.politeness [--only NAME ...] [--seconds 134] [--hour]

Real nodes, beats and crawlers, sites with files; each site notes when the kernel received each request. All sites of a part are
crawled at once by one fleet, and have work all the time. An hour and a day are scaled to 60 and 120 s (the window is part of a
limit, `LaneLimits.quotas`); `--hour` is 600 in one real hour. Too much is a window with more than the limit, wherever it begins.
What came is counted from a tenth of the time on; allowed is what the strictest limit allows in that time.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from benchmarks.support.report import Report, options
from redis_components.keys import limits_key
from redis_components.politeness import limits
from redis_components.politeness.limits import DAY_MS, HOUR_MS, LaneLimits
from tests.support.fleet import MARK, ROOT
from tests.support.processes import none_left, wait_until
from tests.support.redis_server import RedisServer
from tests.support.watched_fleet import WatchedFleet
from tests.support.watched_site import Page, WatchedSite

LATENCY_S = 0.75
SCALED_MS = {HOUR_MS: 60_000, DAY_MS: 120_000}
SITE = """base_url = "{url}"
forums = ["f1"]
[schedule]
{schedule}
min_interval_s = 20
max_interval_s = 20
[politeness]
obey_robots = false
{politeness}
[pages.list]
url = "/list/{{forum}}"
format = "json"
rows = "threads"
fields = {{ id = "id", title = "title", reply_count = "replies", token = "token" }}
[pages.thread]
url = "/post/{{thread}}"
format = "json"
fields = {{ id = "id", title = "title", body = "body" }}
[pages.comments]
url = "/comment/{{thread}}"
format = "json"
rows = "comments"
fields = {{ id = "id", body = "body" }}
"""
WIDE = {"concurrency": 0, "rate": 0}
RATE, BURST, AT_A_TIME = {"rate": 2}, {"rate": 2, "burst": 4}, {"concurrency": 2}
HOURLY, DAILY = {"per_hour": 120}, {"per_day": 240}
WORDS = {"rate": 4, "concurrency": 2, "per_hour": 600}
ALONE = {"rate": RATE, "rate with bursts": BURST, "at a time": AT_A_TIME, "per hour": HOURLY, "per day": DAILY}
PAIRS = {
    "rate, at a time": RATE | AT_A_TIME,
    "rate, per hour": {"rate": 4} | HOURLY,
    "rate, per day": {"rate": 4} | DAILY,
    "at a time, per hour": AT_A_TIME | HOURLY,
    "at a time, per day": AT_A_TIME | DAILY,
    "per hour, per day": {"per_hour": 90} | DAILY,
    "bursts, per hour": {"rate": 4, "burst": 8} | HOURLY,
}
OLD_WORDS = "requests_per_hour, delay_s, concurrency"
"""The three keys of the release before, which mean the same as `WORDS`."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One fleet, its sites, and what happens meanwhile."""

    crawlers: int
    sites: dict[str, dict[str, float]]
    act: Callable[[WatchedFleet, float], None] = lambda fleet, until: time.sleep(max(0.0, until - time.monotonic()))
    scaled: bool = True
    threads: int = 400


def kills(fleet: WatchedFleet, until: float) -> None:
    """A crawler is killed every 20 s; one that never lives for long is given up by its supervisor."""
    while time.monotonic() < until:
        if alive := [record for record in fleet.at_work().values() if record.spider == "forum_detail"]:
            with suppress(ProcessLookupError):
                os.kill(random.choice(alive).pid, signal.SIGKILL)
        time.sleep(20)


def rolls(fleet: WatchedFleet, until: float) -> None:
    """All crawlers are replaced, one after another, again and again."""
    while time.monotonic() < until:
        command = [sys.executable, "-m", "cli.main", "roll"]
        subprocess.run(command, cwd=ROOT, env=fleet.environment, capture_output=True, timeout=300, check=True)
        time.sleep(5)


PARTS = {
    "1 crawler": Part(crawlers=1, sites=ALONE),
    "3 crawlers": Part(crawlers=3, sites=ALONE),
    "8 crawlers": Part(crawlers=8, sites=ALONE),
    "pairs": Part(crawlers=3, sites=PAIRS),
    "words": Part(crawlers=3, sites={"rate, concurrency, per_hour": WORDS, OLD_WORDS: WORDS}, scaled=False),
    "killed": Part(crawlers=3, sites=ALONE, act=kills),
    "rolled": Part(crawlers=3, sites=ALONE, act=rolls),
}
HOUR = Part(crawlers=3, sites={"rate, concurrency, per_hour": WORDS}, scaled=False, threads=1000)


@dataclass
class Watched:
    """One site and what it allows."""

    name: str
    site: WatchedSite
    politeness: dict[str, float]
    threads: int
    limited: LaneLimits = field(default_factory=LaneLimits)

    def answer(self, path: str) -> Page:
        """A list of threads, or one of them."""
        if path.startswith("/list/"):
            token = str(len(self.site.times))  # all of them have changed: there is always work
            rows = [{"id": str(n), "title": f"thread {n}", "replies": 0, "token": token} for n in range(self.threads)]
            return Page(json.dumps({"threads": rows}))
        name = path.rpartition("/")[2]
        return Page(json.dumps({"id": name, "title": f"thread {name}", "body": "a post", "comments": []}))

    def windows(self) -> list[tuple[int, float]]:
        """Requests and seconds of each limit of how many there may be in a window."""
        most = [(n, ms / 1000) for n, ms in self.limited.quotas]
        if (rate := self.limited.rate) is not None:
            burst = self.limited.burst
            most += [(max(1, int(rate)), max(1, int(rate)) / rate)] if burst == 1 else [(burst + round(10 * rate), 10.0)]
        return most

    def per_second(self, seconds: float) -> float:
        """What the strictest limit allows in that time; with a rate an hour's requests come at once."""
        rates = [self.limited.rate] if self.limited.rate else []
        rates += [n / (min(ms / 1000, seconds) if self.limited.rate else ms / 1000) for n, ms in self.limited.quotas]
        if self.limited.concurrency:
            rates.append(self.limited.concurrency / LATENCY_S)
        return min(rates)

    def row(self, part: str, begun: float, ended: float) -> list[object]:
        """What came: the fullest window of each limit beside that limit, and the share of what was allowed."""
        times = sorted(self.site.times)
        found, is_kept = [], True
        for most, seconds in self.windows():
            fullest = max((bisect_left(times, at + seconds) - place for place, at in enumerate(times)), default=0)
            found.append(f"{fullest} of {most} in {seconds:g} s")
            is_kept &= fullest <= most
        if at_a_time := self.limited.concurrency:
            found.append(f"{self.site.most_open} of {at_a_time} open")
            is_kept &= self.site.most_open <= at_a_time
        since = begun + (ended - begun) / 10
        came = sum(since <= at < ended for at in times)
        share = came / (self.per_second(ended - since) * (ended - since))
        return [part, self.name, "; ".join(found), "yes" if is_kept else "**no**", came, share]


@contextmanager
def watching(folder: Path, part: Part) -> Iterator[tuple[WatchedFleet, list[Watched]]]:
    """The fleet at work and all limits set."""
    with ExitStack() as stack:
        (folder / "sites").mkdir()
        watched = []
        for number, (name, politeness) in enumerate(part.sites.items()):
            site = stack.enter_context(WatchedSite())
            one = Watched(name, site, politeness, part.threads)
            site.answer, site.latency_s = one.answer, LATENCY_S
            lines = "\n".join(f"{key} = {value}" for key, value in (WIDE | politeness).items())
            schedule = "scan_budget_per_hour = 1_000_000"
            if name == OLD_WORDS:
                lines, schedule = "delay_s = 0.25\nconcurrency = 2", "requests_per_hour = 600"
            text = SITE.format(url=site.url, politeness=lines, schedule=schedule)
            (folder / "sites" / f"site{number}.toml").write_text(text)
            watched.append(one)
        environment = {
            "SCRAPY_SETTINGS_MODULE": "workers.settings",
            "TRAWL_SITES_DIR": str(folder / "sites"),
            "TRAWL_DATABASE_URL": f"sqlite:///{folder / 'trawl.sqlite'}",
        }
        sizes = f"forum_list=1,forum_detail={part.crawlers}"
        fleet = stack.enter_context(WatchedFleet(folder, sizes, nodes="a", beats=0, **environment))
        for number, one in enumerate(watched):
            of = one.politeness
            asked = LaneLimits.of(
                rate=of.get("rate") or None,
                burst=int(of.get("burst", 1)),
                concurrency=int(of.get("concurrency", 0)) or None,
                per_hour=int(of.get("per_hour", 0)) or None,
                per_day=int(of.get("per_day", 0)) or None,
                by="benchmark",
            )
            quotas = tuple((n, SCALED_MS[ms]) for n, ms in asked.quotas) if part.scaled else asked.quotas
            one.limited = replace(asked, quotas=quotas)
            if part.scaled:  # else as the site file has it
                limits.change(fleet.client, limits_key(), f"site{number}", one.limited)
        fleet.start_beat()
        wait_until(lambda: len(fleet.at_work()) == part.crawlers + 1, fleet.said, 180)
        wait_until(lambda: any(len(one.site.times) > 1 for one in watched), fleet.said, 180)
        time.sleep(10)  # a site that is starved is a row, no error
        yield fleet, watched
        fleet.stop()


def run(name: str, part: Part, seconds: float) -> list[list[object]]:
    """One part: a row for each of its sites."""
    load = os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory(prefix="trawl-polite-") as folder,
        none_left((MARK, folder)),
        watching(Path(folder), part) as (fleet, watched),
    ):
        begun = time.monotonic()
        part.act(fleet, begun + seconds)
        ended = min(time.monotonic(), begun + seconds)
        rows = [one.row(name, begun, ended) for one in watched]
    for row in rows:
        print(*row, f"load {load:.1f} to {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
    return [[*row, f"{load:.1f}"] for row in rows]


def main() -> None:
    """Run what is chosen, and report."""
    parser = options(__doc__)
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS), metavar="NAME", help=", ".join(PARTS))
    parser.add_argument("--seconds", type=float, default=134.0, help="of each part (default: %(default)s)")
    parser.add_argument("--hour", action="store_true", help="600 in one real hour, in 67 minutes, and nothing else")
    chosen = parser.parse_args()
    report = Report(title="Politeness", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    with RedisServer() as server:
        report.served_by(server.client())
    parts = {"hour": HOUR} if chosen.hour else {name: PARTS[name] for name in chosen.only}
    rows = [row for name, part in parts.items() for row in run(name, part, 4000.0 if chosen.hour else chosen.seconds)]
    report.table(["fleet", "limits", "fullest window", "kept", "came", "of what is allowed", "load"], rows)
    report.target("in no window more than the limit", all(row[3] == "yes" for row in rows))
    report.target("at least 90 % of what is allowed", all(float(str(row[5])) >= 0.9 for row in rows))
    report.finish(chosen)


if __name__ == "__main__":
    main()
