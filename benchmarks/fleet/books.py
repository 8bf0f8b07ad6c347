"""One's own project in each way to start a fleet, and what deaths cost at the receivers of its items.

    python -m benchmarks.fleet.books [--pages 900] [--only compose swarm ...] [--replicas 3] [--quiet]

A `scrapy startproject` with two services of one spider, one crawler each: `books` with a consumer into a file, `shelf` with one
into PostgreSQL by `key = "url"` (SQLite where no PostgreSQL is installed). Started are the commands of each way's file with its
variables and mounts (`tests/support/deployments.py`): Redis, workers and beat. During the crawl a crawler, Redis, the
consumer and a worker are killed by SIGKILL, one after the other, when 10, 20, 35 and 70 % of the pages were fetched.
Judged by the receivers: lines of the file, rows of the table. "Copies" are lines beyond one a page; "recovered" is from the kill
to the next line of the file. The site counts: "fetched twice" is of both services.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil
import redis
from sqlalchemy import create_engine, text

from benchmarks.fleet.kill_table import CONSUMERS
from benchmarks.support.report import Report, options, section, table, write_section
from tests.support import warm_start
from tests.support.crawl import hits_of, link_site
from tests.support.deployments import WAYS, Deployment
from tests.support.postgres_server import PostgresServer, binaries
from tests.support.processes import wait_until
from workers.state.registry import Registry

TIMEOUT_S = 60
IN_CONTAINERS = "In containers"  # of books.md, by `python -m tests.containers.books`
IN_FLIGHT = 8  # of one crawler: SETTINGS
BATCH = 500  # of a consumer
SPIDER = """
from redis_components.spiders import RedisSpider


class BooksSpider(RedisSpider):
    name = "books"

    def parse(self, response):
        yield {"url": response.url, "bytes": len(response.body)}
        yield from response.follow_all(css="a")
"""
SETTINGS = """
SCHEDULER = "redis_components.scheduler.Scheduler"
DUPEFILTER_CLASS = "redis_components.dupefilter.RFPDupeFilter"
STATS_CLASS = "redis_components.stats.RedisStatsCollector"
ITEM_PIPELINES = {"redis_components.pipelines.RedisPipeline": 300}
ROBOTSTXT_OBEY = False
ALLOW_PRIVATE_ADDRESSES = ["127.0.0.1"]
CONCURRENT_REQUESTS = 4
CONCURRENT_REQUESTS_PER_DOMAIN = 4
DOWNLOAD_DELAY = 0
"""
DECLARED = """
[services.books]
size = 1
consumer = "jsonl:books.jsonl"

[services.shelf]
spider = "books"
size = 1
consumer = "{rows}"
key = "url"
"""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One way."""

    way: str
    nodes: int
    pages: int
    lines_missing: int
    copies: int
    rows_missing: int
    rows_twice: int
    fetched_twice: int
    crawler_s: float | None = None
    redis_s: float | None = None
    consumer_s: float | None = None
    worker_s: float | None = None


@dataclass(kw_only=True)
class Case:
    """A project, its site, its receivers, and the processes of one way."""

    deployment: Deployment
    site: str
    pages: int
    rows_url: str
    recovered: dict[str, float] = field(default_factory=dict)

    @property
    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.deployment.redis_url())

    def lines(self) -> list[str]:
        found = [*self.deployment.folder.rglob("books.jsonl")]
        return [json.loads(one)["url"] for file in found for one in file.read_bytes().splitlines()]

    def rows(self) -> list[str]:
        engine = create_engine(self.rows_url)
        try:
            with engine.connect() as connection:
                return [one for (one,) in connection.execute(text("SELECT url FROM shelf"))]
        except Exception:
            return []
        finally:
            engine.dispose()

    def wait(self, done: Callable[[], bool], what: str) -> None:
        wait_until(done, lambda: f"{self.deployment.way}: {what}\n{self.deployment.said()}", TIMEOUT_S, every_s=0.2)

    def seed(self) -> None:
        self.wait(lambda: "books" in self.deployment.trawl("services", "list"), "the services are declared")
        for service in ("books", "shelf"):
            file = self.deployment.project / f"{service}.txt"
            file.write_text(f"{self.site}/1\n")
            said = self.deployment.trawl("seed-urls", service, str(file))
            assert "1" in said, said

    def kill(self, what: str, share: float) -> None:
        """Kill one kind of process when the file has this share of the items, and wait for the next line."""
        self.wait(lambda: sum(hits_of(self.site).values()) >= 2 * share * self.pages, f"{share:.0%} of the pages were fetched")
        victim, before, begun = getattr(self, what)(), len(self.lines()), time.monotonic()
        os.kill(victim, signal.SIGKILL)
        self.wait(lambda: len(self.lines()) > before or before >= self.pages, f"items come again after the death of {what}")
        self.recovered[f"{what}_s"] = round(time.monotonic() - begun, 1)

    def crawler(self) -> int:
        found: list[int] = []

        def runs() -> bool:
            crawlers = Registry(self.client).crawlers()
            found[:] = [one.pid for one in crawlers if one.spider == "books" and psutil.pid_exists(one.pid)]
            return bool(found)

        self.wait(runs, "a crawler runs")
        return found[0]

    def consumer(self) -> int:
        locks: list[Path] = []

        def runs() -> bool:
            locks[:] = [one for one in self.deployment.folder.rglob("*-consumers-0.lock") if one.read_text().strip()]
            return any(psutil.pid_exists(int(one.read_text())) for one in locks)

        self.wait(runs, "a consumer runs")
        return next(pid for pid in (int(one.read_text()) for one in locks) if psutil.pid_exists(pid))

    def worker(self) -> int:
        """The main process of the worker above a crawler."""
        above = psutil.Process(self.crawler()).parents()
        return max((one.pid for one in above if "worker" in one.cmdline()), key=lambda pid: -psutil.Process(pid).create_time())

    def redis(self) -> int:
        info: dict[str, int] = self.client.info("server")  # type: ignore[assignment]
        return info["process_id"]

    def row(self, nodes: int) -> Row:
        whole = {f"{self.site}/{number}" for number in range(1, self.pages + 1)}
        self.wait(lambda: whole <= {*self.lines()} and whole <= {*self.rows()}, "all items are at their receivers")
        self.wait(lambda: not self.client.exists("books:items", "shelf:items"), "nothing waits")
        lines, rows = self.lines(), self.rows()
        return Row(
            way=self.deployment.way,
            nodes=nodes,
            pages=self.pages,
            lines_missing=len(whole - {*lines}),
            copies=len(lines) - len({*lines}),
            rows_missing=len(whole - {*rows}),
            rows_twice=len(rows) - len({*rows}),
            fetched_twice=sum(hits_of(self.site).values()) - 2 * self.pages,
            **self.recovered,
        )


