"""Trawl beside its peers: speed, deaths, a second crawler, memory, start, rest, and what each needs to go on.

    python -m benchmarks.frontier.peers_table [--rounds 3] [--only NAME ...]

Each peer crawls the same tree of pages, each reached by exactly one link, 32 at a time: page n leads to 2n and 2n+1. A page
counts when a callback has handled it, by a line in a file. Speed is pages handled per second, divided by vanilla's in the same
round. A death is SIGKILL when half of the pages were asked for; then the same command is given again. A second crawler joins at a
quarter, by the same command. `Start` is from the command to the first page asked. At rest a crawler waits for work for ten
seconds.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.frontier.memory import fill
from benchmarks.peers.environment import interpreter
from benchmarks.peers.job import Job
from benchmarks.support.foreign_peers import Crawled, ForeignProcess, ScrapydJob
from benchmarks.support.peer import PeerProcess, distance, run, seed
from benchmarks.support.report import BenchmarkFailed, Report, options
from benchmarks.support.rounds import Figures, Rounds
from benchmarks.support.site import site as cheap_site
from tests.support.redis_server import RedisServer

OF_REDIS = ("trawl", "scrapy-redis", "feapder")
PEERS = ("vanilla", "scrapyd", "crawlee", "crawlee, shared", "feapder", "scrapy-redis", "trawl")
DELAYS = (0.0, 1.0, 5.0)
SLOW = {"scrapy-redis 1 ms": 300, "scrapy-redis 5 ms": 200}
REST_S = 10.0
RESUME = {
    "vanilla": "`JOBDIR`, one process, an orderly end",
    "scrapyd": "`JOBDIR` and a new job by hand; jobs of a dead daemon are forgotten",
    "crawlee": "`purge_on_start=False`, the same folder, one process",
    "crawlee, shared": "a database; requests in flight wait 300 s",
    "feapder": "Redis; requests in flight wait 600 s, here set to 10 s",
    "scrapy-redis": "`SCHEDULER_PERSIST`; requests in flight are lost",
    "trawl": "nothing: a lease ends 8 s after a death, or at once under a supervisor",
}


def main() -> None:
    """Measure each part with each peer and print the report."""
    parser = options(__doc__, rounds=3)
    parser.add_argument("--pages", type=int, default=1500, help="pages of a crawl for speed (default: %(default)s)")
    parser.add_argument("--only", nargs="*", choices=PEERS, default=list(PEERS), metavar="NAME", help=", ".join(PEERS))
    chosen = parser.parse_args()
    report = Report(title="Trawl and its peers", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    peers = [peer for peer in chosen.only if is_installed(peer)]
    with RedisServer() as server:
        report.served_by(server.client())
    variants = [v for peer in peers for v in ([f"{peer} {d:g} ms" for d in DELAYS] if peer in OF_REDIS else [peer])]
    rounds = Rounds.play(chosen.rounds, variants, lambda variant: speed(variant, chosen.pages))
    report.figures["rounds"] = rounds.played
    report.table(["peer", "at 0 ms ÷ vanilla", "at 1 ms", "at 5 ms", "start, s"], [speeds(rounds, peer) for peer in peers])
    rows = [[peer, *cells(death, peer, 3), *cells(second, peer, 1)] for peer in peers]
    head = ["peer", "SIGKILL: never handled", "handled twice", "after, s", "a second crawler: handled twice"]
    report.table(head, rows)
    report.table(
        ["peer", "bytes of a queued request", "CPU at rest, ms/s", "Redis calls at rest, /s", "to go on it needs"],
        [[peer, *cells(memory, peer, 1), *cells(rest, peer, 2), RESUME[peer]] for peer in peers],
    )
    report.caveats += [
        "1,000 pages of 10 ms in deaths and with a second crawler; for a death vanilla and scrapyd have a `JOBDIR`.",
        "Crawlee's storage in Redis needs Redis 8 with its JSON commands, which this machine has not: SQLite is its shared one.",
        "feapder has no filter of requests by default: a second one that joins begins the crawl again.",
        "Bytes are of Redis, of files (crawlee), or of the process (vanilla, scrapyd, which keep requests there).",
    ]
    report.finish(chosen)


def cells(measure: Callable[[str], Sequence[object]], peer: str, number: int) -> list[object]:
    """Return the cells that `measure` finds for a peer; where it fails, the reason in each, and the others are measured."""
    try:
        found = list(measure(peer))
    except (BenchmarkFailed, OSError, subprocess.TimeoutExpired, pytest.fail.Exception, AssertionError) as error:
        found = [f"failed: {' '.join(str(error).split())[:80]}"] * number
    print(f"{measure.__name__} {peer}: {found}", file=sys.stderr, flush=True)
    return found


def is_installed(peer: str) -> bool:
    """Return True if the peer's environment is there, or could be made."""
    framework = peer.partition(",")[0]
    if framework in ("vanilla", "trawl"):
        return True
    return interpreter("" if framework == "scrapy-redis" else framework) is not None


@contextmanager
def crawled(peer: str, pages: int, *, latency_s: float = 0.0, delay_ms: float = 0.0) -> Iterator[Crawled]:
    """Yield a site, a Redis where the peer has one, and a folder."""
    with tempfile.TemporaryDirectory(prefix="trawl-peers-") as name, ExitStack() as stack:
        url = ""
        if peer in OF_REDIS:
            server = stack.enter_context(RedisServer())
            url = stack.enter_context(distance(server, delay_ms))
        yield stack.enter_context(Crawled.on(Path(name), peer, pages, latency_s, url))


