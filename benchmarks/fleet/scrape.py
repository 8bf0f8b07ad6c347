"""A scrape of a large fleet: what it costs the exporter to read Redis and to write the metrics.

    python -m benchmarks.fleet.scrape [--scrapes 40] [--services 100] [--lanes 1000] [--boards 10000]

Services with their keys, stats and one crawler each, limits of sites with a request that waits in every fifth, and boards. Fifty
boards are scanned between two scrapes: as where each is scanned every 3,000 s and a scrape comes every 15 s. The functions are
those of the exporter, in this process, without HTTP.
"""

from __future__ import annotations

import gc
import statistics
import struct
import time

import redis

from benchmarks.support.report import Report, options
from forums.state.keys import ForumState, ForumStates
from monitoring.metrics.exposition import text_of
from monitoring.source import Source
from redis_components.keys import CrawlKeys, CrawlRecord, CrawlRecords, limits_key
from redis_components.politeness import limits
from redis_components.politeness.limits import LaneLimits
from tests.support.redis_server import RedisServer
from workers.state.registry import CrawlerRecord, CrawlerState, Registry

TARGET_MS = 50.0
SCANNED = 50
BOARDS_OF_A_SITE = 100
STATS = {f"downloader/response_status_count/{code}": "17" for code in (200, 301, 302, 403, 404, 429, 500, 503)} | {
    f"some/stat/{number}": "5" for number in range(25)
}


def main() -> None:
    """Run the benchmark and print the report."""
    parser = options(__doc__)
    parser.add_argument("--scrapes", type=int, default=40, help="default: %(default)s")
    parser.add_argument("--services", type=int, default=100, help="default: %(default)s")
    parser.add_argument("--lanes", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--boards", type=int, default=10_000, help="default: %(default)s")
    chosen = parser.parse_args()
    report = Report(title="A scrape of a large fleet", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    with RedisServer() as server:
        client = server.client()
        report.served_by(client)
        services = [f"service{number}" for number in range(chosen.services)]
        fill(client, services, chosen.lanes, chosen.boards)
        source = Source(server.url, dict.fromkeys(services, 1))
        scrapes = []
        for number in range(chosen.scrapes + 3):
            beat(Registry(client), services)
            scrapes.append(scrape(source, client, number, chosen.boards))
        scrapes = scrapes[3:]
        series = text_of(source.look()).count(b"\n")
    report.figures["scrapes"] = scrapes
    columns = ["read, ms of CPU", "write, ms of CPU", "together, ms of CPU", "wall, ms"]
    rows = [[name, *(_at([one[column] for one in scrapes], share) for column in range(4))] for name, share in SHARES.items()]
    report.table(["of the scrapes", *columns], rows)
    report.caveats.append(f"{series:,} lines. The first three scrapes, which read every board and load scripts, are left out.")
    report.target(f"a scrape takes ≤ {TARGET_MS:g} ms of CPU: {rows[0][3]:.1f}", float(rows[0][3]) <= TARGET_MS)
    report.finish(chosen)


SHARES = {"median": 0.5, "nine in ten": 0.9}


def _at(values: list[float], share: float) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[round(100 * share) - 1]


def fill(client: redis.Redis, services: list[str], lanes: int, boards: int) -> None:
    """Write the records of a fleet to Redis."""
    registry, records, now = Registry(client), CrawlRecords(client), Registry(client).now()
    for name in services:
        keys = CrawlKeys.for_spider(name)
        records.write(CrawlRecord(spider=name, keys=keys))
        client.hset(keys.stats_hash(), mapping=dict(STATS))
        client.zadd(keys.ready(), {struct.pack(">QB", int(now * 1e6) + n, 0) + b"a request": 0 for n in range(3)})
    beat(registry, services)
    first = CrawlKeys.for_spider(services[0])
    for number in range(lanes):
        lane = f"site{number}.example"
        limits.change(client, limits_key(), lane, LaneLimits(rate=1.0))
        if number % 5 == 0:
            client.zadd(first.lanes(), {lane: now * 1000})
            client.zadd(first.lane(lane), {struct.pack(">QB", int(now * 1e6), 0) + b"a request": 0})
    names = [board(number) for number in range(boards)]
    ForumStates(client).write({name: _state(now) for name in names})
    ForumStates(client).store_dues(dict.fromkeys(names, now + 3000), now, whole=True)


def beat(registry: Registry, services: list[str]) -> None:
    """Renew each crawler's heartbeat: else the exporter computes shortages."""
    now = registry.now()
    for name in services:
        registry.note(CrawlerRecord(spider=name, number=0, node="n1", pid=7, state=CrawlerState.RUNNING, beat_at=now))


def board(number: int) -> str:
    """Its name."""
    return f"site{number // BOARDS_OF_A_SITE}/board{number}"


def _state(at: float) -> ForumState:
    return ForumState(
        scanned_at=at, tried_at=at, newest_at=at - 60, events=3.5, exposure=7200.0, pages=1.2, name="A board of a forum"
    )


def scrape(source: Source, client: redis.Redis, number: int, boards: int) -> list[float]:
    """Milliseconds: CPU to read, to write, of both, and the time that both took; after some boards were scanned."""
    now = Registry(client).now()
    scanned = [board((SCANNED * number + n) % boards) for n in range(min(SCANNED, boards))]
    ForumStates(client).write({name: _state(now) for name in scanned})
    ForumStates(client).store_dues(dict.fromkeys(scanned, now + 3000), now, whole=False)
    if not number:
        gc.collect()
        gc.freeze()  # as the exporter does
    began, used = time.perf_counter(), time.process_time()
    view = source.look()
    read = time.process_time()
    text_of(view)
    end, wall = time.process_time(), time.perf_counter() - began
    return [1000 * (read - used), 1000 * (end - read), 1000 * (end - used), 1000 * wall]


if __name__ == "__main__":
    main()
