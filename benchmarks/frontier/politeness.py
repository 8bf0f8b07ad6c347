"""Requests of many crawlers that share the limits of a site, by the log of the site.

    python -m benchmarks.frontier.politeness [--only rate deaths refusals quota] [--crawlers 8] [--seconds 40] [--shares 0.5]

Every number is counted at the site, in a process apart from the crawlers, by one clock. `deaths` ends a crawler by SIGKILL every
4 s and one by SIGTERM every 9 s, starts others in their places, and kills Redis once (append-only file, back after 2 s).
`refusals` is a site that can answer 20 requests a second: of those beyond, it refuses the named share, by 429 with `Retry-After:
1` or by 503 without it; the crawlers know no limit. Settled is what comes after the first minute.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import tempfile
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.support.report import Report, options
from redis_components.frontier import limits
from redis_components.frontier.limits import LaneLimits
from tests.support.crawl import Crawl
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.watched_site import Page, WatchedSite

RATE, AT_A_TIME = 20.0, 6
CAPACITY, CAPACITY_BURST = 20.0, 5.0
SHARES = (0.1, 0.3, 0.5, 0.8)
SETTLES_S, SETTLED_S = 60.0, 60.0
QUOTA, WINDOW_S = 60, 30.0
SCENARIOS = ("rate", "deaths", "refusals", "quota")
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

    def times(self, since_s: float = 0.0, until_s: float = 1e9) -> list[float]:
        """Of the requests so long after the first one."""
        times = sorted(at for at, _ in self.answers)
        return [at for at in times if since_s <= at - times[0] < until_s]


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


def deaths(crawl: Crawl, server: RedisServer, seconds: float) -> int:
    """Crawlers end and others start, and Redis dies once; how many deaths there were."""
    begun, died, next_kill, next_term, redis_at = time.monotonic(), 0, 4.0, 9.0, seconds / 2
    while (now := time.monotonic() - begun) < seconds:
        time.sleep(0.1)
        alive = [one for one in crawl.processes if one.poll() is None]
        for due, way in ((next_kill, signal.SIGKILL), (next_term, signal.SIGTERM)):
            if now >= due and alive:
                random.choice(alive).send_signal(way)
                start(crawl)
                died += 1
        next_kill += 4.0 if now >= next_kill else 0.0
        next_term += 9.0 if now >= next_term else 0.0
        if now >= redis_at:
            redis_at = 1e9
            server.kill()
            time.sleep(2)
            server.start()
    return died


def keeps_a_rate(folder: Path, crawlers: int, seconds: float, *, dies: bool) -> list[object]:
    """One row: what the site saw in so many seconds."""
    limited = LaneLimits(rate=RATE, concurrency=AT_A_TIME)
    with crawling(folder, crawlers=crawlers, pages=round(RATE * seconds * 2), limited=limited) as (crawl, site, server, _):
        died = deaths(crawl, server, seconds) if dies else time.sleep(seconds)
        times = sorted(site.times)
        times = [at for at in times if at >= times[0] + 1]
        per_s = len(times) / (times[-1] - times[0])
        counts = [bisect_left(times, at + 1) - place for place, at in enumerate(times)]
        most, over = max(counts), sum(count > RATE for count in counts)
        return ["with deaths" if dies else "undisturbed", died or 0, per_s, most, over / len(times), site.most_open]


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


def keeps_a_quota(folder: Path, crawlers: int) -> list[object]:
    """One row: the most in a window, wherever it begins."""
    with crawling(folder, crawlers=crawlers, pages=500, limited=LaneLimits(quotas=((QUOTA, round(WINDOW_S * 1000)),))) as (
        _,
        _,
        _,
        log,
    ):
        time.sleep(3.5 * WINDOW_S)
        times = log.times()
        most = max(bisect_left(times, at + WINDOW_S) - place for place, at in enumerate(times))
        return [f"{QUOTA} in {WINDOW_S:g} s", most]


def main() -> None:
    """Run the chosen cases and print the report."""
    parser = options(__doc__)
    parser.add_argument("--only", nargs="*", choices=SCENARIOS, default=list(SCENARIOS))
    parser.add_argument("--crawlers", type=int, default=8, help="processes (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=40.0, help="of `rate` and `deaths` (default: %(default)s)")
    parser.add_argument("--shares", nargs="*", type=float, default=SHARES, help="of `refusals` (default: %(default)s)")
    chosen = parser.parse_args()
    report = Report(title="Politeness", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))

    def run(name: str, body: Callable[[Path], list[object]]) -> list[object]:
        with tempfile.TemporaryDirectory(prefix="trawl-polite-") as folder:
            row = body(Path(folder))
        print(name, row, file=sys.stderr, flush=True)
        return row

    with RedisServer() as server:
        report.served_by(server.client())
    _tell_rates(
        report,
        [
            run(name, lambda folder, name=name: keeps_a_rate(folder, chosen.crawlers, chosen.seconds, dies=name == "deaths"))
            for name in ("rate", "deaths")
            if name in chosen.only
        ],
    )
    if "refusals" in chosen.only:
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
    if "quota" in chosen.only:
        row = run("quota", lambda folder: keeps_a_quota(folder, chosen.crawlers))
        report.table(["quota", "most in a window"], [row])
        report.target(f"never more than {QUOTA} in {WINDOW_S:g} s", int(str(row[1])) <= QUOTA)
    report.finish(chosen)


def _tell_rates(report: Report, rows: list[list[object]]) -> None:
    if not rows:
        return
    report.table(["20/s, 6 at a time", "deaths", "1/s", "most in 1 s", "windows above 20", "most open"], rows)
    report.target("at most 20 in every second after the first", all(int(str(row[3])) <= RATE for row in rows))
    report.target("at least 19/s while there is work", all(float(str(row[2])) >= 19 for row in rows))
    report.target("never more than 6 open", all(int(str(row[5])) <= AT_A_TIME for row in rows))


if __name__ == "__main__":
    main()
