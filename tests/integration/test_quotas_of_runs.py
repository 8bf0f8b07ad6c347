"""Quotas, priority and overlap on a real fleet: which crawlers there are is what the site sees, whose pages wait for the test."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from redis_components.keys import lane_state_key, limits_key
from redis_components.politeness.limits import MINUTE_MS
from tests.support.plain_project import PlainFleet, project_fleet
from tests.support.processes import wait_until
from tests.support.watched_site import Page, WatchedSite
from workers.state.beats import Schedules
from workers.state.group_runs import GroupRuns, Verdict
from workers.state.jobs import Jobs

SETTINGS = """
from tests.support.light_scrapy import *
SPIDER_MODULES = ["own_spiders"]
ROBOTSTXT_OBEY = False
RETRY_TIMES = 0
DOWNLOAD_DELAY = 0
"""
SPIDERS = '''
import os
import scrapy

PAGES = {{"net_0": 6, "net_1": 6}}


class Base(scrapy.Spider):
    """Asks for its own pages."""

    async def start(self):
        site = os.environ["TEST_SITE"]
        if self.name == "net_1":
            site = site.replace("127.0.0.1", "localhost")  # a site with a limit of its own
        for number in range(PAGES.get(self.name, 1)):
            yield scrapy.Request(f"{{site}}/{{self.name}}/{{number}}", dont_filter=True)

    def parse(self, response):
        yield {{"url": response.url}}


for name in {names!r}:
    globals()[name] = type(name, (Base,), {{"name": name}})
'''
MEMBERS = ("low_0", "low_1", "low_2", "high_0", "memory_0", "memory_1", "free_0", "net_0", "net_1", "often")
TRAWL_TOML = """
[quotas.ops]
places = 2
[quotas.memory]
memory_mb = 500
[quotas.net]
per_minute = 60_000
[limits.localhost]
rate = 100
burst = 100
[groups.low]
spiders = ["low_*"]
quota = "ops"
[groups.high]
spiders = ["high_*"]
quota = "ops"
priority = 5
[groups.memory]
spiders = ["memory_*"]
quota = "memory"
memory_mb = 400
[groups.free]
spiders = ["free_*"]
[groups.net]
spiders = ["net_*"]
quota = "net"
[schedule.often]
task = "trawl.crawl"
args = ["often"]
every_s = 1
kwargs = {overlap = "skip"}
"""
SPENT = 59_996
"""Of the quota `net` before it begins: four are left in this minute."""


class Shop(WatchedSite):
    """A site that answers a spider's pages when the test wants it."""

    def __init__(self) -> None:
        super().__init__()
        self.gates: dict[str, threading.Event] = defaultdict(threading.Event)
        self.open: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        """Most members of a group of which a page was at work at a time."""
        self.answer = self._when_let
        for name in ("free_0", "net_0", "net_1"):
            self.gates[name].set()

    def _when_let(self, path: str) -> Page:
        name = path.split("/")[1]
        groups = [name.partition("_")[0], "ops" if name[:3] in ("low", "hig") else "others"]
        for group in groups:
            self.open[group] += 1
            self.most[group] = max(self.most[group], self.open[group])
        assert self.gates[name].wait(120), name
        for group in groups:
            self.open[group] -= 1
        return Page("<p>here</p>")

    def asked_for(self, group: str) -> list[str]:
        """Return the spiders of a group in the order of their first pages."""
        names = [path.split("/")[1] for path in self.paths()]
        return list(dict.fromkeys(name for name in names if name.startswith(group)))

    def pages_of(self, group: str) -> int:
        return sum(path.startswith(f"/{group}") for path in self.paths())


@pytest.mark.usefixtures("no_process_left")
def test_quotas_of_places_memory_and_requests_priority_and_overlap(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "own_spiders.py").write_text(SPIDERS.format(names=MEMBERS))
    (project / "own_settings.py").write_text(SETTINGS)
    (tmp_path / "trawl.toml").write_text(TRAWL_TOML)
    with Shop() as site, project_fleet(tmp_path, "own_settings", "unused=0", site.url, TRAWL_NODE_CRAWLERS="8") as fleet:
        fleet.beat()
        fleet.node()
        check(fleet, site)


def check(fleet: PlainFleet, site: Shop) -> None:
    client = fleet.redis.client()
    runs = GroupRuns(client)

    def start(group: str) -> str:
        return fleet.trawl("run", "--group", group).split()[0]

    def until(predicate: object, timeout_s: float = 60) -> None:
        wait_until(predicate, lambda: f"{site.paths()}\n{runs.all()}\n{fleet.said()}", timeout_s)  # type: ignore[arg-type]

    low = start("low")
    until(lambda: len(site.asked_for("low")) == 2)
    high, memory = start("high"), start("memory")
    until(lambda: site.asked_for("memory") and runs.all()[high].waits_for and runs.all()[memory].waits_for)
    free = start("free")
    until(lambda: runs.all()[free].counts == {Verdict.FINE: 1})  # while three members wait for two quotas
    status = fleet.trawl("status")
    assert f"1 members wait for a place of the quota ops, which has 2 ({low} has 2)" in " ".join(status.split())
    assert f"1 members wait for a place of the quota memory, which has 1 ({memory} has 1)" in " ".join(status.split())
    site.gates[site.asked_for("low")[0]].set()
    until(lambda: site.asked_for("high"))
    assert len(site.asked_for("low")) == 2, "the place is the higher priority's, although the other run has waited for longer"

    # requests
    bucket = f"{MINUTE_MS}:{client.time()[0] + 1}"  # a minute has buckets of a second
    state = lane_state_key(limits_key(), "quotas.net")
    client.hset(state, bucket, SPENT)
    net = start("net")
    until(lambda: site.pages_of("net") == 4)
    fleet.shows("requests wait for the quota net, which has 60,000 a minute", "status")
    second = start("free")
    until(lambda: runs.all()[second].counts == {Verdict.FINE: 1})
    assert site.pages_of("net") == 4, "of two sites, one with a limit of its own"
    client.hdel(state, bucket)  # as if the minute were over
    until(lambda: runs.all()[net].counts == {Verdict.FINE: 2})
    assert site.pages_of("net") == 12

    # a job of the schedule, whose turn came several times meanwhile
    assert [job.service for job in Jobs(client).open().values() if job.service == "often"] == ["often"]
    until(lambda: site.pages_of("often") == 1)
    rounds = Schedules(client).rounds
    before = rounds()["often"].due
    until(lambda: rounds()["often"].due > before + 1)
    assert site.pages_of("often") == 1
    site.gates["often"].set()
    until(lambda: site.pages_of("often") == 2)

    for gate in MEMBERS:
        site.gates[gate].set()
    until(lambda: all(runs.all()[one].state.ended for one in (low, high, memory)))
    assert (site.most["ops"], site.most["memory"]) == (2, 1)
    assert [runs.all()[one].counts for one in (low, high, memory)] == [{Verdict.FINE: n} for n in (3, 1, 2)]
