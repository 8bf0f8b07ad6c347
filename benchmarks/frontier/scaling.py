"""Pages per second of 1, 2 and 4 crawlers that share one frontier, on a site that takes 50 ms for a page.

    python -m benchmarks.frontier.scaling [--rounds 5] [--crawlers 1 2 4] [--concurrency 8] [--seconds 10]

Each crawler has so few requests at a time that it waits for the site, not for the CPU, and all of them fit into the cores. The
crawl begins when every crawler has joined; counted are the pages of the middle, a margin after the last crawler's first page
to the same margin before the first crawler's last page. Linear is n times the pages per second of one crawler in the same round.
"""

from __future__ import annotations

from contextlib import ExitStack

import redis

from benchmarks.peers.job import Job
from benchmarks.support.peer import PeerProcess, distance, seed
from benchmarks.support.report import BenchmarkFailed, Report, options
from benchmarks.support.rounds import Figures, Rounds, pages_per_s
from benchmarks.support.site import site
from redis_components.keys import CrawlKeys
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer

KEYS = CrawlKeys.for_spider("bench")
LONGEST_MARGIN_S = 1.5
TARGET = 0.95


def main() -> None:
    """Run the rounds and print the report."""
    parser = options(__doc__, rounds=5)
    parser.add_argument("--crawlers", type=int, nargs="*", default=[1, 2, 4], help="numbers of crawlers (default: %(default)s)")
    parser.add_argument("--concurrency", type=int, default=8, help="requests at a time of each (default: %(default)s)")
    parser.add_argument("--page-ms", type=float, default=50.0, help="time the site takes for a page (default: %(default)s)")
    parser.add_argument("--delay", type=float, default=0.0, help="added Redis round-trip time in ms (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each crawl, about (default: %(default)s)")
    chosen = parser.parse_args()
    report = Report(title="More crawlers", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    report.caveats += [
        f"{chosen.concurrency} requests at a time for each crawler, {chosen.page_ms:g} ms for a page, {chosen.delay:g} ms added "
        "to each Redis round trip; otherwise the settings of the fleet, with a quiet log.",
        "Crawlers, site and Redis share the machine's cores: a number of crawlers whose CPU does not fit is no measure.",
    ]
    with site() as url, RedisServer() as server:
        report.served_by(server.client())
        rounds = Rounds.play(
            chosen.rounds,
            [str(number) for number in chosen.crawlers],
            lambda variant: crawl(
                int(variant), server, url, chosen.concurrency, chosen.page_ms, chosen.seconds, delay_ms=chosen.delay
            ),
        )
    report.figures["rounds"] = rounds.played
    one = str(min(chosen.crawlers))
    limit = chosen.concurrency * 1000 / chosen.page_ms
    rows: list[list[object]] = []
    for number in chosen.crawlers:
        name = str(number)
        linear = [ratio * int(one) / number for ratio in rounds.ratios(name, one)]
        middle = rounds.ratio(name, one) * int(one) / number
        speed = rounds.median(name, pages_per_s)
        cores = rounds.median(name, lambda figures: figures["cores"])
        rows.append([f"{number}", speed, middle, f"{linear[0]:.3f}-{linear[-1]:.3f}", speed / number / limit, cores])
        if number != int(one):
            report.target(f"{number} crawlers ≥ {TARGET} of linear: {middle:.3f}", middle >= TARGET)
    report.table(["crawlers", "pages/s", "÷ linear", "from-to", "÷ what the latency allows", "cores used by the crawlers"], rows)
    report.finish(chosen)


def crawl(
    crawlers: int, server: RedisServer, url: str, concurrency: int, page_ms: float, seconds: float, *, delay_ms: float
) -> Figures:
    """One crawl by several processes; pages and seconds are those of the middle."""
    pages = int(crawlers * concurrency * 1000 / page_ms * seconds)
    settings = {
        "CONCURRENT_REQUESTS": concurrency,
        "CONCURRENT_REQUESTS_PER_DOMAIN": concurrency,
        "MAX_IDLE_TIME_BEFORE_CLOSE": 0,
        "LOG_LEVEL": "WARNING",
    }
    with ExitStack() as stack, server.client() as client:
        client.flushall()
        redis_url = stack.enter_context(distance(server, delay_ms))
        job = Job(
            peer="trawl",
            spider="tree",
            site=url,
            redis_url=redis_url,
            profile="fleet",
            settings=settings,
            options={"pages": pages, "page_ms": page_ms},
            stamps=True,
        )
        processes = [stack.enter_context(PeerProcess(job)) for _ in range(crawlers)]
        wait_until(lambda: client.zcard(KEYS.owners()) == crawlers, "every crawler has joined", 60)
        seed(client, [f"{url}/{page_ms:g}/1"])

        def over() -> bool:
            gone = any(one.process.poll() is not None for one in processes)
            return gone or acked(client) >= pages or client.llen(KEYS.dead()) > 0

        wait_until(over, lambda: f"{pages} pages are done, not {acked(client)}", 600, every_s=0.2)
        if acked(client) < pages:
            output = "\n".join(one.output() for one in processes)
            raise BenchmarkFailed(f"{acked(client)} of {pages} pages; one was set aside, or a crawler has ended: {output}")
        for process in processes:
            process.terminate()
        each = [process.figures(60) for process in processes]
    fetched = sum(one["pages"] for one in each)
    if fetched != pages or not all(one["stamps"] for one in each):
        raise BenchmarkFailed(f"{crawlers} crawlers: {fetched} of {pages} pages, {[one['pages'] for one in each]}")
    margin_s = min(LONGEST_MARGIN_S, seconds / 5)
    begin = max(one["stamps"][0] for one in each) + margin_s
    end = min(one["stamps"][-1] for one in each) - margin_s
    if end <= begin:
        raise BenchmarkFailed(f"{crawlers} crawlers: too short to have a middle; raise --seconds")
    return {
        "pages": sum(begin <= stamp < end for one in each for stamp in one["stamps"]),
        "wall_s": end - begin,
        "cpu_s": sum(one["cpu_s"] for one in each),
        "cores": sum(one["cpu_s"] / one["wall_s"] for one in each),
        "all_pages": fetched,
    }


def acked(client: redis.Redis) -> int:
    """Return the number of requests that Redis has recorded as done."""
    return int(client.hget(KEYS.counters(), "acked") or 0)


if __name__ == "__main__":
    main()
