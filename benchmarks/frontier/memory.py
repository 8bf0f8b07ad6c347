"""Bytes of Redis for each queued request and each fingerprint.

    python -m benchmarks.frontier.memory [--requests 100000] [--without-scrapy-redis]

A crawler of each peer finds that many pages on its first page and closes without fetching any, so everything went the way it
goes in a crawl: scheduler, dupefilter, queue. Then the server's used_memory is read before and after the fingerprints' keys and
the queue's keys are deleted. A request has a URL of about 60 characters, a callback, three small entries of meta and a priority.
"""

from __future__ import annotations

import time
from typing import Any

import redis

from benchmarks.peers.job import Job
from benchmarks.support.peer import run_with_redis, scrapy_redis_peers
from benchmarks.support.report import BenchmarkFailed, Report, options
from benchmarks.support.site import site
from redis_components.keys import CrawlKeys
from tests.support.redis_server import RedisServer

KEYS = CrawlKeys.for_spider("bench")
TARGETS = {"queued request": 417, "fingerprint": 88}


def main() -> None:
    """Fill, read, and print the report."""
    parser = options(__doc__)
    parser.add_argument("--requests", type=int, default=100_000, help="requests in the queue (default: %(default)s)")
    parser.add_argument("--without-scrapy-redis", action="store_true")
    chosen = parser.parse_args()
    report = Report(title="Memory of Redis", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    report.caveats += [
        "used_memory holds what the allocator rounds up, the tables' spare room and some KiB of connections: use many.",
        "The targets are what scrapy-redis 0.9.1 took on Redis 7.0.15; newer servers keep sets in less.",
    ]
    peers = ("trawl", *scrapy_redis_peers(report, left_out=chosen.without_scrapy_redis)[:1])
    measured: dict[str, dict[str, Any]] = {}
    with site() as url, RedisServer() as server:
        client = server.client()
        report.served_by(client)
        for peer in peers:
            measured[peer] = fill(peer, server, client, url, chosen.requests)
    report.figures["measured"] = measured
    rows = [
        [peer, one["requests"], one["fingerprints"], one["bytes_per_request"], one["bytes_per_fingerprint"], one["seconds"]]
        for peer, one in measured.items()
    ]
    report.table(["peer", "queued", "fingerprints", "B per queued request", "B per fingerprint", "filled in, s"], rows)
    trawl = measured["trawl"]
    for what, got in (("queued request", trawl["bytes_per_request"]), ("fingerprint", trawl["bytes_per_fingerprint"])):
        report.target(f"bytes per {what} below {TARGETS[what]}: {got:.0f}", got < TARGETS[what])
    report.finish(chosen)


def fill(peer: str, server: RedisServer, client: redis.Redis, url: str, requests: int) -> dict[str, Any]:
    """Fill the queue through a crawler; returns the counts and the bytes of each."""
    begun = time.monotonic()
    job = Job(peer=peer, spider="fill", site=url, options={"requests": requests})
    run_with_redis(job, server, seeds=[f"{url}/0/first"])
    seconds = time.monotonic() - begun
    client.config_set("lazyfree-lazy-user-del", "no")  # DEL returns when the memory is free
    queued = int(client.zcard(KEYS.ready()))
    fingerprints = entries(client, KEYS.dupefilter)
    if (queued, fingerprints) != (requests, requests):
        raise BenchmarkFailed(f"{peer}: {queued} requests and {fingerprints} fingerprints instead of {requests}")
    bytes_of_fingerprints = freed_by_deleting(client, KEYS.dupefilter)
    bytes_of_requests = freed_by_deleting(client, KEYS.requests)
    return {
        "requests": queued,
        "fingerprints": fingerprints,
        "bytes_per_request": bytes_of_requests / queued,
        "bytes_per_fingerprint": bytes_of_fingerprints / fingerprints,
        "seconds": seconds,
    }


def entries(client: redis.Redis, key: str) -> int:
    """Count the entries in `key` and in the keys with this prefix."""
    size: dict[Any, Any] = {b"set": client.scard, b"hash": client.hlen, b"zset": client.zcard}
    found = 0
    for one in client.scan_iter(f"{key}*", count=1000):
        found += size[client.type(one)](one)
    return found


def freed_by_deleting(client: redis.Redis, key: str) -> int:
    """Return the bytes of `key` and of the keys with this prefix."""
    keys = list(client.scan_iter(f"{key}*", count=1000))
    before = client.info("memory")["used_memory"]
    for one in keys:
        client.delete(one)
    return int(before - client.info("memory")["used_memory"])


if __name__ == "__main__":
    main()
