"""A rolling upgrade from another version of Trawl under load, and back again: is anything lost, twice or refused?

    git worktree add ../old 49295b45 && make -C ../old .venv/.tools
    python -m benchmarks.fleet.rolling_upgrade --old ../old [--seconds 30] [--threads 300] [--pages 1300]

A fleet of the older version (two nodes, a beat, a list and two detail crawlers, and a service `books` of a plain project with
two crawlers) with a Redis and an SQLite file. It gets work and is paused: over a thousand start tasks of the demo's forum wait,
over a thousand requests of `books` are stored, a job waits for its crawlers, and there are limits by rate and by hour, and a
pause of a site. Then a node and a beat of this version are started, everything is resumed, and both work while the forum lives;
the older nodes are ended, and come back; then this version's are ended. Each phase lasts SECONDS. At the end the forum stands
still and everything is crawled to the end by the older version again.

Lost: a row of the database or an item of `books` that is not there, after a last check of every thread. Twice: rows with one
id, items of one page, and pages of `books` that its site served more than once. Refused: dead letters, refused items, messages
of the broker that were set aside, values in Redis that a process of either version cannot read, and errors in the logs.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.support.report import Report, options
from demo.forum.process import ForumProcess
from redis_components.admin.inspector import snapshot
from redis_components.keys import CrawlKeys
from tests.support.crawl import hits_of, link_site
from tests.support.fleet import MARK, ROOT, Program
from tests.support.forum_fleet import SITE, SPIDERS, ForumFleet
from tests.support.processes import none_left, wait_until
from workers.state.beats import Schedules, StoredEntry
from workers.state.jobs import Jobs

BOOKS = "books"
SPIDER = """
from redis_components.spiders import RedisSpider


class Books(RedisSpider):
    name = "books"
    last = 1

    def parse(self, response):
        page = int(response.url.rpartition("/")[2])
        yield {"page": page}
        for number in range(2, int(self.settings["LAST_PAGE"]) + 1) if page == 1 else ():
            yield response.follow(f"/{number}", meta={"number": number})
