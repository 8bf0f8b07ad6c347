"""Dupefilters: memory of Redis for each entry, checks per second in the exchange, and false positives.

    python -m benchmarks.frontier.dupefilters [--entries 1000000 10000000] [--checked 100000] [--only exact bloom]

Each kind is filled on a server of its own, by the script that a filter used alone runs and that shares its Lua with the
exchange. Memory is what the server's used_memory grows by until it is full. Just before, a crawler process without Scrapy
stores requests through the real exchange, 1,000 at a time: new ones, and ones that were seen (any of the last quarter). The
cost is CPU time of Redis's main thread for each request, in the median batch, because wall time on a shared machine is its
neighbours', too. Checks per second are for half new, half seen requests: of the whole exchange, which also reads the message
and stores the new ones; and of the filter's part, which is the cost of the same checks by the filter alone. False positives are
new requests that count as seen, among as many more as were stored at first, at most 1,000,000.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from hashlib import sha1
from typing import Any

import redis

from benchmarks.support.report import Report, options
from redis_components import filters as filter_access
from redis_components.admin.inspector import snapshot
from redis_components.filters import Bloom, Exact, Filter, PlainSet, Rolling
from redis_components.frontier.messages import NO_FILTER, NewRequest
from tests.support.owner import KEYS, Owner
from tests.support.redis_server import RedisServer

KEY = KEYS.fingerprints()
BATCH = 1000
LIMITS = {"exact of 64 bits": 12, "exact": 12, "exact of 80 bits": 16, "rolling": 24, "bloom": 3}
"""Bytes per entry at 1,000,000."""
LEAST_CHECKS = 200_000
SMALL = 2_000_000
SMALL_ONLY = ("exact of 64 bits", "bloom grown from a tenth")
"""Filters whose figures do not change with more entries, which take minutes."""


def kinds(entries: int) -> dict[str, tuple[Filter, int]]:
    """Each filter, sized for `entries`, and how many go in: into the rolling one more than it keeps."""
    return {
        "plain set": (PlainSet(), entries),
        "exact of 64 bits": (Exact(bits=64), entries),
        "exact": (Exact(), entries),
        "exact of 80 bits": (Exact(bits=80), entries),
        "rolling": (Rolling(max_entries=entries), 2 * entries - entries // 10),
        "bloom": (Bloom(capacity=entries, native=False), entries),
        "bloom grown from a tenth": (Bloom(capacity=entries // 10, native=False), entries),
    }


def main() -> None:
    """Fill, check, and print the report."""
    parser = options(__doc__)
    parser.add_argument(
        "--entries", type=int, nargs="+", default=[1_000_000, 10_000_000], help="at least 10,000 (default: %(default)s)"
    )
    parser.add_argument(
        "--checked", type=int, default=100_000, help="requests through the exchange, each way (default: %(default)s)"
    )
    parser.add_argument("--only", nargs="*", choices=kinds(10_000), help="these kinds only")
    chosen = parser.parse_args()
    report = Report(title="Dupefilters", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    report.caveats += [
        "Neighbours on the machine slow caches and so CPU time, too: see the load at the start above.",
        "A filter of 10,000,000 entries does not fit the processor's caches: each check then costs about two misses of them.",
    ]
    for entries in chosen.entries:
        rows = []
        for name, (kind, stored) in kinds(entries).items():
            if name not in (chosen.only or kinds(entries)) or (entries > SMALL and name in SMALL_ONLY):
                continue
            with RedisServer() as server:
                figures = measure(server.client(), kind, stored, chosen.checked)
                report.served_by(server.client())
            rows.append([name, *figures.values()])
            print(f"{entries:,} entries, {name}: {figures}", file=sys.stderr, flush=True)
            if entries == 1_000_000:
                aims(report, name, figures)
        report.tables.append(f"{entries:,} entries:")
        report.table(["dupefilter", *figures], rows)
    report.finish(chosen)


def aims(report: Report, name: str, figures: dict[str, Any]) -> None:
    """Check the limits that were set for this project."""
    if name in LIMITS:
        each = figures["B per entry"]
        report.target(f"{name}: at most {LIMITS[name]} bytes per entry: {each:.2f}", each <= LIMITS[name])
    checks = figures["filter's checks/s"]
    report.target(f"{name}: at least {LEAST_CHECKS:,} checks per second: {checks:,.0f}", checks >= LEAST_CHECKS)
    if figures["promised"]:
        wrong = figures["false positives"]
        report.target(f"{name}: false positives {wrong:.2g} of {figures['promised']:g} promised", wrong <= figures["promised"])


def measure(client: redis.Redis, kind: Filter, stored: int, checked: int) -> dict[str, Any]:
    """Fill and check one filter."""
    begun = time.monotonic()
    client.config_set("latency-tracking", "no")  # it allocates a histogram for each command at its first use
    fill(client, kind, 0, BATCH)  # the connection's buffers
    filter_access.clear(client, KEY)
    empty = used_memory(client)
    first = stored - 2 * checked
    fill(client, kind, 0, first)
    known = [random.Random(0).randrange(first - stored // 4, first) for _ in range(checked)]
    alone_new, alone_seen = (alone(client, kind, some) for some in (range(first, first + checked), known))
    new, seen = (in_exchange(client, kind, some) for some in (range(first + checked, stored), known))
    unfiltered = in_exchange(client, kind, [None] * checked)
    client.delete(KEYS.ready(), KEYS.owners(), KEYS.numbers(), KEYS.counters())
    entries = snapshot(client, "s").fingerprints
    memory = used_memory(client) - empty
    promised = getattr(kind, "false_positives", 0)
    probes = min(stored, 1_000_000) if promised else 0
    wrong = fill(client, kind, stored, probes)
    # The plain set's one SADD is no script of its own.
    parts = (alone_new if isinstance(kind.options(), dict) else new - unfiltered, alone_seen)
    return {
        "entries": entries,
        "B per entry": memory / entries,
        "us, new": new,
        "us, seen": seen,
        "us, new without filter": unfiltered,
        "checks/s": 2e6 / (new + seen),
        "filter's us, new": parts[0],
        "filter's us, seen": parts[1],
        "filter's checks/s": 2e6 / sum(parts),
        "promised": promised,
        "false positives": wrong / probes if probes else 0,
        "estimate": snapshot(client, "s").false_positive_rate,
        "seconds": time.monotonic() - begun,
    }


def used_memory(client: redis.Redis) -> int:
    """Bytes that the server has allocated; what is freed in the background is waited for."""
    while client.info("memory").get("lazyfree_pending_objects"):
        time.sleep(0.01)
    return int(client.info("memory")["used_memory"])


def fill(client: redis.Redis, kind: Filter, first: int, count: int) -> int:
    """Store `count` fingerprints; returns how many of them counted as seen."""
    wrong = 0
    for begin in range(first, first + count, BATCH):
        wrong += sum(ask(client, kind, range(begin, min(begin + BATCH, first + count))))
    return wrong


def ask(client: redis.Redis, kind: Filter, numbers: Iterable[int]) -> list[bool]:
    """Return for each number if it was seen before."""
    entries = [kind.entry(fingerprint(number)) for number in numbers]
    if isinstance(kind.options(), dict):
        return filter_access.seen(client, KEY, kind, entries)
    return [client.sadd(KEY, *entries) < len(entries)]


def fingerprint(number: int) -> bytes:
    """As long as Scrapy's are."""
    return sha1(b"%d" % number, usedforsecurity=False).digest()


