"""Crawlers on several nodes: they are spread, they move when a node is drained, and a new version takes their places."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from redis_components.keys import CrawlKeys
from tasks.base import NODE_QUEUE_EXPIRES_S
from tests.support import warm_start
from tests.support.crawl import hits_of, link_site
from tests.support.fleet import ROOT, ToyFleet, is_untouched
from tests.support.processes import wait_until
from workers.state.keys import FleetKeys
from workers.state.nodes import Nodes
from workers.state.services import Autoscaled, Policy

pytestmark = pytest.mark.usefixtures("no_process_left")

PAGES = 350


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ToyFleet]:
    settings = {"SCRAPY_SETTINGS_MODULE": "link_fleet_settings", "TRAWL_NODE_CRAWLERS": "2"}
    with ToyFleet(tmp_path, "links=2", **settings) as fleet:
        yield fleet


FIVE_BEATS_AT_ONCE = """
from concurrent.futures import ThreadPoolExecutor
from redis_components.connection import connect
from workers.state.nodes import NodeRecord, Nodes
from tasks import app, reconcile_fleet
app.finalize()  # in the thread that imports: it is not made for several
for name in {names}:  # they are there, but take nothing
    Nodes(connect()).beat(NodeRecord(name=name, services=("links",), capacity=2))
with ThreadPoolExecutor(5) as pool:
    print(sorted({{done for one in [pool.submit(reconcile_fleet) for _ in range(5)] for done in one.result()}}))
"""


def trawl(fleet: ToyFleet, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cli.main", *arguments]
    return warm_start.run(command, cwd=ROOT, env=fleet.environment, capture_output=True, text=True, timeout=150, check=False)


@pytest.mark.timeout(600)  # half a minute, on a machine that has nothing else to do
def test_crawlers_are_spread_move_and_are_replaced_without_a_page_lost_or_fetched_twice(fleet: ToyFleet) -> None:
    nodes = Nodes(fleet.redis.client())
    for name in ("a", "b"):
        fleet.node(name)
    wait_until(lambda: len(nodes.all()) == 2, fleet.said, 60)
    fleet.beat()
    first = fleet.wait_whole("links/0", "links/1", timeout_s=60)
    assert {r.node for r in first.values()} == {"a@test", "b@test"}

    with link_site(fleet.folder, pages=PAGES, latency_s=0.5) as site:
        fleet.redis.client().rpush(CrawlKeys.for_spider("links").start_tasks(), f"{site}/2")
        wait_until(lambda: len(hits_of(site)) > 10, fleet.said)

        done = trawl(fleet, "roll", "--json")
        assert done.returncode == 0, done.stdout + done.stderr + fleet.said()
        roll = json.loads(done.stdout)
        assert (roll["state"], roll["replaced"]) == ("done", ["links/0", "links/1"])
        second = fleet.wait_whole("links/0", "links/1", but_not=[r.pid for r in first.values()], timeout_s=60)
        assert {r.token for r in second.values()} == {r.token for r in first.values()}  # their supervisors stayed
        fleet.redis.client().rpush(CrawlKeys.for_spider("links").start_tasks(), f"{site}/3")  # the other half

        nodes.drain("a@test")
        third = fleet.wait_whole(
            "links/0", "links/1", but_not=[r.pid for r in second.values() if r.node == "a@test"], timeout_s=60
        )
        assert {r.node for r in third.values()} == {"b@test"}
        assert fleet.ask("run_crawler.apply_async(('links', 5), queue='node.a@test').get(timeout=60)") == "full"

        (fleet.folder / "data" / "broken").touch()
        done = trawl(fleet, "roll", "links")
        assert done.returncode == 1, done.stdout + fleet.said()
        assert done.stdout.splitlines()[-1].startswith("failed: 0 of 2 replaced, links/0 is refused")
        assert is_untouched(third["links/1"], fleet.crawler("links/1"))

        wait_until(lambda: len(hits_of(site)) == PAGES - 1, fleet.said, 60)
        assert set(hits_of(site).values()) == {1}


def test_five_beats_at_once_do_what_one_does_and_the_queue_of_a_node_that_is_gone_vanishes(fleet: ToyFleet) -> None:
    client = fleet.redis.client()
    both, one = (FIVE_BEATS_AT_ONCE.format(names=names) for names in (["x@test", "y@test"], ["y@test"]))
    assert fleet.run(both) == "['launch links/0 on x@test', 'launch links/1 on y@test']"
    assert [client.llen(f"node.{name}") for name in ("x@test", "y@test")] == [1, 1]
    assert 0 < client.pttl("node.x@test") <= NODE_QUEUE_EXPIRES_S * 1000
    assert client.smembers("_kombu.binding.node.x@test")  # with a deadline for all of it, and nothing that lasts
    assert client.zscore("_kombu.binding_deadlines", "node.x@test")
    assert not client.exists("_kombu.binding_permanent.node.x@test")

    Nodes(client).forget(["x@test"])  # it ends before it has taken the launch
    client.set(FleetKeys().launch("links", 1), "y@test")  # however slow this machine is, the other one is on its way
    assert fleet.run(one) == "['launch links/0 on y@test']"

    client.set(FleetKeys().launch("links", 0), "y@test")
    client.hset(FleetKeys().autoscale(), "links", Autoscaled(policy=Policy(min=3, max=4)).to_json())
    assert fleet.run(one) == "['resize links=3']"  # y has no place left
