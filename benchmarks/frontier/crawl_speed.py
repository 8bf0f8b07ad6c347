"""Pages per second of one crawler against vanilla Scrapy and scrapy-redis, in interleaved rounds.

    python -m benchmarks.frontier.crawl_speed [--rounds 9] [--delays 0 1 5] [--without-scrapy-redis]

Each round runs every variant once, in random order, on the same forum; a variant's figure is the median over the rounds of its
ratio to vanilla in the same round. Vanilla keeps its requests and stats in memory and stores no items; Trawl shares requests,
stats and items through Redis, scrapy-redis requests and items, with `+stats` its stats too; a proxy adds the given round-trip
time. What is slow (scrapy-redis at a distance) gets a smaller forum and fewer rounds; its ratio is of pages per second.
"""

from __future__ import annotations

import json

from benchmarks.peers.job import Job
from benchmarks.support.peer import run_with_redis, scrapy_redis_peers
from benchmarks.support.report import Report, options
from benchmarks.support.rounds import Figures, Rounds, pages_per_cpu_s, pages_per_s
from demo.forum.process import ForumProcess
from tests.support.redis_server import RedisServer

FORUMS = 4
TARGETS = {0.0: 0.92, 1.0: 0.90, 5.0: 0.88}
PER_PAGE = ("reads_per_page", "sent_per_page", "commands_per_page", "redis_cpu_us_per_page")


def main() -> None:
    """Run the rounds and print the report."""
    parser = options(__doc__, rounds=9)
    parser.add_argument("--threads", type=int, default=565, help="threads in each of the four forums (default: %(default)s)")
    parser.add_argument(
        "--slow-threads", type=int, default=40, help="the same for scrapy-redis at a distance (default: %(default)s)"
    )
    parser.add_argument("--slow-rounds", type=int, default=2, help="its rounds (default: %(default)s)")
    parser.add_argument("--delays", type=float, nargs="*", default=[0, 1, 5], help="added round-trip times in ms")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=JSON", help="a setting for every variant")
    parser.add_argument("--without-scrapy-redis", action="store_true")
    chosen = parser.parse_args()
    common = {name: json.loads(value) for name, _, value in (entry.partition("=") for entry in chosen.set)}
    report = Report(title="One crawler", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    report.caveats += [
        "All on one machine: crawler, site, Redis and proxy share its cores.",
        "Each peer has CONCURRENT_ITEMS 8 and no cookies; with Scrapy's 100 all of them are half as fast.",
        "Reads of Redis's sockets stand for round trips: what is sent together is one, a message over 16 KiB counts more often.",
        "Commands per page are all that ran, for Trawl those inside its script too; sent are those that came over the wire.",
    ]
    peers = ("trawl", *scrapy_redis_peers(report, left_out=chosen.without_scrapy_redis))
    variants = ["vanilla", *(f"{peer} {delay:g} ms" for peer in peers for delay in chosen.delays)]
    slow = {variant for variant in variants if variant.startswith("scrapy-redis") and not variant.endswith(" 0 ms")}
    with (
        ForumProcess(seed=5, forums=FORUMS, threads=chosen.threads, comments=8) as forum,
        ForumProcess(seed=5, forums=FORUMS, threads=chosen.slow_threads, comments=8) as small_forum,
        RedisServer() as server,
    ):
        report.served_by(server.client())

        def measure(variant: str) -> Figures:
            peer, _, rest = variant.partition(" ")
            site = (small_forum if variant in slow else forum).url
            seeds = [f"{site}/list/f{number}/1" for number in range(1, FORUMS + 1)]
            job = Job(peer=peer, spider="forum", site=site, settings=common)
            return run_with_redis(job, server, delay_ms=float(rest.split()[0]) if rest else 0.0, seeds=seeds)

        rounds = Rounds.play(chosen.rounds, variants, measure, slow=dict.fromkeys(slow, chosen.slow_rounds))
    report.figures["rounds"] = rounds.played
    head = ["variant", "pages", "pages/s", "÷ vanilla", "from-to", "CPU: ÷ vanilla", *(n.replace("_", " ") for n in PER_PAGE)]
    report.table(head, [row(rounds, variant) for variant in variants])
    for delay, aim in TARGETS.items():
        if delay in chosen.delays:
            ratio = rounds.ratio(f"trawl {delay:g} ms", "vanilla")
            report.target(f"pages/s ÷ vanilla at {delay:g} ms ≥ {aim}: {ratio:.2f}", ratio >= aim)
    report.finish(chosen)


def row(rounds: Rounds, variant: str) -> list[object]:
    """One line of the table."""
    ratios = rounds.ratios(variant, "vanilla")
    shared = variant != "vanilla"
    return [
        variant,
        int(rounds.median(variant, lambda figures: figures["pages"])),
        rounds.median(variant, pages_per_s),
        rounds.ratio(variant, "vanilla"),
        f"{ratios[0]:.2g}-{ratios[-1]:.2g}",
        rounds.ratio(variant, "vanilla", pages_per_cpu_s),
        *(rounds.median(variant, lambda figures, name=name: figures[name]) if shared else "" for name in PER_PAGE),  # type: ignore[misc]
    ]


if __name__ == "__main__":
    main()