"""
SETTINGS = """
SPIDER_MODULES = ["rolling_books"]
SCHEDULER = "redis_components.scheduler.Scheduler"
DUPEFILTER_CLASS = "redis_components.dupefilter.RFPDupeFilter"
STATS_CLASS = "redis_components.stats.RedisStatsCollector"
ITEM_PIPELINES = {{"redis_components.pipelines.RedisPipeline": 300}}
CONCURRENT_REQUESTS = CONCURRENT_REQUESTS_PER_DOMAIN = 4
LAST_PAGE = {pages}
ALLOW_PRIVATE_ADDRESSES = True
"""
FAULT = re.compile(r"\b(?:ERROR|CRITICAL)\b|Traceback \(most recent call last\)")


class RollingFleet(ForumFleet):
    """A fleet whose nodes and beats are of this version, or of the one in the folder `old`."""

    def __init__(self, folder: Path, forum: ForumProcess, old: Path, books: str, pages: int) -> None:
        sites = old / "demo" / "sites"  # as both versions read them
        super().__init__(folder, forum, sizes="forum_list=1,forum_detail=2", nodes="", beats=0, sites=sites)
        project = folder / "project"
        project.mkdir()
        (project / "rolling_books.py").write_text(SPIDER)
        (project / "rolling_settings.py").write_text(SETTINGS.format(pages=pages))
        self._more |= {"TRAWL_NODE_CRAWLERS": "8", "TRAWL_ALLOW_PRIVATE": "1", "TRAWL_RAW_PAGES_MODE": "none"}
        self._old, self._project, self.books, self.pages = old, project, books, pages
        self.commands: list[str] = []

    def start(self, what: str, *, old: bool) -> Program:
        """Start a node, or with the name `beat` a beat."""
        name = f"{'old' if old else 'new'}-{what}"
        kind = ["beat"] if what == "beat" else ["worker", "-n", f"{name}@test"]
        log = self.folder / f"{name}-{len(self._running)}.log"
        command = [self._python(old=old), "-m", "celery", "-A", "tasks", *kind, "--loglevel=INFO"]
        started = Program(command, self._environment(old=old), log, self._root(old=old))
        self._running.append(started)
        self.nodes[name] = started
        return started

    def end(self, what: str, *, old: bool) -> None:
        """End a node or beat gracefully."""
        program = self.nodes.pop(f"{'old' if old else 'new'}-{what}")
        program.process.terminate()
        program.wait(60)

    def trawl(self, *arguments: str, old: bool) -> str:
        """Run a `trawl` command of one version. Raises AssertionError where it fails."""
        command = [self._python(old=old), "-m", "cli.main", *arguments]
        done = subprocess.run(
            command,
            cwd=self._root(old=old),
            env=self._environment(old=old),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"trawl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def _root(self, *, old: bool) -> Path:
        return self._old if old else ROOT

    def _python(self, *, old: bool) -> str:
        return str(self._old / ".venv/bin/python") if old else sys.executable

    def _environment(self, *, old: bool) -> dict[str, str]:
        return self.environment | {"PYTHONPATH": f"{self._root(old=old)}:{self._project}"}


def prepare(fleet: RollingFleet) -> None:
    """Let the older version store work, and pause it. Its crawlers end the block at work on nothing."""
    fleet.trawl("services", "add", BOOKS, "--project", "rolling_settings", "--size", "2", old=True)
    fleet.trawl("pause", "forum_detail", "--reason", "upgrade", old=True)
    for what in ("a", "b", "beat"):
        fleet.start(what, old=True)
    Schedules(fleet.client).set("seed_forums", StoredEntry(every_s=1.0))
    wait_until(lambda: len(fleet.crawlers()) == 5, lambda: f"five crawlers\n{fleet.said()}", 90)
    fleet.client.rpush(CrawlKeys.for_spider(BOOKS).start_tasks(), f"{fleet.books}/1")
    books = CrawlKeys.for_spider(BOOKS)
    wait_until(lambda: fleet.client.zcard(books.requests) > 1000, lambda: f"1,000 requests\n{fleet.said()}", 60)
    fleet.trawl("pause", BOOKS, old=True)
    details = CrawlKeys.for_spider("forum_detail")
    wait_until(
        lambda: waiting_tasks(fleet) > 1000, lambda: f"1,000 start tasks; {snapshot(fleet.client, 'forum_detail', details)}", 90
    )
    fleet.trawl("limit", SITE, "--rate", "40", "--per-hour", "100000", old=True)
    fleet.trawl("limit", books_lane(fleet), "--rate", "60", "--concurrency", "8", old=True)
    fleet.trawl("run", BOOKS, "--urls", str(urls_of(fleet)), old=True)
    fleet.trawl("pause", "--site", "elsewhere.example", old=True)


def books_lane(fleet: RollingFleet) -> str:
    """Return the name by which the limits of the site of `books` are set."""
    return fleet.books.removeprefix("http://")


def urls_of(fleet: RollingFleet) -> Path:
    """Write the start tasks of the job: pages that no other crawl asks for."""
    path = fleet.folder / "urls.txt"
    path.write_text("".join(f"{fleet.books}/{page}\n" for page in range(fleet.pages + 1, fleet.pages + 101)))
    return path


def waiting_tasks(fleet: RollingFleet) -> int:
    """Return the start tasks of `forum_detail` that wait, in every place."""
    shot = snapshot(fleet.client, "forum_detail", CrawlKeys.for_spider("forum_detail"))
    return shot.start_tasks


def roll(fleet: RollingFleet, seconds: float, log: Callable[[str], None]) -> None:
    """Roll forth and back, each phase for so long."""
    for phase, action in {
        "side by side": lambda: (fleet.start("c", old=False), fleet.start("beat", old=False), resume(fleet)),
        "this version alone": lambda: [fleet.end(what, old=True) for what in ("beat", "a", "b")],
        "the older version again": lambda: [fleet.start(what, old=True) for what in ("a", "b", "beat")],
        "the older version alone": lambda: [fleet.end(what, old=False) for what in ("beat", "c")],
    }.items():
        action()
        log(f"{phase}: {list(fleet.nodes)}; {figures(fleet)}")
        time.sleep(seconds)


def resume(fleet: RollingFleet) -> None:
    """Resume everything by this version's command, and let the forum live."""
    fleet.trawl("resume", "forum_detail", BOOKS, old=False)
    fleet.forum.control(rate=3)


def figures(fleet: RollingFleet) -> dict[str, Any]:
    """Return what waits and was done."""
    shots = {spider: snapshot(fleet.client, spider, CrawlKeys.for_spider(spider)) for spider in (*SPIDERS, BOOKS)}
    return {name: {"waiting": one.start_tasks + one.ready, "acked": one.acked, "dead": one.dead} for name, one in shots.items()}


