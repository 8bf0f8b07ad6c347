"""Cost of a small member of a run, from its start to its verdict, beside `scrapy crawl` and scrapyd.

    python -m benchmarks.fleet.runs_cost [--rounds 3] [--members 60] [--peers 16] [--at-once 16]

A project of small spiders, a module each: twenty pages of a site on this machine, an item a page. `scrapy crawl` runs one spider
after the other, scrapyd as many at a time as there are cores, a fleet (a worker, a beat, Redis) runs them as a run, with each
member's verdict at the end. Each has its settings in one project; CPU is of all its processes, Redis included, the site's is not.
Rounds are interleaved, and shorter ones for the peers.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from benchmarks.peers.environment import interpreter
from benchmarks.support.report import BenchmarkFailed, Report, options
from benchmarks.support.rounds import Figures, Rounds
from benchmarks.support.site import site
from fleet_operations.jobs import runs
from redis_components.embedded.die_with_parent import tied
from redis_components.embedded.files import free_port
from tests.support.fleet import ToyFleet
from tests.support.processes import wait_until
from workers.state.group_runs import GroupRuns
from workers.state.nodes import Nodes

PAGES = 20
ROLES = ("crawlers", "warm parent", "pool", "worker", "beat", "redis")
SETTINGS = """
SPIDER_MODULES = ["small_spiders"]
ROBOTSTXT_OBEY = False
TELNETCONSOLE_ENABLED = False
ALLOW_PRIVATE_ADDRESSES = True
LOG_LEVEL = "INFO"
"""
OF_THE_FLEET = """
from small_settings import *
ITEM_PIPELINES = {"redis_components.pipelines.RedisPipeline": 300}
"""
SPIDER = """
import os
import scrapy


class Spider(scrapy.Spider):
    name = "NAME"

    async def start(self):
        for number in range(PAGES):
            yield scrapy.Request(f"{os.environ['SMALL_SITE']}/0/{self.name.partition('.')[0]}-{number}")

    def parse(self, response):
        yield {"url": response.url, "words": len(response.css("p"))}
"""


def names(number: int) -> list[str]:
    """Return the names of so many spiders."""
    return [f"small{one:04}" for one in range(number)]


def write_project(folder: Path, number: int) -> None:
    """Write a project of so many spiders."""
    package = folder / "small_spiders"
    package.mkdir()
    (package / "__init__.py").touch()
    for name in names(number):
        (package / f"{name}.py").write_text(SPIDER.replace("NAME", name).replace("PAGES", str(PAGES)))
    (folder / "small_settings.py").write_text(SETTINGS)
    (folder / "small_fleet_settings.py").write_text(OF_THE_FLEET)
    (folder / "trawl.toml").write_text('[groups.small]\nspiders = ["small*"]\n')


def cpu_of(processes: list[psutil.Process]) -> float:
    """Return the CPU seconds of processes, of those below them, and of all that have ended."""
    total = 0.0
    for process in processes:
        for one in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                total += sum(one.cpu_times()[:4])
    return total


def figures(members: int, seconds: float, cpu_s: float, **more: Any) -> Figures:
    """Return what all variants have."""
    each = {"wall_s": seconds, "cpu_s": cpu_s, "members": members, "a_minute": 60 * members / seconds}
    return {**each, "cpu_each_s": cpu_s / members, **more}


class OneByOne:
    """`scrapy crawl`, one spider after the other."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._environment = {**environment, "SCRAPY_SETTINGS_MODULE": "small_settings"}

    def run(self, members: int) -> Figures:
        """Crawl so many spiders."""
        begun, before = time.monotonic(), os.times()
        for name in names(members):
            command = tied(sys.executable, "-m", "scrapy", "crawl", name, "-o", f"{self._folder}/{name}.jsonl")
            done = subprocess.run(command, cwd=self._folder, env=self._environment, capture_output=True, text=True, check=False)
            if f"'item_scraped_count': {PAGES}" not in done.stderr:
                raise BenchmarkFailed(f"scrapy crawl: {done.stderr[-2000:]}")
        after = os.times()
        cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
        return figures(members, time.monotonic() - begun, cpu_s)


