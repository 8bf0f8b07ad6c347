"""A crawl whose crawlers and nodes are shut down in every graceful way: nothing is lost, nothing is fetched twice."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from redis_components.admin.inspector import snapshot
from redis_components.keys import CrawlKeys
from tests.support.crawl import hits_of, link_site
from tests.support.fleet import Program, ToyFleet
from tests.support.processes import wait_until
from workers.state.registry import CrawlerRecord

PAGES, LATENCY_S = 10**9, 0.6

pytestmark = pytest.mark.usefixtures("no_process_left")

REVOKE_AS_FLOWER_DOES = """
from tasks import app
for tasks in (app.control.inspect(["a@test"], timeout=60, limit=1).active() or {}).values():
    for task in tasks:
        if task["name"] == "trawl.run_crawler":
            app.control.revoke(task["id"], terminate=True)
"""


class Crawling:
    """A fleet of two crawlers on the link site, fed with its first page."""

    def __init__(self, fleet: ToyFleet, site: str) -> None:
        self.fleet = fleet
        self._site = site
        fleet.redis.client().rpush(CrawlKeys.for_spider("links").start_tasks(), f"{site}/1")

    def hits(self) -> dict[int, int]:
        return hits_of(self._site)

    def goes_on(self, pages: int = 50) -> None:
        """Until so many more pages were fetched."""
        enough = len(self.hits()) + pages
        wait_until(lambda: len(self.hits()) >= enough, self.fleet.said, 60)

    def whole(self, but_not: dict[str, CrawlerRecord] | None = None) -> dict[str, CrawlerRecord]:
        gone = [record.pid for record in (but_not or {}).values()]
        return self.fleet.wait_whole("links/0", "links/1", but_not=gone, timeout_s=60)

    def ends(self, node: Program, *signals: signal.Signals) -> int:
        for number in signals:
            said = len(node.said())
            node.process.send_signal(number)
            wait_until(lambda said=said: len(node.said()) > said, node.said)  # type: ignore[misc]
        return node.wait(60)


@pytest.fixture
def crawling(tmp_path: Path) -> Iterator[Crawling]:
    with (
        link_site(tmp_path, pages=PAGES, latency_s=LATENCY_S) as site,
        ToyFleet(tmp_path, "links=2", SCRAPY_SETTINGS_MODULE="tests.support.link_settings") as fleet,
    ):
        fleet.beat()
        yield Crawling(fleet, site)


def test_in_every_graceful_way_to_end_pages_are_finished_none_is_lost_and_none_fetched_twice(crawling: Crawling) -> None:
    fleet = crawling.fleet
    nodes = [fleet.node("a")]
    crawlers = crawling.whole()
    nodes.append(fleet.node("b"))

    # SIGTERM to a crawler.
    crawling.goes_on()
    victim = crawlers["links/0"]
    psutil.Process(victim.pid).terminate()
    crawlers = fleet.wait_whole("links/0", "links/1", but_not=[victim.pid])
    assert crawlers["links/0"].last_exit == "stopped"

    # Flower's button Terminate.
    fleet.run(REVOKE_AS_FLOWER_DOES)
    crawling.whole(but_not=crawlers)
    nodes.append(fleet.node("c"))

    # Soft, cold and warm shutdown of a worker.
    crawling.goes_on()
    crawling.ends(nodes[0], signal.SIGQUIT)
    crawling.whole()
    crawling.goes_on()
    crawling.ends(nodes[1], signal.SIGTERM, signal.SIGQUIT, signal.SIGQUIT)
    crawling.whole()
    crawling.goes_on()
    assert crawling.ends(nodes[2], signal.SIGTERM) == 0

    fleet.wait_whole()
    hits, end = crawling.hits(), snapshot(fleet.redis.client(), "links")
    assert [page for page, times in hits.items() if times > 1] == []
    assert end.acked == len(hits)
    assert (end.items, end.bad_items) == (len(hits), 0), "the items are the user's: the fleet's writer leaves them alone"
    found = {1, *(child for page in hits for child in (2 * page, 2 * page + 1))}
    assert end.ready == len(found) - len(hits), "every page that was found waits, or was fetched"
    assert (end.leased, end.leased_tasks, end.reclaimed) == (0, 0, 0), "every lease was given back"
    assert all(view.token is None for view in fleet.registry.slots({"links": 2}, []))
