"""Neighbours: delay of a thread of one site while another site has a backlog, or does not answer.

    python -m benchmarks.forums.neighbours [--crawlers 1] [--backlog 100000] [--threads 15] [--only TEXT]

Site A, or twenty of its kind, has a backlog of threads that wait for `forum_detail`, and answers well, slowly, with 503, or
never. Then each second one thread of site B is new. The time is from its start task to the request's arrival at B, which
answers at once. A's breaker is switched off except in the situation named so; downloads time out after 5 s, and failed ones
are tried again as usual.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from benchmarks.support.report import Report, options
from forums.records.stored import PostTask
from forums.records.tasks_and_items import encode
from redis_components.admin.inspector import snapshot
from redis_components.frontier import holds
from redis_components.frontier.holds import Hold, HoldKind
from redis_components.keys import CrawlKeys
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer

ROOT = Path(__file__).parents[2]
KEYS = CrawlKeys.for_spider("forum_detail")
TARGET_S = 1.0
LONGEST_S = 60.0
"""For how long a thread of B is waited for."""
SITE = """\
base_url = "{url}"
forums = ["f"]
[politeness]
rate = {rate}
concurrency = {concurrency}
obey_robots = false
[breaker]
enabled = {breaker}
[pages.list]
url = "/list/{{forum}}/{{page}}"
format = "json"
rows = "threads"
[pages.list.fields]
id = "id"
[pages.thread]
url = "/post/{{thread}}"
format = "json"
[pages.thread.fields]
id = "id"
body = "body"
reply_count = "reply_count"
[pages.comments]
url = "/comment/{{thread}}/{{page}}"
format = "json"
rows = "comments"
[pages.comments.fields]
id = "id"
body = "body"
"""


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """State of site A, and its limits."""

    answers_after_s: float | None = 0.0
    """None: never."""
    status: int = 200
    rate: float = 0.0
    concurrency: int = 8
    breaker: bool = False
    held: bool = False
    sites: int = 1
    """So many of them, which share the backlog."""


SITUATIONS = {
    "A has no backlog": Situation(),
    "A is well, 2 at a time, 0.5 s apart": Situation(rate=2, concurrency=2),
    "A is well, 8 at a time": Situation(),
    "A is well, 32 at a time": Situation(concurrency=32),
    "A takes 2 s a page, 8 at a time": Situation(answers_after_s=2.0),
    "A never answers, 8 at a time": Situation(answers_after_s=None),
    "A never answers, 8 at a time, with a breaker": Situation(answers_after_s=None, breaker=True),
    "A answers 503, 8 at a time": Situation(status=503),
    "A is held": Situation(held=True),
    "20 sites A never answer, 2 at a time each": Situation(answers_after_s=None, concurrency=2, sites=20),
}


class Pages:
    """A site in a thread of this process; `arrivals` has the first request of each path."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.arrivals: dict[str, float] = {}
        self.asked = 0
        self.url = ""
        self._up = threading.Event()

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._up.set()
        await self._over.wait()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split(b" ", 2)[1].decode()
                self.asked += 1
                self.arrivals.setdefault(path, time.monotonic())
                if self.situation.answers_after_s is None:
                    await asyncio.sleep(3600)
                await asyncio.sleep(self.situation.answers_after_s or 0.0)
                page = {"id": path.rpartition("/")[2], "body": "A few words.", "reply_count": 0}
                body = json.dumps(page).encode()
                writer.write(b"HTTP/1.1 %d .\r\nContent-Type: application/json\r\n" % self.situation.status)
                writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    @contextmanager
    def served(self) -> Iterator[Pages]:
        """Listen on a free port until the end."""
        thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        thread.start()
        self._up.wait(10)
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._over.set)
            thread.join(10)


