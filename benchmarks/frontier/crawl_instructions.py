"""Instructions of the processor for each page of one crawler: this version, another one, and Scrapy alone.

    git worktree add ../old 49295b45 && make -C ../old .venv/.tools
    python -m benchmarks.frontier.crawl_instructions --old ../old [--rounds 3] [--threads 20 200]

Each variant crawls the same forum in two sizes under valgrind, which counts what its process executes, and the difference of the
two crawls is that of their pages: starting is left out. The count does not depend on the load of the machine, while CPU time
differs by a tenth from crawl to crawl; two counts of the same crawl differ by half a hundredth, and of several the median is
taken. What costs memory, and not work, is not seen. Two variants run at a time. What is done by the clock (heartbeats, looks at
pages) counts about fifteen times.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.peers.job import Job
from benchmarks.support.peer import COUNTER, ROOT, run_with_redis
from benchmarks.support.report import Report, options
from benchmarks.support.rounds import Figures
from demo.forum.process import ForumProcess
from tests.support.redis_server import RedisServer

FORUMS = 4
MOST = 1.03


def main() -> None:
    """Run the crawls and print the report."""
    parser = options(__doc__, rounds=3)
    parser.add_argument("--old", type=Path, metavar="FOLDER", help="another checkout, with its environment")
    parser.add_argument("--threads", type=int, nargs=2, default=[20, 200], help="of each of the four forums, in both crawls")
    chosen = parser.parse_args()
    if not Path(COUNTER[0]).exists():
        sys.exit("valgrind counts the instructions; install it, on Debian and Ubuntu: apt-get install valgrind")
    report = Report(title="Instructions of one crawler", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    trees = {"vanilla": ROOT, "trawl": ROOT, **({"trawl before": chosen.old.resolve()} if chosen.old else {})}
    crawls = [(variant, threads) for threads in reversed(chosen.threads) for _ in range(chosen.rounds) for variant in trees]
    for variant, tree in trees.items():
        measure(variant, 1, tree, counted=False)  # compiles the modules
    results: dict[tuple[str, int], list[Figures]] = {}
    with ThreadPoolExecutor(2) as pool:
        for crawl, figures in zip(crawls, pool.map(lambda crawl: measure(*crawl, trees[crawl[0]]), crawls), strict=True):
            results.setdefault(crawl, []).append(figures)
    few, many = sorted(chosen.threads)
    per_page = {variant: difference(results[variant, few], results[variant, many]) for variant in trees}
    report.figures["crawls"] = [
        {"variant": variant, "threads": threads, **figures} for (variant, threads), found in results.items() for figures in found
    ]
    report.table(
        ["variant", "pages", "million instructions a page", "÷ vanilla", "÷ trawl before"],
        [
            [
                variant,
                int(results[variant, many][0]["pages"]),
                per_page[variant] / 1e6,
                per_page[variant] / per_page["vanilla"],
                per_page[variant] / per_page["trawl before"] if chosen.old else "",
            ]
            for variant in trees
        ],
    )
    if chosen.old:
        ratio = per_page["trawl"] / per_page["trawl before"]
        report.target(f"instructions a page ÷ trawl before ≤ {MOST}: {ratio:.3f}", ratio <= MOST)
    report.finish(chosen)


def measure(variant: str, threads: int, tree: Path, *, counted: bool = True) -> Figures:
    """Run one crawl, on a forum and a Redis of its own."""
    with ForumProcess(seed=5, forums=FORUMS, threads=threads, comments=8) as forum, RedisServer() as server:
        seeds = [f"{forum.url}/list/f{number}/1" for number in range(1, FORUMS + 1)]
        job = Job(peer=variant.partition(" ")[0], spider="forum", site=forum.url)
        return run_with_redis(job, server, seeds=seeds, tree=tree, counted=counted)


def difference(few: Sequence[Figures], many: Sequence[Figures]) -> float:
    """Return the instructions for each page that the larger crawl has more."""
    fewer, more = (statistics.median(one["instructions"] for one in found) for found in (few, many))
    return float((more - fewer) / (many[0]["pages"] - few[0]["pages"]))


if __name__ == "__main__":
    main()
