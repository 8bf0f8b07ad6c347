"""Pausing: how long after the command the last page is still started, and what a paused site's backlog costs the other sites.

    python -m benchmarks.fleet.holds [--rounds 10] [--crawlers 4] [--backlog 100000]

The time is from the command that writes the hold to the last request that arrives at the site within the next three seconds, with
several crawlers on one queue; 0 where none came. Then a backlog of one site lies on top of the queue when the site is paused: the
time until the first page of another site behind it arrives, until all of the backlog is parked, and, after the site is resumed in
a paused crawl, until all of it is back.
"""

from __future__ import annotations

import http.server
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis
from scrapy import Request

from benchmarks.support.report import Report, options
from redis_components.admin.inspector import snapshot
from redis_components.codec.requests import RequestCodec
from redis_components.frontier import holds
from redis_components.frontier.holds import Hold, HoldKind
from redis_components.frontier.messages import NO_FILTER, NewRequest
from tests.support.crawl import Crawl
from tests.support.link_spiders import LinksSpider
from tests.support.owner import Owner
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer

TARGET_S = 2.0
WATCHED_S = 3.0
SITUATIONS: dict[str, tuple[float, dict[str, object]]] = {
    "busy, pages of 50 ms": (0.05, {}),
    "busy, pages of 3 s": (3.0, {}),
    "busy, one page at a time for each domain, 0.5 s apart": (0.0, {"CONCURRENT_REQUESTS_PER_DOMAIN": 1, "DOWNLOAD_DELAY": 0.5}),
    "idle, start tasks come with the pause": (0.0, {}),
}


def main() -> None:
    """Run the benchmark and print the report."""
    parser = options(__doc__, rounds=10)
    parser.add_argument("--crawlers", type=int, default=4)
    parser.add_argument("--backlog", type=int, default=100_000, help="requests of the paused site (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only situations with this in their name")
    chosen = parser.parse_args()
    report = Report(title="Holds", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    delays = {name: _delays(report, name, chosen.rounds, chosen.crawlers) for name in SITUATIONS if chosen.only in name}
    report.table(
        [f"{chosen.crawlers} crawlers", "pauses", "last page started after, s (median)", "longest, s"],
        [[name, len(times), statistics.median(times), max(times)] for name, times in delays.items()],
    )
    rows = [[f"{n} crawlers", chosen.backlog, *_backlog(chosen.backlog, n)] for n in sorted({1, chosen.crawlers})]
    report.table(["paused site", "requests on top", "another site's first page, s", "all parked, s", "all back, s"], rows)
    longest = max(max(times) for times in delays.values())
    report.target(f"no page is started later than {TARGET_S:g} s after the command: {longest:.2f} s", longest <= TARGET_S)
    report.finish(chosen)


def _delays(report: Report, name: str, rounds: int, crawlers: int) -> list[float]:
    latency_s, settings = SITUATIONS[name]
    idle = name.startswith("idle")
    with _crawl(latency_s) as (run, client, arrivals):
        report.served_by(client)
        if not idle:
            _store(run, client, [f"{run.site}/{number}" for number in range(30_000)])
        for _ in range(crawlers):
            run.start(MAX_IDLE_TIME_BEFORE_CLOSE=0, **settings)
        wait_until(lambda: snapshot(client, run.spider).owners == crawlers, run.log, 60)
        times = []
        for _ in range(rounds):
            if not idle:
                seen = len(arrivals)
                wait_until(lambda seen=seen: len(arrivals) >= seen + crawlers, run.log, 30)  # type: ignore[misc]
            time.sleep(1.0)
            begun = time.monotonic()
            _hold(run, client, spider=HoldKind.PAUSE)
            if idle:
                run.seed(*(f"{run.site}/{number}" for number in range(20)))
            time.sleep(WATCHED_S)
            times.append(max([at - begun for at in arrivals if at > begun], default=0.0))
            _hold(run, client, spider=None)
        return times


def _backlog(requests: int, crawlers: int) -> tuple[float, float, float]:
    with _crawl(0.0) as (run, client, arrivals):
        _store(run, client, [f"{run.site.replace('127.0.0.1', 'localhost')}/{number}" for number in range(requests)], priority=1)
        _store(run, client, [f"{run.site}/{number}" for number in range(100)])
        _hold(run, client, **{"site:localhost": HoldKind.PAUSE, "spider": HoldKind.PAUSE})
        for _ in range(crawlers):
            run.start(MAX_IDLE_TIME_BEFORE_CLOSE=0)
        wait_until(lambda: snapshot(client, run.spider).owners == crawlers, run.log, 60)
        begun = time.monotonic()
        _hold(run, client, spider=None)
        wait_until(lambda: snapshot(client, run.spider).parked == requests, run.log, 300)
        parked_s = time.monotonic() - begun
        wait_until(lambda: len(arrivals) == 100, run.log, 60)
        first_s = arrivals[0] - begun
        begun = time.monotonic()
        _hold(run, client, **{"site:localhost": None, "spider": HoldKind.PAUSE})
        wait_until(lambda: snapshot(client, run.spider).parked == 0, run.log, 300)
        return first_s, parked_s, time.monotonic() - begun


def _hold(run: Crawl, client: redis.Redis, **changes: HoldKind | None) -> None:
    holds.change(client, run.keys, {name: Hold(word=word) if word else None for name, word in changes.items()})


def _store(run: Crawl, client: redis.Redis, urls: list[str], priority: int = 0) -> None:
    codec, seeder = RequestCodec(LinksSpider()), Owner(client, "seeder", keys=run.keys, ttl_s=600).open()
    for url in urls:
        seeder.frontier.add_request(NewRequest(NO_FILTER, str(-priority), codec.encode(Request(url, priority=priority))))
    seeder.advance(30)
    seeder.close()


@contextmanager
def _crawl(latency_s: float) -> Iterator[tuple[Crawl, redis.Redis, list[float]]]:
    """Yield a crawl, a client of its Redis, and the times of requests at its site, which is served by this process."""
    arrivals: list[float] = []

    class Page(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            arrivals.append(time.monotonic())
            time.sleep(latency_s)
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    site.daemon_threads = True
    threading.Thread(target=site.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="trawl-bench-holds-") as folder, RedisServer() as server:
        client = server.client()
        run = Crawl(site=f"http://127.0.0.1:{site.server_port}", redis_url=server.url, folder=Path(folder), pages=0)
        try:
            yield run, client, arrivals
        finally:
            for process in run.processes:
                process.kill()
                process.wait()
            site.shutdown()
            site.server_close()


if __name__ == "__main__":
    main()