def main() -> None:
    """Run the benchmark and print the report."""
    parser = options(__doc__)
    parser.add_argument("--crawlers", type=int, default=1)
    parser.add_argument("--backlog", type=int, default=100_000, help="threads of A that wait (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=15, help="new threads of B, one each second (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only situations with this in their name")
    chosen = parser.parse_args()
    report = Report(title="Neighbours", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    rows = []
    for name, situation in SITUATIONS.items():
        if chosen.only in name:
            waits, pages_s = _measure(
                report, situation, chosen.crawlers, 0 if "no backlog" in name else chosen.backlog, chosen.threads
            )
            there = [wait for wait in waits if wait < LONGEST_S]
            rows.append([name, statistics.mean(there) if there else "-", max(waits), len(waits) - len(there), pages_s])
            print(rows[-1], flush=True)
    report.table(["", "B waits, s (mean)", "longest, s", f"not fetched within {LONGEST_S:g} s", "pages of A per s"], rows)
    longest = max(row[2] for row in rows)
    report.target(f"no thread of B waits longer than {TARGET_S:g} s: {longest:.2f} s", longest <= TARGET_S)
    report.finish(chosen)


def _measure(report: Report, situation: Situation, crawlers: int, backlog: int, threads: int) -> tuple[list[float], float]:
    with (
        tempfile.TemporaryDirectory(prefix="trawl-bench-neighbours-") as folder,
        RedisServer() as server,
        Pages(situation).served() as a,
        Pages(Situation()).served() as b,
    ):
        client = server.client()
        report.served_by(client)
        sites = Path(folder) / "sites"
        sites.mkdir()
        of_a = [f"a{number or ''}" for number in range(situation.sites)]
        for name, pages, manners in (*((name, a, situation) for name in of_a), ("b", b, Situation())):
            text = SITE.format(
                url=pages.url, breaker=str(manners.breaker).lower(), rate=manners.rate, concurrency=manners.concurrency
            )
            (sites / f"{name}.toml").write_text(text)
        tasks = [encode(PostTask(site=of_a[number % len(of_a)], post=f"a{number}")) for number in range(backlog)]
        for at in range(0, backlog, 10_000):
            client.rpush(KEYS.start_tasks(), *tasks[at : at + 10_000])
        if situation.held:
            holds.change(client, KEYS, {"site:a": Hold(word=HoldKind.PAUSE)})
        with _crawlers(Path(folder), server.url, crawlers) as output:
            wait_until(lambda: snapshot(client, "forum_detail").owners == crawlers, output, 60)
            if backlog and not situation.held:
                wait_until(lambda: a.asked, output, 30)
            time.sleep(2.0)
            begun, asked = time.monotonic(), a.asked
            pushed = {}
            for number in range(threads):
                time.sleep(max(0.0, begun + number - time.monotonic()))
                pushed[f"/post/b{number}"] = time.monotonic()
                client.rpush(KEYS.start_tasks(), encode(PostTask(site="b", post=f"b{number}")))
            until = time.monotonic() + LONGEST_S
            while len(b.arrivals) < threads and time.monotonic() < until:
                time.sleep(0.05)
            pages_s = (a.asked - asked) / (time.monotonic() - begun)
            return [b.arrivals.get(path, at + LONGEST_S) - at for path, at in pushed.items()], pages_s


@contextmanager
def _crawlers(folder: Path, redis_url: str, number: int) -> Iterator[Callable[[], str]]:
    environment = {
        **os.environ,
        "TRAWL_REDIS_URL": redis_url,
        "TRAWL_SITES_DIR": str(folder / "sites"),
        "TRAWL_DATA_DIR": str(folder),
    }
    command = [sys.executable, "-m", "scrapy", "crawl", "forum_detail", "-s", "DOWNLOAD_TIMEOUT=5"]
    log = folder / "crawlers.log"
    with log.open("ab") as out:
        processes = [subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=out) for _ in range(number)]
    try:
        yield lambda: log.read_text()[-3000:]
    finally:
        for process in processes:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
