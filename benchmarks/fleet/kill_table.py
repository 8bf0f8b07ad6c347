"""Cost of each kind of death: pages and items missing, pages fetched twice, seconds to recover.

    python -m benchmarks.fleet.kill_table [--repetitions 5] [--pages 3000] [--page-ms 10] [--only NAME ...]

A crawl of a tree of pages (each reached by exactly one link, so a lost request loses its subtree and shows) with real
`scrapy crawl` processes, a real Redis with AOF and a site that counts. Asserted in every row: each page was fetched by the end
and each page's item is in Redis; the exit code is 1 where one is missing. Pages fetched twice are what a death costs. "Recovered"
is from the fault's end, or the start of the next process, to the first page fetched after it, or the crawl's end where no page
was left; for a failover, until the new primary has answered every crawler. "Forgotten" are acks that Redis had applied and, put
back to an older state, did not know any more.
"""

from __future__ import annotations

import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.support.report import BenchmarkFailed, Report, options, section, write_section
from tests.support.crawl import Crawl, crawl
from tests.support.processes import wait_until
from tests.support.proxy import Proxy
from tests.support.redis_groups import TAG, ClusterGroup, Group, SentinelGroup
from tests.support.redis_server import RedisServer

TIMEOUT_S = 240
CONSUMERS = "Consumers"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One run of one case."""

    case: str
    pages_missing: int
    items_missing: int
    fetched_twice: int
    recovered_s: float
    forgotten: int


@dataclass(kw_only=True)
class Scene:
    """The processes of a case."""

    run: Crawl
    pages: int
    forgotten: int = 0

    def reach(self, share: float) -> None:
        """Wait until this share of the pages was fetched."""
        wait_until(
            lambda: len(self.run.hits()) >= share * self.pages, lambda: f"the crawl goes on\n{self.run.log()[-3000:]}", TIMEOUT_S
        )

    def recovered(self) -> float:
        """Seconds from now until another page is fetched, or until the crawl has ended."""
        before, begun = sum(self.run.hits().values()), time.monotonic()
        wait_until(
            lambda: sum(self.run.hits().values()) > before or all(one.poll() is not None for one in self.run.processes),
            lambda: f"the crawl recovers\n{self.run.log()[-3000:]}",
            TIMEOUT_S,
        )
        return time.monotonic() - begun

    def acked(self) -> int:
        """Return the number of requests that Redis has recorded as done."""
        with self.run.client() as client:
            return int(client.hget(self.run.keys.counters(), "acked") or 0)


@dataclass(kw_only=True)
class OneServer(Scene):
    """One Redis with an append-only file, behind a proxy."""

    server: RedisServer
    proxy: Proxy


@dataclass(kw_only=True)
class Several(Scene):
    """Servers that stand in for one another."""

    group: Group


def killed(times: int) -> Callable[[Scene], float]:
    """Kill the crawler by SIGKILL and start it again, `times` times."""

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
    """End the crawler by SIGTERM and start it again."""
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


def redis_restarted(scene: OneServer) -> float:
    """Redis is killed and comes back with its AOF."""
    scene.reach(0.4)
    scene.server.kill()
    scene.server.start()
    return scene.recovered()


def last_second_lost(share: float, *, processes: int = 1) -> Callable[[OneServer], float]:
    """Redis is killed and comes back with its AOF as it was a second before, from when `share` of the pages was fetched."""

    def case(scene: OneServer) -> float:
        for _ in range(processes - 1):
            scene.run.start()
        scene.reach(share)
        scene.server.remember()
        time.sleep(1)  # the case itself
        if all(one.poll() is not None for one in scene.run.processes):
            raise BenchmarkFailed("the crawl was over before Redis was killed: use more pages, or slower ones")
        acked = scene.acked()
        scene.server.kill_and_forget()
        scene.forgotten = acked - scene.acked()
        return scene.recovered()

    return case


def cut_every_second(scene: OneServer) -> float:
    """Every connection to Redis breaks, each second."""
    scene.reach(0.1)
    recovered = []
    while scene.run.processes[-1].poll() is None and len(scene.run.hits()) < 0.9 * scene.pages:
        scene.proxy.cut()
        recovered.append(scene.recovered())
        time.sleep(1)  # the case itself
    if not recovered:
        raise BenchmarkFailed("the crawl was over before a connection was cut: use more pages, or slower ones")
    return statistics.median(recovered)


def replies_dropped(scene: OneServer) -> float:
    """Drop replies, but not requests, five times for half a second."""
    for share in (0.1, 0.25, 0.4, 0.55, 0.7):
        scene.reach(share)
        scene.proxy.swallow = True
        time.sleep(0.5)  # the case itself
        scene.proxy.swallow = False
    return scene.recovered()


def failed_over(scene: Several) -> float:
    """Kill the primary half a second after its replica was cut off from it; a second process exchanges in a thread."""
    scene.run.start(TWISTED_REACTOR="twisted.internet.epollreactor.EPollReactor")
    scene.reach(0.4)

    def half_a_second() -> None:
        known = scene.acked()
        time.sleep(0.5)  # the case itself
        scene.forgotten = scene.acked() - known

    scene.group.fail_over(half_a_second)
    begun = time.monotonic()  # what was leased is fetched meanwhile: the time until the new primary has answered both
    wait_until(lambda: scene.run.log().count("Redis answers again") == 2, lambda: scene.run.log()[-3000:], TIMEOUT_S)
    return time.monotonic() - begun


CASES: dict[str, tuple[Callable[[Any], float], str]] = {
    "SIGKILL x 1": (killed(1), "The crawler is killed, another one starts."),
    "SIGKILL x 5": (killed(5), "The same, five times in one crawl."),
    "SIGKILL x 20": (killed(20), "The same, twenty times."),
    "SIGTERM": (terminated, "The crawler is asked to end, another one starts."),
    "two processes, one killed": (one_of_two, "Two crawlers; one is killed and stays away."),
    "SIGSTOP 30 s, SIGCONT": (stopped, "Two crawlers; one stands still for 30 s, is taken for dead, and comes back."),
    "Redis killed, AOF": (redis_restarted, "Redis is killed and comes back with its AOF."),
    "Redis without its last second": (
        last_second_lost(0.4),
        "Redis is killed and comes back with its AOF as it was one second before.",
    ),
    "the same with two processes": (last_second_lost(0.4, processes=2), "The same with two crawlers."),
    "the same at the crawl's end": (
        last_second_lost(0.97),
        "The same, and in that second the crawl fetched its last pages: nothing but the crawler's journal knows them.",
    ),
    "connection cut every second": (cut_every_second, "Every connection to Redis breaks, each second."),
    "replies dropped": (replies_dropped, "Five times for half a second requests arrive and replies are lost."),
    "Sentinel failover": (
        failed_over,
        "Two crawlers, three sentinels; the primary is killed half a second after its replica was cut off, which takes over.",
    ),
    "Cluster failover": (failed_over, "The same on a Cluster of three primaries."),
}
GROUPS: dict[str, Callable[[], Group]] = {"Sentinel failover": SentinelGroup, "Cluster failover": ClusterGroup}


@contextmanager
def scene_of(name: str, pages: int, page_s: float) -> Iterator[Scene]:
    """Servers and a site for one run of the case `name`."""
    with tempfile.TemporaryDirectory() as folder:
        if name in GROUPS:
            with (
                GROUPS[name]() as group,
                crawl(group.url, Path(folder), pages=pages, latency_s=page_s, namespace=TAG) as run,
            ):
                yield Several(run=run, pages=pages, group=group)
            return
        with RedisServer(aof=True) as server, Proxy(server.port) as proxy:
            url = server.url.replace(f":{server.port}/", f":{proxy.port}/")
            with crawl(url, Path(folder), pages=pages, latency_s=page_s) as run:
                yield OneServer(run=run, pages=pages, server=server, proxy=proxy)


def play(name: str, pages: int, page_s: float) -> Row:
    """One run of the case `name`."""
    with scene_of(name, pages, page_s) as scene:
        run = scene.run
        run.seed()
        run.start()
        recovered_s = CASES[name][0](scene)
        run.finish(TIMEOUT_S)
        missing_pages, missing_items = run.missing()
        return Row(
            case=name,
            pages_missing=len(missing_pages),
            items_missing=len(missing_items),
            fetched_twice=sum(count - 1 for count in run.hits().values()),
            recovered_s=round(recovered_s, 2),
            forgotten=scene.forgotten,
        )


def main() -> int:
    """Run the cases and print the report; exit code 1 if anything is missing."""
    parser = options(__doc__)
    parser.add_argument("--repetitions", type=int, default=5, help="runs of each case (default: %(default)s)")
    parser.add_argument("--pages", type=int, default=3000, help="pages of the site (default: %(default)s)")
    parser.add_argument("--page-ms", type=float, default=10.0, help="time the site takes for a page (default: %(default)s)")
    parser.add_argument("--only", nargs="*", choices=list(CASES), default=list(CASES), metavar="NAME", help=", ".join(CASES))
    chosen = parser.parse_args()
    report = Report(title="Each way to die", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    report.caveats.append(
        f"{chosen.pages:,} pages of {chosen.page_ms:g} ms, 16 at a time. Without a supervisor, which sees a death at once, "
        "the leases of a dead crawler come back after its 8 s."
    )
    with RedisServer() as server:
        report.served_by(server.client())
    rows: list[Row] = []
    for name in chosen.only:
        for _ in range(chosen.repetitions):
            rows.append(play(name, chosen.pages, chosen.page_ms / 1000))
            print(rows[-1], file=sys.stderr, flush=True)
    report.table(
        ["case", "runs", "pages missing", "items missing", "fetched twice", "recovered, s (median)", "forgotten (acks)"],
        [line(name, [row for row in rows if row.case == name]) for name in chosen.only],
    )
    report.table(["case", "what happens"], [[name, CASES[name][1]] for name in chosen.only])
    missing = sum(row.pages_missing + row.items_missing for row in rows)
    report.target(f"nothing missing in {len(rows)} crawls: {missing} pages and items", not missing)
    report.figures["rows"] = [asdict(row) for row in rows]
    consumers = section(chosen.page, CONSUMERS) if chosen.page else ""  # written by `books`
    report.finish(chosen)
    if consumers:
        write_section(chosen.page, CONSUMERS, consumers.partition("\n\n")[2].strip())
    return int(bool(missing))


def line(name: str, rows: list[Row]) -> list[object]:
    """One line of the table."""
    twice, forgotten = [row.fetched_twice for row in rows], [row.forgotten for row in rows]
    return [
        name,
        len(rows),
        sum(row.pages_missing for row in rows),
        sum(row.items_missing for row in rows),
        f"{min(twice)}-{max(twice)}",
        round(statistics.median(row.recovered_s for row in rows), 1),
        f"{min(forgotten)}-{max(forgotten)}" if any(forgotten) else "",
    ]


if __name__ == "__main__":
    sys.exit(main())
