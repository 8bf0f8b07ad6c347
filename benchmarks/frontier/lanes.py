"""Cost of lanes in Redis, and their shares of an exchange.

    python -m benchmarks.frontier.lanes [--exchanges 300]

One process stores 30 requests, leases 30 and acks 30 in each exchange; µs are processor time of Redis's main thread, memory is
the `MEMORY USAGE` of the limits. No limit delays a request: only the limiter is measured. Fairness: 99 lanes with 100
requests each are worked off alone, and next to a lane of a million; counted are the exchanges until the 99 are empty, which no
clock changes.
"""

from __future__ import annotations

import struct
import sys

import msgspec
import redis

from benchmarks.support.report import Report, options
from redis_components.frontier.messages import NO_FILTER, NewRequest
from redis_components.politeness.limits import LaneLimits
from tests.support.owner import KEYS, Owner
from tests.support.redis_server import RedisServer

PAYLOAD = b"x" * 200
MILLION = 1_000_000
FREE = msgspec.json.encode(LaneLimits(rate=10_000.0, burst=10_000, concurrency=10_000))
SMALL_LANES, SMALL = 99, 100


def limited(client: redis.Redis, lanes: int) -> float:
    """Set limits for so many lanes that delay no request; return the bytes of each."""
    client.hset(KEYS.limits, mapping={f"site{n}.example": FREE for n in range(lanes)})
    client.hincrby(KEYS.limits, "version", 1)
    return (client.memory_usage(KEYS.limits, samples=0) or 0) / lanes


def stored(client: redis.Redis, lane: str, number: int, first: int = 0) -> None:
    """So many requests, as `exchange.lua` stores them."""
    for begin in range(first, first + number, 10_000):
        members = {struct.pack(">QB", n, 0) + PAYLOAD: 0 for n in range(begin, min(begin + 10_000, first + number))}
        client.zadd(KEYS.lane(lane) if lane else KEYS.ready(), members)
    if lane:
        client.zadd(KEYS.lanes(), {lane: 0})


def spent_s(client: redis.Redis) -> float:
    """Processor time of the main thread."""
    used = client.info("cpu")
    return float(used["used_cpu_user_main_thread"] + used["used_cpu_sys_main_thread"])


def one_exchange(one: Owner) -> None:
    """Release leases that were not taken at their time."""
    answered = one.frontier.exchanges
    while one.frontier.exchanges == answered:
        one.advance(0.001)


def exchanged(client: redis.Redis, lanes: list[str], exchanges: int) -> float:
    """µs of Redis for one exchange, on requests of these lanes in turn; [""]: of no lane."""
    one, number = Owner(client, "one", concurrency=30, max_prefetch=30).open(), 10**9
    one.advance(0.2)
    before = 0.0
    for turn in range(exchanges + 20):
        if turn == 20:  # the first ones come to rest
            before = spent_s(client)
        while (lease := one.frontier.take()) is not None:
            one.frontier.ack(lease.id)
        for _ in range(30):
            number += 1
            one.frontier.add_request(NewRequest(NO_FILTER, "0", b"%d" % number + PAYLOAD, lanes[number % len(lanes)]))
        one_exchange(one)
    used_s = spent_s(client) - before
    one.frontier.stop()
    return used_s * 1e6 / exchanges


def until_empty(client: redis.Redis, *, beside: int) -> int:
    """Exchanges until the small lanes are empty."""
    client.flushdb(asynchronous=False)
    limited(client, SMALL_LANES + 1)
    for n in range(SMALL_LANES):
        stored(client, f"site{n}.example", SMALL, n * SMALL)
    if beside:
        stored(client, f"site{SMALL_LANES}.example", beside, MILLION)
    one, exchanges, left = Owner(client, "one", concurrency=30).open(), 0, SMALL_LANES * SMALL
    one.advance(0.2)
    before = one.frontier.exchanges
    small = {f"site{n}.example" for n in range(SMALL_LANES)}
    while left:
        while (lease := one.frontier.take()) is not None:
            left -= lease.lane in small
            one.frontier.ack(lease.id)
        one_exchange(one)
    exchanges = one.frontier.exchanges - before
    one.frontier.stop()
    return exchanges


def main() -> None:
    """Run the benchmark and print the report."""
    parser = options(__doc__)
    parser.add_argument("--exchanges", type=int, default=300, help="of each row (default: %(default)s)")
    chosen = parser.parse_args()
    report = Report(title="Lanes", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    rows: list[list[object]] = []
    with RedisServer() as server:
        client = server.client()
        report.served_by(client)
        for lanes, waiting in ((0, 0), (1, 0), (100, 0), (10_000, 0), (0, MILLION), (1, MILLION), (10_000, MILLION)):
            client.flushdb(asynchronous=False)
            names = [f"site{n}.example" for n in range(lanes)] or [""]
            bytes_each = limited(client, lanes) if lanes else 0.0
            for n, name in enumerate(names):
                stored(client, name, max(waiting // len(names), 1), n * 10_000 if lanes > 1 else 0)
            rows.append([f"{lanes:,}", waiting, exchanged(client, names, chosen.exchanges), bytes_each])
            print(rows[-1], file=sys.stderr, flush=True)
        alone, beside = until_empty(client, beside=0), until_empty(client, beside=MILLION)
    report.table(["lanes with limits", "requests waiting", "µs an exchange", "bytes of limits a lane"], rows)
    report.table(["99 lanes of 100 requests", "exchanges"], [["alone", alone], ["beside a lane of a million", beside]])
    report.target("beside a lane of a million at most 1.1 times as long", beside <= 1.1 * alone)
    report.finish(chosen)


if __name__ == "__main__":
    main()