def start(one: Crawled, *, mode: str = "crawl", jobdir: bool = False) -> Any:
    """Return the peer's process, started; a context manager that kills it at its end."""
    if one.peer == "scrapyd":
        return ScrapydJob(one, mode, jobdir=jobdir)
    if one.peer not in ("vanilla", "trawl", "scrapy-redis"):
        return ForeignProcess(one, mode)
    settings: dict[str, Any] = {"JOBDIR": str(one.folder / "jobdir")} if jobdir else {}
    if mode == "rest":
        settings = {"MAX_IDLE_TIME_BEFORE_CLOSE": 0}
    elif one.redis_url and not one.handled.exists():
        with one.client() as client:
            seed(client, [f"{one.site}/1"])
    urls = () if one.redis_url else (f"{one.site}/1",)
    options = {"pages": one.pages, "handled": str(one.handled)}
    return PeerProcess(
        Job(peer=one.peer, spider="pages", site=one.site, redis_url=one.redis_url, settings=settings, urls=urls, options=options)
    )


def speed(variant: str, pages: int) -> Figures:
    """Crawl once to the end."""
    peer, _, delay = variant.removesuffix(" ms").rpartition(" ") if variant.endswith(" ms") else (variant, "", "0")
    with crawled(peer, SLOW.get(variant, pages), delay_ms=float(delay)) as one:
        begun = time.time()
        with start(one) as process:
            process.process.wait(timeout=300)
        first, last = one.times()
        return {"pages": len(one.lines()), "wall_s": last - first, "start_s": first - begun}


def speeds(rounds: Rounds, peer: str) -> list[object]:
    """Return the row of a peer: pages per second at no distance, and the ratios to vanilla's of the same round."""
    variants = [f"{peer} {delay:g} ms" for delay in DELAYS] if peer in OF_REDIS else [peer]

    def ratio(variant: str) -> str:
        base = "vanilla" if any("vanilla" in one for one in rounds.played) else variant
        per_s = rounds.median(variant, lambda figures: figures["pages"] / max(figures["wall_s"], 1e-9))
        return f"{rounds.ratio(variant, base):.2g} ({per_s:.0f} pages/s)"

    found: list[object] = [ratio(variant) for variant in variants]
    found += ["no Redis"] * (len(DELAYS) - len(found))
    return [peer, *found, rounds.median(variants[0], lambda figures: figures["start_s"])]


def death(peer: str) -> list[object]:
    """Kill the crawler at half, start it again; return pages never handled, handled twice, and how long it went on."""
    with crawled(peer, 1000, latency_s=0.01) as one:
        with start(one, jobdir=True) as process:
            one.reach(500, process)
            process.process.kill()
            process.process.wait()
        begun = time.time()
        with start(one, jobdir=True) as process:
            process.process.wait(timeout=450)
        missing, twice = one.outcome()
        return [missing, twice, round(max(0.0, one.times()[1] - begun), 1)]


def second(peer: str) -> list[object]:
    """Let a second crawler join at a quarter; return the pages that were handled twice."""
    with crawled(peer, 1000, latency_s=0.01) as one, start(one) as first:
        one.reach(250, first)
        with start(one) as other:
            for process in (first, other):
                process.process.wait(timeout=300)
        return [f"{one.outcome()[1]} of {one.pages}"]


def memory(peer: str) -> list[object]:
    """Return the bytes that a queued request takes."""
    number = 20_000
    if peer in ("vanilla", "scrapyd"):
        with cheap_site() as url:
            jobs = [
                Job(peer="vanilla", spider="fill", site=url, urls=(f"{url}/0/1",), options={"requests": n}) for n in (100, number)
            ]
            few, many = (run(job)["most_kib"] for job in jobs)
        return [round((many - few) * 1024 / (number - 100))]
    if peer in ("trawl", "scrapy-redis"):
        with cheap_site() as url, RedisServer() as server, server.client() as client:
            return [round(fill(peer, server, client, url, number)["bytes_per_request"])]
    with crawled(peer, number if peer == "feapder" else 2000) as one:
        before = one.stored_bytes()
        with start(one, mode="fill") as process:
            process.process.wait(timeout=300)
        return [round((one.stored_bytes() - before) / one.pages)]


def rest(peer: str) -> list[object]:
    """Let a crawler wait for work; return its CPU time and Redis's calls, each by the second."""
    if peer == "vanilla":
        return ["does not wait: it ends", "no Redis"]
    with crawled(peer, 100) as one, start(one, mode="rest") as process:
        time.sleep(6)  # the case itself, as below: it has started
        cpu, calls = process_cpu_s(process.process.pid), one.calls()
        time.sleep(REST_S)
        spent = process_cpu_s(process.process.pid) - cpu
        made = (one.calls() - calls - 1) / REST_S  # one was this question
        return [round(spent * 1000 / REST_S, 1), round(max(0.0, made), 1) if one.redis_url else "no Redis"]


def process_cpu_s(pid: int) -> float:
    """Return the CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


if __name__ == "__main__":
    sys.exit(main())
