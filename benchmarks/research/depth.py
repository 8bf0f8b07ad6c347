"""Depth: what DEPTH_LIMIT and DEPTH_PRIORITY do to a deep chain amid shallow pages.

A chain of 20 pages is found on one page amid 600 pages without links, after the first quarter of them. A row is one crawl with
one crawler, four requests at a time; the site's log has the order.
"""

from __future__ import annotations

from typing import Any

from benchmarks.peers.job import Job
from benchmarks.support.peer import PeerProcess, scrapy_redis_peers, seed
from benchmarks.support.report import Report
from tests.support.redis_server import RedisServer
from tests.support.watched_site import Page, WatchedSite

SETTINGS: dict[str, dict[str, Any]] = {
    "Scrapy's defaults": {},
    "DEPTH_PRIORITY = 1": {"DEPTH_PRIORITY": 1},
    "DEPTH_PRIORITY = -1": {"DEPTH_PRIORITY": -1},
    "DEPTH_LIMIT = 10": {"DEPTH_LIMIT": 10},
}


def run(*, small: bool) -> Report:
    """Crawl the chain with each peer and setting. The small form has 40 pages beside a chain of 12, and Trawl alone."""
    report = Report(title="Depth", method=" ".join((__doc__ or "").split("\n\n", 1)[1].split()))
    peers = ("trawl",) if small else ("vanilla", *scrapy_redis_peers(report, left_out=False)[:1], "trawl")
    steps, shallow = (12, 40) if small else (20, 600)
    rows = [[peer, name, *chain(peer, changes, steps, shallow)] for peer in peers for name, changes in SETTINGS.items()]
    report.table(["peer", "settings", "pages of the chain", "other pages before its last one", "pages in all"], rows)
    return report


def chain(peer: str, changes: dict[str, Any], steps: int, shallow: int) -> list[object]:
    """Crawl once; return what the site's log has."""
    with WatchedSite() as site, RedisServer() as server:
        site.answer = lambda _: Page("a page")
        if peer != "vanilla":
            seed(server.client(), [f"{site.url}/"])
        settings = {"CONCURRENT_REQUESTS": 4, "CONCURRENT_REQUESTS_PER_DOMAIN": 4, **changes}
        job = Job(
            peer=peer,
            spider="deep_chain",
            site=site.url,
            redis_url=server.url,
            settings=settings,
            urls=(f"{site.url}/",),
            options={"steps": steps, "shallow": shallow},
        )
        with PeerProcess(job) as process:
            process.figures(120)
        paths = [path for path, _ in site.asked]
    deep = [at for at, path in enumerate(paths) if "deep" in path]
    before = sum("shallow" in path for path in paths[: deep[-1]]) if deep else 0
    return [f"{len(deep)} of {steps}", f"{before} of {shallow}", len(paths)]
