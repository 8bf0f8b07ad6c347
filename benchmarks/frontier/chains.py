"""Dependent chains: each page is known only when the one before it was read, the worst case for any queue that is shared.

    python -m benchmarks.frontier.chains [--rounds 5] [--chains 8 32] [--delays 0 5] [--page-ms 0]

All chains run at once. A step is one page of one chain: its time is the wall time divided by the steps of a chain. What it may
take is vanilla's step in the same round plus one round trip to Redis.
"""

from __future__ import annotations

import statistics

from benchmarks.peers.job import Job
from benchmarks.support.peer import run_with_redis, scrapy_redis_peers
from benchmarks.support.report import Report, options
from benchmarks.support.rounds import Figures, Rounds
from benchmarks.support.site import site
from tests.support.redis_server import RedisServer

TARGETS = {8: 0.7, 32: 0.85}


def main() -> None:
    """Run the rounds and print the report."""
    parser = options(__doc__, rounds=5)
    parser.add_argument("--chains", type=int, nargs="*", default=[8, 32], help="chains at once (default: %(default)s)")
    parser.add_argument("--pages", type=int, default=3200, help="pages of all chains together (default: %(default)s)")
    parser.add_argument("--page-ms", type=float, default=0.0, help="time the site takes for a page (default: %(default)s)")
    parser.add_argument("--delays", type=float, nargs="*", default=[0, 5], help="added round-trip times in ms")
    parser.add_argument("--with-scrapy-redis", action="store_true", help="measure it too, with a fifth of the pages")
    chosen = parser.parse_args()
    report = Report(title="Dependent chains", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    report.caveats += [
        f"The site takes {chosen.page_ms:g} ms for a page, so without a distance to Redis a step is the CPU time of a "
        "page in crawler and site, for each chain after the other.",
        "At most 32 requests at a time; CONCURRENT_ITEMS 8 for each peer; from the first page to the last.",
    ]
    scrapy_redis = scrapy_redis_peers(report, left_out=not chosen.with_scrapy_redis)[:1]
    variants = [
        f"{chains} chains, {variant}"
        for chains in chosen.chains
        for variant in ("vanilla", *(f"{peer} {delay:g} ms" for peer in ("trawl", *scrapy_redis) for delay in chosen.delays))
    ]
    with site() as url, RedisServer() as server:
        report.served_by(server.client())

        def measure(variant: str) -> Figures:
            chains, peer, delay_ms = parts(variant)
            steps = max(2, chosen.pages // chains // (5 if peer == "scrapy-redis" else 1))
            job = Job(peer=peer, spider="chains", site=url, options={"chains": chains, "steps": steps, "page_ms": chosen.page_ms})
            figures = run_with_redis(job, server, delay_ms=delay_ms, seeds=[f"{url}/0/start"])
            return {**figures, "step_ms": figures["wall_s"] * 1000 / steps, "expected_pages": chains * steps + 1}

        rounds = Rounds.play(chosen.rounds, variants, measure)
    report.figures["rounds"] = rounds.played
    report.table(
        ["variant", "pages", "step, ms", "pages/s ÷ vanilla", "from-to", "step ÷ (vanilla's step + round trip)"],
        [row(rounds, variant) for variant in variants],
    )
    for chains, aim in TARGETS.items():
        name = f"{chains} chains, trawl 0 ms"
        if name in variants:
            ratio = rounds.ratio(name, base_of(name), steps_per_ms)
            report.target(f"{chains} chains at 0 ms ≥ {aim} of vanilla: {ratio:.2f}", ratio >= aim)
    report.finish(chosen)


def parts(variant: str) -> tuple[int, str, float]:
    """Chains, peer and delay in ms of a variant's name."""
    chains, _, rest = variant.partition(" chains, ")
    peer, _, delay = rest.partition(" ")
    return int(chains), peer, float(delay.split()[0]) if delay else 0.0


def base_of(variant: str) -> str:
    """Return the vanilla variant with as many chains."""
    return f"{parts(variant)[0]} chains, vanilla"


def steps_per_ms(figures: Figures) -> float:
    """Return the speed of one chain."""
    return float(1 / figures["step_ms"])


def row(rounds: Rounds, variant: str) -> list[object]:
    """One line of the table."""
    delay_ms = parts(variant)[2]
    ratios = rounds.ratios(variant, base_of(variant), steps_per_ms)
    against_ideal = [one[variant]["step_ms"] / (one[base_of(variant)]["step_ms"] + delay_ms) for one in rounds.played]
    return [
        variant,
        int(rounds.median(variant, lambda figures: figures["pages"])),
        rounds.median(variant, lambda figures: figures["step_ms"]),
        rounds.ratio(variant, base_of(variant), steps_per_ms),
        f"{ratios[0]:.2f}-{ratios[-1]:.2f}",
        statistics.median(against_ideal),
    ]


if __name__ == "__main__":
    main()
