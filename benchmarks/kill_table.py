"""What each way to die costs: pages and items missing, pages fetched twice, seconds to recover.

    python -m benchmarks.kill_table [--repetitions 5] [--pages 3000] [--only NAME ...]

A crawl of a tree of pages (each reached by exactly one link, so a lost request loses its subtree and shows) with real
`scrapy crawl` processes, a real Redis with AOF and a site that counts. Missing must be 0 in every row. "Seconds" is from the
fault's end, or the start of the next process, to the first page fetched after it.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.support.crawl import Crawl, crawl
from tests.support.processes import wait_until
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer

TIMEOUT_S = 240


@dataclass(frozen=True, kw_only=True)
class Row:
    """One run of one case."""

    case: str
    pages_missing: int
    items_missing: int
    fetched_twice: int
    recovered_s: float


@dataclass(kw_only=True)
class Scene:
    """What a case may play with."""

    run: Crawl
    server: RedisServer
    proxy: Proxy
    pages: int

    def reach(self, share: float) -> None:
        """Wait until this share of the pages was fetched."""
        wait_until(
            lambda: len(self.run.hits()) >= share * self.pages, lambda: f"the crawl goes on\n{self.run.log()[-3000:]}", TIMEOUT_S
        )

    def recovered(self) -> float:
        """Seconds from now until another page is fetched."""
        before, begun = sum(self.run.hits().values()), time.monotonic()
        wait_until(
            lambda: sum(self.run.hits().values()) > before, lambda: f"the crawl recovers\n{self.run.log()[-3000:]}", TIMEOUT_S
        )
        return time.monotonic() - begun


def killed(times: int) -> Callable[[Scene], float]:
    """SIGKILL, start anew, `times` times."""

    def case(scene: Scene) -> float:
        recovered = []
        for death in range(1, times + 1):
            victim = scene.run.processes[-1]
            scene.reach(0.8 * death / (times + 1))
            victim.kill()
            victim.wait()
            scene.run.start()
            recovered.append(scene.recovered())
        return statistics.median(recovered)

    return case


def terminated(scene: Scene) -> float:
    """SIGTERM, start anew."""
    scene.reach(0.4)
    scene.run.processes[-1].terminate()
    scene.run.processes[-1].wait()
    scene.run.start()
    return scene.recovered()


def one_of_two(scene: Scene) -> float:
    """Two processes, one is killed and stays away."""
    scene.run.start()
    scene.reach(0.4)
    scene.run.processes[0].kill()
    return scene.recovered()


def stopped(scene: Scene) -> float:
    """SIGSTOP for 30 s while another process goes on, then SIGCONT."""
    scene.run.start()
    scene.reach(0.3)
    scene.run.processes[0].send_signal(signal.SIGSTOP)
    recovered = scene.recovered()
    time.sleep(30)  # the case itself, not a wait for something
    scene.run.processes[0].send_signal(signal.SIGCONT)
    return recovered


def redis_restarted(scene: Scene) -> float:
    """Redis is killed and comes back with its AOF."""
    scene.reach(0.4)
    scene.server.kill()
    scene.server.start()
    return scene.recovered()


def cut_every_second(scene: Scene) -> float:
    """Every connection to Redis breaks, each second."""
    scene.reach(0.1)
    while scene.run.processes[-1].poll() is None and len(scene.run.hits()) < 0.9 * scene.pages:
        scene.proxy.cut()
        time.sleep(1)  # the case itself
    return 0.0


def replies_dropped(scene: Scene) -> float:
    """Requests arrive, replies are lost, five times for half a second."""
    for share in (0.1, 0.25, 0.4, 0.55, 0.7):
        scene.reach(share)
        scene.proxy.swallow = True
        time.sleep(0.5)  # the case itself
        scene.proxy.swallow = False
    return scene.recovered()


CASES: dict[str, Callable[[Scene], float]] = {
    "SIGKILL x 1": killed(1),
    "SIGKILL x 5": killed(5),
    "SIGKILL x 20": killed(20),
    "SIGTERM": terminated,
    "two processes, one killed": one_of_two,
    "SIGSTOP 30 s, SIGCONT": stopped,
    "Redis killed, AOF": redis_restarted,
    "connection cut every second": cut_every_second,
    "replies dropped": replies_dropped,
}


def play(name: str, pages: int) -> Row:
    """One run of the case `name`."""
    with (
        tempfile.TemporaryDirectory() as folder,
        RedisServer(aof=True) as server,
        Proxy(server.port) as proxy,
        crawl(server.url.replace(f":{server.port}/", f":{proxy.port}/"), Path(folder), pages=pages, latency_s=0.01) as run,
    ):
        run.seed()
        run.start()
        recovered_s = CASES[name](Scene(run=run, server=server, proxy=proxy, pages=pages))
        run.finish(TIMEOUT_S)
        missing_pages, missing_items = run.missing()
        return Row(
            case=name,
            pages_missing=len(missing_pages),
            items_missing=len(missing_items),
            fetched_twice=sum(count - 1 for count in run.hits().values()),
            recovered_s=round(recovered_s, 2),
        )


def main() -> int:
    """Play the cases, print the table; exit code 1 if anything is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("--only", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    chosen = parser.parse_args()
    rows: list[Row] = []
    for name in chosen.only:
        for _ in range(chosen.repetitions):
            rows.append(play(name, chosen.pages))
            print(rows[-1], file=sys.stderr, flush=True)
    print("| case | runs | pages missing | items missing | fetched twice | recovered, s (median) |\n|---|---|---|---|---|---|")
    for name in chosen.only:
        mine = [row for row in rows if row.case == name]
        twice = [row.fetched_twice for row in mine]
        print(
            f"| {name} | {len(mine)} | {sum(row.pages_missing for row in mine)} | {sum(row.items_missing for row in mine)} "
            f"| {min(twice)}-{max(twice)} | {statistics.median(row.recovered_s for row in mine):.1f} |"
        )
    if chosen.out:
        chosen.out.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return int(any(row.pages_missing or row.items_missing for row in rows))


if __name__ == "__main__":
    sys.exit(main())