class Scrapyd:
    """A scrapyd with as many processes as the machine has cores."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        python = interpreter("scrapyd")
        if python is None:
            raise BenchmarkFailed("scrapyd cannot be installed")
        self._port, home = free_port(), folder / "scrapyd"
        home.mkdir()
        about = f"http_port = {self._port}\nmax_proc = {os.cpu_count()}\npoll_interval = 0.2\nitems_dir = items\n"
        (home / "scrapy.cfg").write_text(f"[settings]\ndefault = small_settings\n[scrapyd]\n{about}")
        with (folder / "scrapyd.log").open("ab") as log:
            self.process = subprocess.Popen(
                tied(python, "-m", "scrapyd"), cwd=home, stdout=log, stderr=log, env={**environment, "PYTHONPATH": str(folder)}
            )
        wait_until(self._listens, lambda: (folder / "scrapyd.log").read_text()[-2000:], 60)

    def _listens(self) -> bool:
        with suppress(OSError):
            return bool(self._call("daemonstatus.json"))
        return False

    def _call(self, path: str, **form: str) -> Any:
        data = urllib.parse.urlencode(form).encode() if form else None
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/{path}", data=data, timeout=60) as response:
            return json.load(response)

    def run(self, members: int) -> Figures:
        """Schedule so many spiders, and wait for the last one."""
        process = psutil.Process(self.process.pid)
        before, begun = cpu_of([process]), time.monotonic()
        jobs = {self._call("schedule.json", project="default", spider=name)["jobid"] for name in names(members)}
        wait_until(
            lambda: jobs <= {one["id"] for one in self._call("listjobs.json")["finished"]}, "scrapyd's jobs end", 900, every_s=0.1
        )
        return figures(members, time.monotonic() - begun, cpu_of([process]) - before)


class Runs:
    """Runs of a fleet."""

    def __init__(self, fleet: ToyFleet, at_once: int) -> None:
        self._fleet, self._at_once = fleet, at_once
        node, beat = fleet.node(), fleet.beat()
        self._processes = [psutil.Process(node.process.pid), psutil.Process(beat.process.pid)]
        self._client = fleet.redis.client()
        wait_until(lambda: Nodes(self._client).all(), fleet.said, 60)
        self.run(2)

    def _cpu(self) -> dict[str, float]:
        """Return the CPU seconds up to now, by role."""
        redis = self._client.info("cpu")
        worker, beat = self._processes
        found = dict.fromkeys(ROLES, 0.0) | {"beat": cpu_of([beat]), "redis": redis["used_cpu_user"] + redis["used_cpu_sys"]}
        for one in (worker, *worker.children(recursive=True)):
            with suppress(psutil.Error):
                times, line = one.cpu_times(), one.cmdline()
                own = times.user + times.system
                if "workers.crawler" in line:
                    found["crawlers"] += own
                elif "workers.crawler.warm_parent" in line:
                    found["warm parent"] += own
                    found["crawlers"] += times.children_user + times.children_system
                else:
                    found["worker" if one == worker else "pool"] += own
        return found

    def run(self, members: int) -> Figures:
        """Run so many spiders, until each has its verdict."""
        given = runs.order("small", only=names(members))
        before, begun = self._cpu(), time.monotonic()
        run = runs.start(self._client, runs.RunOrder(**{**vars(given), "at_once": self._at_once}))
        store = GroupRuns(self._client)

        def over() -> bool:
            found = store.all()[run.id]
            return found.state.ended

        wait_until(over, lambda: f"{store.all()[run.id]}\n{self._fleet.said()}", 900, every_s=0.1)
        seconds, after = time.monotonic() - begun, self._cpu()
        roles = {role: after[role] - before[role] for role in ROLES}
        ended = store.members(run.id).values()
        if wrong := [one for one in ended if (one.verdict, one.items) != ("fine", PAGES)]:
            raise BenchmarkFailed(f"{len(wrong)} of {members} members are wrong: {wrong[0]}")
        waits = [one.ended_at - one.started_at for one in ended if one.ended_at]
        print({role: round(used / members, 3) for role, used in roles.items()}, file=sys.stderr, flush=True)
        return figures(members, seconds, sum(roles.values()), member_s=statistics.median(waits), roles=roles)


@contextmanager
def variants(folder: Path, members: int, at_once: int) -> Iterator[dict[str, Callable[[int], Figures]]]:
    """Yield the three, ready to run."""
    write_project(folder, members)
    with ExitStack() as stack:
        environment = {"SMALL_SITE": stack.enter_context(site()), "PYTHONPATH": str(folder)}
        of_the_fleet = {
            **environment,
            "SCRAPY_SETTINGS_MODULE": "small_fleet_settings",
            "TRAWL_CONFIG": str(folder / "trawl.toml"),
            "TRAWL_NODE_CRAWLERS": str(at_once),
            "TRAWL_DATABASE_URL": f"sqlite:///{folder / 'forums.sqlite'}",
            "COLD_STARTS": "1",
        }
        os.environ |= of_the_fleet  # for the tests' way to start programs, and for the list of spiders
        fleet = stack.enter_context(ToyFleet(folder, "small0000=0", **of_the_fleet))
        os.environ |= {name: fleet.environment[name] for name in ("TRAWL_REDIS_URL", "TRAWL_DATA_DIR")}
        mine = {**os.environ, **environment}
        scrapyd = Scrapyd(folder, mine)
        stack.callback(scrapyd.process.kill)
        yield {"scrapy crawl": OneByOne(folder, mine).run, "scrapyd": scrapyd.run, "trawl": Runs(fleet, at_once).run}


def main() -> None:
    """Measure, and report."""
    parser = options(__doc__, rounds=3)
    parser.add_argument("--members", type=int, default=60, help="of a run (default: %(default)s)")
    parser.add_argument("--peers", type=int, default=16, help="spiders of a round of the others (default: %(default)s)")
    parser.add_argument("--at-once", type=int, default=16, help="members that crawl at a time (default: %(default)s)")
    chosen = parser.parse_args()
    report = Report(title="What a member of a run costs", method=" ".join((__doc__ or "").split("\n\n")[-1].split()))
    with tempfile.TemporaryDirectory() as folder, variants(Path(folder), chosen.members, chosen.at_once) as ready:
        number = {"scrapy crawl": chosen.peers, "scrapyd": chosen.peers, "trawl": chosen.members}
        played = Rounds.play(chosen.rounds, tuple(ready), lambda variant: ready[variant](number[variant]))
    rows = [
        (
            name,
            played.median(name, lambda one: float(one["a_minute"])),
            played.median(name, lambda one: float(one["cpu_each_s"])),
            played.median(name, lambda one: float(one["wall_s"] / one["members"])),
        )
        for name in ready
    ]
    parts = [(role, played.median("trawl", lambda one: 1000 * float(one["roles"][role] / one["members"]))) for role in ROLES]  # noqa: B023
    report.table(("", "members a minute", "CPU of one, s", "seconds / members"), rows)
    report.table(("of Trawl", "CPU of one, ms"), parts)
    for peer in ("scrapy crawl", "scrapyd"):
        ratio = played.ratio("trawl", peer, lambda one: float(one["members"] / one["cpu_s"]))
        report.target(f"10 x the members of {peer} by CPU ({ratio:.1f} x)", ratio >= 10)
    report.caveats.append("Members a minute are of this machine with the site on it, whose CPU time is not counted.")
    report.caveats.append(f"A member takes {played.median('trawl', lambda one: float(one['member_s'])):.1f} s, one of many.")
    report.finish(chosen)


if __name__ == "__main__":
    main()
