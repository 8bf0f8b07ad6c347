"""Start tasks: pages per second when every page is one and some are slow, and how soon an idle crawler picks one up.

    python -m benchmarks.frontier.start_tasks [--rounds 5] [--pages 3000] [--slow-share 0.05] [--slow-ms 2000] [--tasks 20]

Every page is in the start-URL key before the crawl begins; vanilla Scrapy has the same URLs, in the same order, as its own
`start_urls`. Then tasks are put, one after the other, into the key of a crawler that has nothing to do; the time is from the
command that stores the task to the request's arrival at the site.
"""

from __future__ import annotations

import http.server
import queue
import random
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.peers.job import Job
from benchmarks.support.peer import PeerProcess, run_with_redis, scrapy_redis_peers, seed
from benchmarks.support.report import BenchmarkFailed, Report, options
from benchmarks.support.rounds import Figures, Rounds, pages_per_s
from benchmarks.support.site import site
from tests.support.redis_server import RedisServer

SPEED_TARGET = 0.9
PICK_UP_TARGET_S = 0.2
ARRIVES_S = 30.0


def main() -> None:
    """Run both measurements and print the report."""
    parser = options(__doc__, rounds=5)
    parser.add_argument("--pages", type=int, default=3000, help="start tasks of each crawl (default: %(default)s)")
    parser.add_argument("--slow-share", type=float, default=0.05, help="share of slow pages (default: %(default)s)")
    parser.add_argument("--slow-ms", type=float, default=2000.0, help="what they take (default: %(default)s)")
    parser.add_argument("--peer-pages", type=int, default=640, help="start tasks of scrapy-redis (default: %(default)s)")
    parser.add_argument("--peer-rounds", type=int, default=2, help="its rounds (default: %(default)s)")
    parser.add_argument("--tasks", type=int, default=20, help="tasks put to an idle crawler (default: %(default)s)")
    parser.add_argument("--without-scrapy-redis", action="store_true")
    chosen = parser.parse_args()
    report = Report(title="Start tasks", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    report.caveats += [
        f"{chosen.slow_share:.0%} of the pages, chosen at random but alike for each peer and round, take {chosen.slow_ms:g} ms; "
        "the others nothing. 32 requests at a time.",
        "The last slow pages are in the time of each peer; scrapy-redis waits for the slowest page of each batch all along, "
        "so fewer pages do not change its pages/s.",
    ]
    peers = ("trawl", *scrapy_redis_peers(report, left_out=chosen.without_scrapy_redis)[:1])
    with site() as url, RedisServer() as server:
        report.served_by(server.client())
        waits = [chosen.slow_ms if random.Random(number).random() < chosen.slow_share else 0 for number in range(chosen.pages)]
        urls = [f"{url}/{wait:g}/{number}" for number, wait in enumerate(waits)]

        def measure(peer: str) -> Figures:
            seeds = urls[: chosen.peer_pages] if peer == "scrapy-redis" else urls
            return run_with_redis(Job(peer=peer, spider="tasks", site=url), server, seeds=seeds)

        rounds = Rounds.play(
            chosen.rounds, ["vanilla", *peers], measure, slow=dict.fromkeys(set(peers) - {"trawl"}, chosen.peer_rounds)
        )
        waited = {peer: pick_ups(peer, server, chosen.tasks if peer == "trawl" else min(5, chosen.tasks)) for peer in peers}
    report.figures |= {"rounds": rounds.played, "pick_up_s": waited}
    rows: list[list[object]] = []
    for peer in ("vanilla", *peers):
        ratios = rounds.ratios(peer, "vanilla")
        pages = int(rounds.median(peer, lambda figures: figures["pages"]))
        rows.append(
            [peer, pages, rounds.median(peer, pages_per_s), rounds.ratio(peer, "vanilla"), f"{ratios[0]:.2f}-{ratios[-1]:.2f}"]
        )
    report.table(["peer", "pages", "pages/s", "÷ vanilla", "from-to"], rows)
    report.table(
        ["idle crawler of", "tasks", "picked up after, s (median)", "longest, s"],
        [[peer, len(times), statistics.median(times), max(times)] for peer, times in waited.items()],
    )
    ratio, median = rounds.ratio("trawl", "vanilla"), statistics.median(waited["trawl"])
    report.target(f"pages/s ≥ {SPEED_TARGET} of vanilla: {ratio:.2f}", ratio >= SPEED_TARGET)
    report.target(f"median pick-up ≤ {PICK_UP_TARGET_S} s: {median:.3f} s", median <= PICK_UP_TARGET_S)
    report.finish(chosen)


def pick_ups(peer: str, server: RedisServer, tasks: int) -> list[float]:
    """Seconds from storing each task to its request's arrival at the site."""
    waited = []
    with server.client() as client, listening() as (url, arrivals):
        client.flushall()
        job = Job(peer=peer, spider="tasks", site=url, redis_url=server.url, settings={"MAX_IDLE_TIME_BEFORE_CLOSE": 0})
        with PeerProcess(job) as process:
            seed(client, [f"{url}/first"])
            arrived(arrivals, "/first")
            for number in range(tasks):
                time.sleep(random.uniform(0.3, 0.8))  # idle again; a random time, because the crawler asks at regular ones
                begun = time.monotonic()
                seed(client, [f"{url}/{number}"])
                waited.append(arrived(arrivals, f"/{number}") - begun)
            process.terminate()
            process.figures(60)
    return waited


def arrived(arrivals: queue.Queue[tuple[str, float]], path: str) -> float:
    """Return the time of arrival of the request for `path`."""
    try:
        seen, at = arrivals.get(timeout=ARRIVES_S)
    except queue.Empty:
        raise BenchmarkFailed(f"{path} was not fetched within {ARRIVES_S:g} s") from None
    if seen != path:
        raise BenchmarkFailed(f"{seen} was fetched instead of {path}")
    return at


@contextmanager
def listening() -> Iterator[tuple[str, queue.Queue[tuple[str, float]]]]:
    """Serve a site in this process, on the clock that times the tasks; yield its URL and the queue of (path, time of arrival)."""
    arrivals: queue.Queue[tuple[str, float]] = queue.Queue()

    class Arrival(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            arrivals.put((self.path, time.monotonic()))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing: the queue is the log."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Arrival) as listener:
        thread = threading.Thread(target=listener.serve_forever, name="arrivals", daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.server_address[1]}", arrivals
        finally:
            listener.shutdown()
            thread.join(10)


if __name__ == "__main__":
    main()
