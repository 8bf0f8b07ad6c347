"""Instructions of the processor for each page of one crawler: this version, another one, and Scrapy alone.

    git worktree add ../old 49295b45 && make -C ../old .venv/.tools
    python -m benchmarks.frontier.crawl_instructions --old ../old [--threads 20 200]

Each variant crawls the same forum in two sizes under valgrind, which counts what its process executes, and the difference of the
two crawls is that of their pages: starting is left out. The count does not depend on the load of the machine, while CPU time
differs by a tenth from crawl to crawl: so differences of a hundredth are seen, where they are of work and not of memory. Two
variants run at a time. What is done by the clock (heartbeats, looks at pages) counts about fifteen times.
"""

from __future__ import annotations

import sys
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
    parser = options(__doc__)
    parser.add_argument("--old", type=Path, metavar="FOLDER", help="another checkout, with its environment")
    parser.add_argument("--threads", type=int, nargs=2, default=[20, 200], help="of each of the four forums, in both crawls")
    chosen = parser.parse_args()
    if not Path(COUNTER[0]).exists():
        sys.exit("valgrind counts the instructions; install it, on Debian and Ubuntu: apt-get install valgrind")
    report = Report(title="Instructions of one crawler", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    trees = {"vanilla": ROOT, "trawl": ROOT, **({"trawl before": chosen.old.resolve()} if chosen.old else {})}
    crawls = [(variant, threads) for threads in reversed(chosen.threads) for variant in trees]
    for variant, tree in trees.items():
        measure(variant, 1, tree, counted=False)  # compiles the modules
    with ThreadPoolExecutor(2) as pool:
        results = dict(zip(crawls, pool.map(lambda crawl: measure(*crawl, trees[crawl[0]]), crawls), strict=True))
    few, many = sorted(chosen.threads)
    per_page = {variant: difference(results[variant, few], results[variant, many]) for variant in trees}
    report.figures["crawls"] = [
        {"variant": variant, "threads": threads, **results[variant, threads]} for variant, threads in crawls
    ]
    report.table(
        ["variant", "pages", "million instructions a page", "÷ vanilla", "÷ trawl before"],
        [
            [
                variant,
                int(results[variant, many]["pages"]),
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


def difference(few: Figures, many: Figures) -> float:
    """Return the instructions for each page that the larger crawl has more."""
    return float((many["instructions"] - few["instructions"]) / (many["pages"] - few["pages"]))


if __name__ == "__main__":
    main()
