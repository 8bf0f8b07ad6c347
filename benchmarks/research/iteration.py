"""Chain or tree: what the shape of a crawl does to the queue, to its order, and to what a death costs.

A board of 30 list pages with 20 threads each, of 4 pages each, is crawled by one crawler, 16 requests at a time, 10 ms a page.
In a chain each page leads to the next one; in a tree the first page leads to all the others; `chain, first` is a chain whose list
pages have a higher priority than threads. All else has one priority. Order is counted in pages fetched, in the site's log. The
queue is sampled every 20 ms: its requests, leased ones too, and the memory of its keys. The second table is the same crawl,
killed by SIGKILL at half of its pages, and started again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import redis

from benchmarks.peers.job import Job
from benchmarks.support.peer import PeerProcess, scrapy_redis_peers, seed
from benchmarks.support.report import BenchmarkFailed, Report
from redis_components.admin.inspector import snapshot
from redis_components.keys import CrawlKeys
from tests.support.redis_server import RedisServer
from tests.support.watched_site import Page, WatchedSite

WALKS = (("chain", "chain"), ("chain", "tree"), ("tree", "chain"), ("tree", "tree"), ("chain, first", "chain"))
KEYS = CrawlKeys.for_spider("bench")
LIMIT_S = 180.0


@dataclass(frozen=True)
class Board:
    """The size of the board."""

    lists: int
    threads: int
    pages: int

    @property
    def addresses(self) -> set[str]:
        """The paths of all pages."""
        threads = range(self.lists * self.threads)
        lists = {f"/list-{number}" for number in range(1, self.lists + 1)}
        return lists | {f"/thread-{thread}-{page}" for thread in threads for page in range(1, self.pages + 1)}


@dataclass
class Crawl:
    """One crawl: site, Redis and the largest queue that was seen."""

    peer: str
    walk: tuple[str, str]
    board: Board
    site: WatchedSite
    client: redis.Redis
    url: str
    most: int = 0
    bytes: int = 0

    def _sample(self) -> None:
        sizes = snapshot(self.client, "bench", KEYS)
        self.most = max(self.most, sizes.ready + sizes.leased)
        keys = self.client.scan_iter(f"{KEYS.requests}*", count=1000)
        self.bytes = max(self.bytes, sum(self.client.memory_usage(key, samples=64) or 0 for key in keys))

    def run(self, until: int | None = None) -> None:
        """Crawl to the end, or kill the crawler once the site has been asked for `until` pages."""
        seed(self.client, [f"{self.site.url}/list-1"] if not self.site.asked else [])
        options = {"list_walk": self.walk[0], "thread_walk": self.walk[1], **vars(self.board)}
        settings: dict[str, Any] = {"CONCURRENT_REQUESTS": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 16}
        job = Job(peer=self.peer, spider="board", site=self.site.url, redis_url=self.url, settings=settings, options=options)
        ends = time.monotonic() + LIMIT_S
        with PeerProcess(job) as process:
            while process.process.poll() is None and (until is None or len(self.site.asked) < until):
                self._sample()
                if time.monotonic() > ends:
                    raise BenchmarkFailed(f"{self.peer}: not done after {LIMIT_S:g} s: {process.output()}")
                time.sleep(0.02)

    def reached(self) -> list[object]:
        """Return list pages read, and threads opened and read to their end, of all."""
        paths = set(self.site.paths())
        threads = range(self.board.lists * self.board.threads)
        opened = sum(f"/thread-{one}-1" in paths for one in threads)
        complete = sum(all(f"/thread-{one}-{page}" in paths for page in range(1, self.board.pages + 1)) for one in threads)
        return [
            f"{sum(path.startswith('/list') for path in paths)} of {self.board.lists}",
            *(f"{number / len(threads):.0%}" for number in (opened, complete)),
        ]


def run(*, small: bool) -> Report:
    """Crawl each shape twice. The small form has 3 list pages, a chain and a tree, a death of the chain, and Trawl alone."""
    report = Report(title="Chain or tree", method=" ".join((__doc__ or "").split("\n\n", 1)[1].split()))
    peers = ("trawl", *scrapy_redis_peers(report, left_out=small)[:1])
    board = Board(lists=3, threads=4, pages=3) if small else Board(lists=30, threads=20, pages=4)
    shapes = [(peer, walk) for peer in peers for walk in (WALKS if peer == "trawl" and not small else (WALKS[0], WALKS[3]))]
    whole = [[peer, *walk, *to_its_end(peer, walk, board)] for peer, walk in shapes]
    head = ["peer", "list pages", "threads", "pages", "most queued", "KiB of Redis", "s"]
    order = ["first thread read", "all threads opened", "half of the threads read"]
    report.table([*head, *(f"{what} after" for what in order)], whole)
    killed = [[peer, *walk, *killed_at_half(peer, walk, board)] for peer, walk in (shapes[:1] if small else shapes)]
    head = ["peer", "list pages", "threads", "list pages at half", "threads opened", "threads read"]
    report.table([*head, "never fetched after a new start", "fetched twice"], killed)
    return report


def to_its_end(peer: str, walk: tuple[str, str], board: Board) -> list[object]:
    """Crawl everything; return the columns of the first table."""
    with crawl_of(peer, walk, board) as crawl:
        crawl.run()
        paths, times = crawl.site.paths(), crawl.site.times
        last = [paths.index(f"/thread-{one}-{board.pages}") + 1 for one in range(board.lists * board.threads)]
        opened = [paths.index(f"/thread-{one}-1") + 1 for one in range(board.lists * board.threads)]
        complete = sorted(last)
        order = (complete[0], max(opened), complete[len(complete) // 2])
        shares = [f"{place / len(paths):.0%}" for place in order]
        return [len(paths), crawl.most, crawl.bytes // 1024, round(max(times) - min(times), 1), *shares]


def killed_at_half(peer: str, walk: tuple[str, str], board: Board) -> list[object]:
    """Kill the crawl at half of its pages and go on; return the columns of the second table."""
    with crawl_of(peer, walk, board) as crawl:
        crawl.run(until=len(board.addresses) // 2)
        at_half = crawl.reached()
        crawl.run()
        asked = Counter(crawl.site.paths())
        return [*at_half, len(board.addresses - asked.keys()), sum(asked.values()) - len(asked)]


@contextmanager
def crawl_of(peer: str, walk: tuple[str, str], board: Board) -> Iterator[Crawl]:
    """Yield a crawl on a site and a Redis of its own."""
    with WatchedSite() as site, RedisServer() as server, server.client() as client:
        site.answer = lambda _: Page("a page")
        site.latency_s = 0.01
        yield Crawl(peer, walk, board, site, client, server.url)