@contextmanager
def books(way: str, folder: Path, *, pages: int, replicas: int, latency_s: float = 0.5) -> Iterator[Case]:
    """Start the case in one way; everything is ended with the block."""
    project = folder / "shop"
    warm_start.run(
        [sys.executable, "-m", "scrapy.cmdline", "startproject", "shop", str(project)], check=True, capture_output=True
    )
    with (project / "shop/settings.py").open("a") as settings:
        settings.write(SETTINGS)
    (project / "shop/spiders/books.py").write_text(SPIDER)
    with ExitStack() as stack:
        found = binaries()
        server = stack.enter_context(PostgresServer(found)) if found else None
        rows_url = server.new_database() if server else f"sqlite:///{folder}/shelf-{secrets.token_hex(4)}.sqlite"
        (project / "trawl.toml").write_text(DECLARED.format(rows=rows_url))
        site = stack.enter_context(link_site(folder, pages=pages, latency_s=latency_s))
        deployment = stack.enter_context(Deployment(way, folder / "run", project, replicas=replicas))
        deployment.start()
        case = Case(deployment=deployment, site=site, pages=pages, rows_url=rows_url)
        case.seed()
        yield case


# Of the pages. The consumer's lock runs out after 30 s, and where there is one worker, it is the consumer's, too.
KILLS = {"crawler": 0.1, "redis": 0.2, "consumer": 0.35, "worker": 0.7}


def run(way: str, *, pages: int, replicas: int, kills: bool = True) -> Row:
    """Run one way; return what its receivers have."""
    with (
        tempfile.TemporaryDirectory(prefix="trawl-books-") as folder,
        books(way, Path(folder), pages=pages, replicas=replicas) as case,
    ):
        for what, share in KILLS.items() if kills else ():
            case.kill(what, share)
        return case.row(replicas if way in ("compose", "swarm", "kubernetes") else 1)


def main() -> int:
    """Run the ways and print the report; exit code 1 if anything is missing."""
    parser = options(__doc__)
    parser.add_argument("--pages", type=int, default=900, help="pages of each service (default: %(default)s)")
    parser.add_argument("--replicas", type=int, default=3, help="nodes, where a way has replicas (default: %(default)s)")
    parser.add_argument("--only", nargs="*", choices=WAYS, default=WAYS, metavar="WAY", help=", ".join(WAYS))
    parser.add_argument("--quiet", action="store_true", help="without kills")
    chosen = parser.parse_args()
    report = Report(title="Books: one's own project in each way", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    rows = []
    for way in chosen.only:
        rows.append(run(way, pages=chosen.pages, replicas=chosen.replicas, kills=not chosen.quiet))
        print(rows[-1], file=sys.stderr, flush=True)
    report.table(HEAD, [[*asdict(row).values()] for row in rows])
    missing = sum(row.lines_missing + row.rows_missing + row.rows_twice for row in rows)
    report.target(f"each item in the file, once in the table, in {len(rows)} ways: {missing} missing or twice", not missing)
    most = 4 * IN_FLIGHT + BATCH
    report.target(f"copies in the file at most what was in flight at the kills, {most}", all(row.copies <= most for row in rows))
    report.figures["rows"] = [asdict(row) for row in rows]
    kept = section(chosen.page, IN_CONTAINERS) if chosen.page else ""
    report.finish(chosen)
    if kept:
        write_section(chosen.page, IN_CONTAINERS, kept.partition("\n\n")[2].strip())
    if chosen.page and [*chosen.only] == [*WAYS] and not chosen.quiet:
        write_section(chosen.page.with_name("kill_table.md"), CONSUMERS, consumers(rows))
    return int(bool(missing))


def consumers(rows: list[Row]) -> str:
    """Return the section of the kill table."""
    head = ["way", "nodes", "items", "missing", "copies in the file", "rows twice", "recovered after SIGKILL of the consumer, s"]
    cells = [
        (one.way, one.nodes, 2 * one.pages, one.lines_missing + one.rows_missing, one.copies, one.rows_twice, one.consumer_s)
        for one in rows
    ]
    about = (
        "A project of one's own in each way to start a fleet, with SIGKILL of a crawler, Redis, consumer and worker in each\n"
        "crawl ([books.md](books.md), whose benchmark writes this): one consumer into a file, one into PostgreSQL with a key."
    )
    return f"{about}\n\n{table(head, cells)}"


HEAD = (
    *("way", "nodes", "pages", "lines missing", "copies", "rows missing", "rows twice", "fetched twice"),
    *("SIGKILL crawler: recovered, s", "Redis", "consumer", "worker"),
)

if __name__ == "__main__":
    sys.exit(main())