def alone(client: redis.Redis, kind: Filter, numbers: Sequence[int]) -> float:
    """CPU of the server for each check by a filter that is used alone, in microseconds."""
    used = []
    for begin in range(0, len(numbers), BATCH):
        before = cpu_s(client)
        ask(client, kind, numbers[begin : begin + BATCH])
        used.append((cpu_s(client) - before) / BATCH)
    return statistics.median(used) * 1e6


def in_exchange(client: redis.Redis, kind: Filter, numbers: Sequence[int | None]) -> float:
    """CPU of the server for each request in the exchange, in microseconds; None: a request that passes no filter."""
    owner = Owner(client, f"bench-{time.monotonic_ns()}", filter=kind, batch=BATCH)
    owner.advance()
    used = []
    for begin in range(0, len(numbers), BATCH):
        for number in numbers[begin : begin + BATCH]:
            mark = NO_FILTER if number is None else kind.entry(fingerprint(number))
            owner.frontier.add_request(NewRequest(mark, "0", b"a payload of forty characters, no more .."))
        before = cpu_s(client)
        owner.advance(0.5)
        used.append((cpu_s(client) - before) / BATCH)
        client.delete(KEYS.ready())
    owner.close()
    return statistics.median(used) * 1e6


def cpu_s(client: redis.Redis) -> float:
    """CPU time of the server's main thread."""
    info = client.info("cpu")
    return float(info["used_cpu_user_main_thread"] + info["used_cpu_sys_main_thread"])


if __name__ == "__main__":
    main()
