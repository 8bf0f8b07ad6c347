"""Requests of many crawlers at a site that refuses what is too much, by the log of the site.

    python -m benchmarks.frontier.refusals [--crawlers 8] [--shares 0.5]

Every number is counted at the site, in a process apart from the crawlers, by one clock. The site can answer 20 requests a second:
of those beyond, it refuses the named share, by 429 with `Retry-After: 1` or by 503 without it; the crawlers know no limit.
Settled is what comes after the first minute.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.support.report import Report, options
from redis_components.politeness import limits
from redis_components.politeness.limits import LaneLimits
from tests.support.crawl import Crawl
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.watched_site import Page, WatchedSite

CAPACITY, CAPACITY_BURST = 20.0, 5.0
SHARES = (0.1, 0.3, 0.5, 0.8)
SETTLES_S, SETTLED_S = 60.0, 60.0
MIDDLEWARES = {
    "redis_components.scrapy_glue.retry_after.RetryAfterMiddleware": 555,
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
}


@dataclass(kw_only=True)
class Log:
    """Log of a site: the time of each request (s), and True if it was answered with a page."""

    answers: list[tuple[float, bool]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    tokens: float = CAPACITY_BURST
    filled_at: float = 0.0

    def has_room(self) -> bool:
        """Return True if a site of CAPACITY can answer one more."""
        now = time.monotonic()
        self.tokens = min(CAPACITY_BURST, self.tokens + (now - self.filled_at) * CAPACITY)
        self.filled_at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


@contextmanager
def crawling(
    folder: Path, *, crawlers: int, pages: int, limited: LaneLimits | None, at_once: int = 16
) -> Iterator[tuple[Crawl, WatchedSite, RedisServer, Log]]:
    """So many crawlers on a site; the log begins when all are at work."""
    log = Log()
    with WatchedSite() as site, RedisServer(aof=True) as server:
        client = server.client()
        crawl = Crawl(site=site.url, redis_url=server.url, folder=folder, pages=0)
        if limited is not None:
            limits.change(client, crawl.keys.limits, site.url.removeprefix("http://"), limited)

        def answer(_: str) -> Page:
            with log.lock:
                log.answers.append((time.monotonic(), True))
            return Page("a page")

        site.answer, site.latency_s = answer, 0.1
        try:
            for _ in range(crawlers):
                start(crawl, at_once)
            crawl.wait_for(crawlers)
            crawl.seed(*(f"{site.url}/{page}" for page in range(pages)))
            wait_until(lambda: bool(site.times), "the crawl begins", 60)
            yield crawl, site, server, log
        finally:
            for process in crawl.processes:
                process.kill()
                process.wait()


def start(crawl: Crawl, at_once: int = 16) -> None:
    """One more crawler."""
    crawl.start(CONCURRENT_REQUESTS=at_once, DOWNLOADER_MIDDLEWARES=json.dumps(MIDDLEWARES), LOG_LEVEL="WARNING", RETRY_TIMES=50)


def refuses(folder: Path, crawlers: int, share: float, status: int) -> list[object]:
    """One row: how a fleet without limits settles at a site that refuses so many of what it cannot answer."""
    with crawling(folder, crawlers=crawlers, pages=30_000, limited=None) as (_, site, _, log):

        def answer(_: str) -> Page:
            with log.lock:
                good = log.has_room() or random.random() >= share
                log.answers.append((time.monotonic(), good))
            return Page("a page") if good else Page("busy", status, {"Retry-After": "1"} if status == 429 else {})

        log.answers.clear()
        site.answer = answer
        time.sleep(SETTLES_S + SETTLED_S)
        begun = log.answers[0][0]
        parts = []
        for since, until in ((0.0, 20.0), (20.0, SETTLES_S), (SETTLES_S, SETTLES_S + SETTLED_S)):
            part = [good for at, good in log.answers if since <= at - begun < until]
            parts += [len(part) / (until - since), 1 - sum(part) / max(1, len(part))]
        sent, refused = parts[4], parts[5]
        return [f"{status}, {share:.0%}", parts[0], parts[2], sent, sent / CAPACITY, f"{refused:.1%}"]


def main() -> None:
    """Run the chosen cases and print the report."""
    parser = options(__doc__)
    parser.add_argument("--crawlers", type=int, default=8, help="processes (default: %(default)s)")
    parser.add_argument("--shares", nargs="*", type=float, default=SHARES, help="refused of the rest (default: %(default)s)")
    chosen = parser.parse_args()
    report = Report(title="Refusals", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))

    def run(name: str, body: Callable[[Path], list[object]]) -> list[object]:
        with tempfile.TemporaryDirectory(prefix="trawl-polite-") as folder:
            row = body(Path(folder))
        print(name, row, file=sys.stderr, flush=True)
        return row

    with RedisServer() as server:
        report.served_by(server.client())
    rows = [
        run("refusals", lambda folder, share=share, status=status: refuses(folder, chosen.crawlers, share, status))
        for status in (503, 429)
        for share in chosen.shares
    ]
    report.table(
        ["refused of what is too much", "1/s, first 20 s", "1/s, 20 to 60 s", "1/s, settled", "of 20/s", "refused"], rows
    )
    within = sum(abs(float(str(row[4])) - 1) <= 0.1 for row in rows)
    report.target(f"settled within 10 % of what the site can answer: {within} of {len(rows)} cases", within == len(rows))
    report.finish(chosen)


if __name__ == "__main__":
    main()
