"""Pages per second of one crawler against vanilla Scrapy, in interleaved rounds.

    python -m benchmarks.crawl_speed [--rounds 5] [--delays 0 1 5]

Each round runs every variant once, in random order, on the same forum; a variant's figure is the median over the rounds of its
ratio to vanilla in the same round. Vanilla keeps its requests and stats in memory and stores no items; the others share
requests, stats and items through Redis, behind a proxy that adds the given round-trip time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import redis

from demo.forum.process import ForumProcess
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer

ROOT = Path(__file__).parents[1]


def run(peer: str, forum: str, redis_url: str, settings: dict[str, Any], python: str) -> dict[str, float]:
    """One crawl in a fresh process."""
    environment = {
        **os.environ,
        "BENCH_PEER": peer,
        "BENCH_FORUM": forum,
        "BENCH_REDIS": redis_url,
        "BENCH_SETTINGS": json.dumps(settings),
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [python, "-m", "benchmarks.peers.crawl"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600
    )
    if done.returncode or not done.stdout.strip():
        sys.exit(f"{peer}: {done.stderr[-2000:]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Run the rounds, print a table, and write it as JSON where `--out` says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=400, help="threads in each of the four forums")
    parser.add_argument("--delays", type=float, nargs="*", default=[0, 1, 5], help="added round-trip times in ms")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=JSON", help="a setting for every variant")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    common = {name: json.loads(value) for name, _, value in (entry.partition("=") for entry in chosen.set)}
    variants = ["vanilla", *(f"trawl {delay:g} ms" for delay in chosen.delays)]
    rounds: list[dict[str, dict[str, float]]] = []
    with ForumProcess(seed=5, forums=4, threads=chosen.threads, comments=8) as forum, RedisServer() as server:
        for number in range(chosen.rounds):
            figures = {}
            for variant in random.sample(variants, len(variants)):
                figures[variant] = measure(variant, forum.url, server, common)
                print(f"round {number + 1} {variant}: {figures[variant]}", file=sys.stderr, flush=True)
            rounds.append(figures)
    report = {variant: summary(variant, rounds) for variant in variants}
    for variant, figure in report.items():
        print(f"{variant:14}" + "".join(f"  {name} {value}" for name, value in figure.items()))
    if chosen.out:
        chosen.out.write_text(json.dumps({"rounds": rounds, "summary": report}, indent=1) + "\n")


def measure(variant: str, forum: str, server: RedisServer, common: dict[str, Any]) -> dict[str, float]:
    """One run of one variant on an empty Redis."""
    peer, _, rest = variant.partition(" ")
    if peer == "vanilla":
        return run(peer, forum, "", common, sys.executable)
    with server.client() as client, Proxy(server.port, round_trip_s=float(rest.split()[0]) / 1000) as proxy:
        client.flushall()
        client.rpush("bench:start_urls", *(f"{forum}/list/f{number}/1" for number in range(1, 5)))
        before = counters(client)
        figures = run(peer, forum, server.url.replace(f":{server.port}/", f":{proxy.port}/"), common, sys.executable)
        after = counters(client)
    pages = figures["pages"]
    return {
        **figures,
        "calls_per_page": round((after["calls"] - before["calls"]) / pages, 3),
        "redis_us_per_page": round((after["usec"] - before["usec"]) / pages, 1),
    }


def counters(client: redis.Redis) -> dict[str, int]:
    """Calls of scripts and commands from outside, and their time in Redis."""
    stats: dict[str, dict[str, int]] = client.info("commandstats")  # type: ignore[assignment]
    outer = [figures for name, figures in stats.items() if name in ("cmdstat_evalsha", "cmdstat_eval")]
    return {"calls": sum(one["calls"] for one in outer), "usec": sum(one["usec"] for one in outer)}


def summary(variant: str, rounds: list[dict[str, dict[str, float]]]) -> dict[str, float]:
    """Medians over the rounds."""

    def median(pick: Any) -> float:
        return round(statistics.median(pick(one) for one in rounds), 3)

    figure = {
        "pages": median(lambda r: r[variant]["pages"]),
        "pages/s": median(lambda r: r[variant]["pages"] / r[variant]["wall_s"]),
        "ratio": median(lambda r: r["vanilla"]["wall_s"] / r[variant]["wall_s"] * r[variant]["pages"] / r["vanilla"]["pages"]),
        "cpu_ratio": median(lambda r: r["vanilla"]["cpu_s"] / r[variant]["cpu_s"] * r[variant]["pages"] / r["vanilla"]["pages"]),
    }
    for name in ("calls_per_page", "redis_us_per_page"):
        if name in rounds[0][variant]:
            figure[name] = median(lambda r, name=name: r[variant][name])
    return figure


if __name__ == "__main__":
    main()