def judge(fleet: RollingFleet, report: Report) -> None:
    """Compare the end with what there should be."""
    coverage = fleet.settle(600)
    wait_until(lambda: books_done(fleet), lambda: f"books is done; {figures(fleet)}\n{fleet.said()}", 120)
    rows = [[one.table, one.expected, one.stored, len(one.missing), one.duplicates, len(one.faults)] for one in coverage]
    report.table(["table", "in the forum", "stored", "lost", "twice", "wrong"], rows)
    hits, items = hits_of(fleet.books), Counter(json.loads(one)["page"] for one in books_items(fleet))
    wanted = set(range(1, fleet.pages + 101))
    lost, twice = wanted - items.keys(), [page for page, number in items.items() if number > 1]
    again = {page: number for page, number in hits.items() if number > 1}
    report.table(
        ["service", "pages", "items", "lost", "items twice", "pages served twice"],
        [[BOOKS, len(wanted), len(items), len(lost), len(twice), len(again)]],
    )
    refused = refusals(fleet)
    report.table(["refused", "number"], list(refused.items()))
    report.figures |= {"coverage": rows, "lost": sorted(lost), "twice": sorted(twice), "again": again, "refused": refused}
    report.target("nothing is lost", all(row[3] == 0 for row in rows) and not lost)
    report.target("nothing is in the database twice", all(row[4] == 0 for row in rows) and not twice)
    report.target("nothing is refused", not any(refused.values()))


def books_done(fleet: RollingFleet) -> bool:
    """Return True if nothing of `books` waits, and its job is over."""
    shot = snapshot(fleet.client, BOOKS, CrawlKeys.for_spider(BOOKS))
    return not (shot.ready or shot.leased or shot.start_tasks or Jobs(fleet.client).open())


def books_items(fleet: RollingFleet) -> list[bytes]:
    """Return the items of the service and of its job, which go into one list."""
    found: list[bytes] = fleet.client.lrange(CrawlKeys.for_spider(BOOKS).item_stream(), 0, -1)  # type: ignore[assignment]
    return found


def refusals(fleet: RollingFleet) -> dict[str, int]:
    """Return the number of whatever was refused, by kind."""
    shots = [snapshot(fleet.client, spider, CrawlKeys.for_spider(spider)) for spider in (*SPIDERS, BOOKS)]
    status = json.loads(fleet.trawl("status", "--json", old=False))
    lines = [
        (path.name, line)
        for path in sorted(fleet.folder.rglob("*.log"))
        for line in path.read_text(errors="replace").splitlines()
    ]
    faults = [f"{name}: {line}" for name, line in lines if FAULT.search(line)]
    for fault in faults[:20]:
        print(fault, file=sys.stderr)
    return {
        "dead letters": sum(one.dead for one in shots),
        "refused items": sum(one.bad_items for one in shots),
        "messages set aside": int(fleet.client.llen(fleet.keys.dead_messages())),
        "unreadable values": len(status["foreign"]),
        "errors in logs": len(faults),
    }


def main() -> int:
    """Run it and print the report; exit code 1 where anything was lost, twice or refused."""
    parser = options(__doc__)
    parser.add_argument(
        "--old", type=Path, required=True, metavar="FOLDER", help="a checkout of the older version, with its .venv"
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="of each phase (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=300, help="in each of four boards (default: %(default)s)")
    parser.add_argument("--pages", type=int, default=1300, help="of the service (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave logs and database there")
    chosen = parser.parse_args()
    revision = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=chosen.old, capture_output=True, text=True, check=True
    )
    report = Report(title="A rolling upgrade and back", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    report.caveats.append(f"The older version is {revision.stdout.strip()}; each phase lasts {chosen.seconds:g} s.")
    with ExitStack() as stack:
        folder = chosen.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trawl-rolling-")))
        folder.mkdir(exist_ok=True)
        stack.enter_context(none_left((MARK, str(folder))))
        forum = stack.enter_context(
            ForumProcess(seed=5, forums=4, threads=chosen.threads, comments=3, pace=60.0, history_days=1.0)
        )
        books = stack.enter_context(link_site(folder, pages=chosen.pages + 100, latency_s=0.05))
        fleet = stack.enter_context(RollingFleet(folder, forum, chosen.old.resolve(), books, chosen.pages))
        report.served_by(fleet.client)
        prepare(fleet)
        print(f"prepared: {figures(fleet)}", file=sys.stderr)
        report.figures["prepared"] = figures(fleet)
        roll(fleet, chosen.seconds, lambda line: print(line, file=sys.stderr, flush=True))
        judge(fleet, report)
    report.finish(chosen)
    return int(not all(reached for _, reached in report.targets))


if __name__ == "__main__":
    sys.exit(main())
