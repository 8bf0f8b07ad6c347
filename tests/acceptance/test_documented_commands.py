"""Every command of README.md and docs/*.md that can be run is run as printed, in its page's order, by a newcomer.

A copy of the checkout lies in an empty home folder, where `make install` runs first, as printed; no package, variable or cache of
the developer's is used. The pages of the first hour start everything themselves; those for reference meet a project whose fleet
runs. What has to differ is in `as_here`: ports, and https://forum.example.org, which is the demo's forum here. `make test-docs`
runs it; with NEWCOMER_HOME=FOLDER in that home, where the installation of a run before is kept: a page at a time costs it once.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.support.documented_commands import PAGES, ROOT, Documented, block_after, in_blocks, why_not_run
from tests.support.newcomer import Newcomer
from tests.support.processes import none_left, wait_until
from tests.support.redis_server import free_port

pytestmark = pytest.mark.timeout(1800)  # a whole page of commands is one test, and `make demo` one command
INSTALL_CPU_S = 60
GOES_ON = re.compile(r"--watch|trawl logs .*-f\b|trawl events tail(?!.*--no-follow)|trawl items consume |monitoring.exporter")
STAYS = {  # what stays while the rest of its page is read -> what it says when it is there
    r"^python -m demo\.forum": "http",
    r"^(TRAWL_API_\w+=.* )?trawl (up|api)\b": r"launched crawler|API at",
    r"^celery -A tasks worker": r"\[queues\]",  # its logging is of warnings, and the banner all that it says
    r"^celery -A tasks beat": r"beat: |[Bb]eat",
    r"^celery -A tasks flower": r"[Vv]isit|Flower",
}
ENDS_WITH = {  # exit codes other than 0 that are right, too
    r"^trawl (status|doctor|why)": {1},  # something needs attention
    r"^trawl search": {1},  # nothing has these words
    r"^trawl sites reparse": {1},  # no raw pages are kept
    r"^trawl (seed|forums (rescan|backfill))": {1},  # a forum is being scanned at this moment
}
ON_ITS_OWN = {  # pages whose reader starts everything: where the rest of the page begins, which does not
    "README.md": None,
    "docs/quickstart.md": None,
    "docs/tutorial.md": "## Move a scrapy-redis project",
    "docs/own-spiders.md": None,
    "docs/services.md": "## Declaring services",
}
GIVES = {  # pages that promise posts or items -> files with rows in the end
    "README.md": ("posts.csv",),
    "docs/quickstart.md": ("posts.csv", "forum.csv"),
    "docs/tutorial.md": ("posts.csv", "comments.csv"),
    "docs/own-spiders.md": ("data/books.jsonl",),
}
ROWS_S = 120  # "some seconds" on a machine with other work; a command that exports is repeated until then
IN_A_NEW_FOLDER = {"docs/own-spiders.md", "docs/services.md"}
TO_WRITE = {  # after a command the page asks for files: how, which, and the words before their text
    "cd shop": [("w", "shop/spiders/books.py", "`shop/spiders/books.py`:")],
    "scrapy genspider books books.toscrape.com": [
        ("a", "shop/settings.py", "Append to `shop/settings.py`"),
        ("w", "trawl.toml", "Write `trawl.toml`"),
    ],
}
SPIDERS = """
import scrapy
from redis_components.spiders import RedisSpider

class Books(RedisSpider):
    name = "books"
    custom_settings = {"DOWNLOAD_DELAY": 0.5}
    async def start(self):
        if hasattr(self, "category"):  # a job of five minutes, so that it can be cancelled and resumed
            yield scrapy.Request("FORUM", meta={"depth": 0})
        async for request in super().start():
            yield request
    def parse(self, response):
        yield {"url": response.url}
        if hasattr(self, "category") and response.meta.get("depth", 0) < 600:
            yield scrapy.Request("FORUM", dont_filter=True)

class ShopBooks(Books):
    name = "shop_books"

class Pages(Books):
    name = "pages"

class News(scrapy.Spider):
    name = "news"
    start_urls = ["FORUM"]
    def parse(self, response):
        yield {"url": response.url, "section": self.section}
"""
TASKS = """
from tasks import app

@app.task(name="shop.report", soft_time_limit=50, time_limit=60)
def report(day: str) -> None: ...
"""


@dataclass
class Reader:
    """Somebody who types what a page prints, in `folder`."""

    who: Newcomer
    folder: Path
    forum: str
    shop: str
    names: dict[str, str] = field(default_factory=dict)  # what the pages print -> what a command has printed here
    staying: list[tuple[str, ExitStack]] = field(default_factory=list)
    more: dict[str, str] = field(default_factory=dict)  # environment of this page
    api: str = ""

    def as_here(self, text: str) -> str:
        here = text.replace("https://forum.example.org/threads/some-thread.123/", f"{self.forum}/html/t/p1")
        new = f"sites new {self.forum}/ --name forum.example.org --force"
        here = re.sub(r"sites new https://forum\.example\.org/", new, here)
        here = here.replace("/var/backups/", f"{self.who.home}/backups/").replace("https://shop.example/", f"{self.shop}/")
        here = re.sub(r"^python -m monitoring.exporter", "python -m monitoring.exporter --port 0", here)
        here = here.replace("books.toscrape.com", self.forum)
        here = here.replace("http://127.0.0.1:6800", self.api).replace("$(openssl rand -hex 24)", "0123456789abcdef")
        here = re.sub(r"^(.*trawl up)\b", r"\1 --port-flower 0 --port-exporter 0", here)
        here = re.sub(r"^(celery -A tasks flower)\b", rf"\1 --port={free_port()}", here)
        here = here.replace("URL  ", f"{self.forum}/list/f1/1  ").replace("http://127.0.0.1:8765", self.forum)
        for printed, name in self.names.items():
            here = here.replace(printed, name)
        return here

    def type_in(self, command: Documented) -> str | None:
        """What went wrong with a command; None where it did what it should, or is not run."""
        text = command.text
        if why_not_run(text):
            return None
        if until := next((words for pattern, words in STAYS.items() if re.search(pattern, text)), None):
            return self._stay(text, until)
        for part in text.split(" && "):
            if moved := re.match(r"cd (\S+)", part):
                self.folder /= moved[1]
        if not text.startswith("cd "):
            folder = self.who.checkout if text.startswith(("make ", "pip install -e")) else self.folder
            folder = folder.parent if "&& cd " in text else folder
            promised = [folder / name for name in GIVES.get(command.page, ()) if name in text]
            until_s = time.monotonic() + ROWS_S
            code, said, stopped = self._run(text, folder, promised)
            while code == 0 and not stopped and not all(map(has_rows, promised)) and time.monotonic() < until_s:
                code, said, stopped = self._run(text, folder, promised)
            self._learn(said)
            allowed = {0, *(code for pattern, codes in ENDS_WITH.items() if re.search(pattern, text) for code in codes)}
            allowed |= {130, -signal.SIGINT} if stopped else set()
            if code not in allowed or "Traceback" in said:
                return f"{command}\n  as {self.as_here(text)}\n  ended with {code}:\n{said[-1500:]}"
            if without := [str(path) for path in promised if not has_rows(path)]:
                return f"{command}\n  as {self.as_here(text)}\n  no rows in {', '.join(without)}:\n{said[-1500:]}"
        if re.search(r"\bcd ", text) and (urls := self.folder.parent / "urls.txt").is_file():
            shutil.copy(urls, self.folder)
        for how, name, words in TO_WRITE.get(text, []) if command.page in IN_A_NEW_FOLDER else []:
            with (self.folder / name).open(how) as file:
                file.write(block_after(ROOT / command.page, words))
        return None

    def close(self) -> None:
        """Ctrl-C for what stays, the last first; also where one of them does not end as it should."""
        with ExitStack() as all_of_them:
            for _, one in self.staying:
                all_of_them.push(one)
            self.staying.clear()

    def _run(self, text: str, folder: Path, promised: list[Path]) -> tuple[int, str, bool]:
        here = self.as_here(text)
        if not GOES_ON.search(text):
            answer = "y\n" if "# asks first" in text else ""
            return *self.who.run(here, folder, answer, **self.more), False
        log = self.who.home / "goes_on.log"
        process = self.who.start(here, folder, log, **self.more)
        until = time.monotonic() + (ROWS_S if promised else 5)

        def enough() -> bool:
            done = all(map(has_rows, promised)) if promised else bool(log.stat().st_size)
            return done or process.poll() is not None or time.monotonic() > until

        wait_until(enough, "it says something, or has written what the page promises", 2 * ROWS_S)
        return *self.who.stop(process, log), True

    def _stay(self, text: str, until: str) -> str | None:
        if text.startswith("celery"):  # "or one by one": not next to what `trawl up` has started
            for there in [one for one in self.staying if "trawl up" in one[0]]:
                there[1].close()
                self.staying.remove(there)
        if text.startswith("python -m demo.forum"):
            self.more = {"TRAWL_DEMO_URL": f"http://127.0.0.1:{(port := free_port())}"}
            here = text.split("&")[0].replace("8765", str(port))
        else:
            here = self.as_here(text)
        if "trawl api" in text:
            self.api, here = f"http://127.0.0.1:{(port := free_port())}", f"env {here.split('#')[0]} --port {port}"
        stack, log = ExitStack(), self.who.home / f"stays{len(self.staying)}.log"
        stack.enter_context(self.who.going_on(here, self.folder, until, log, **self.more))
        self.staying.append((text, stack))
        return None

    def _learn(self, said: str) -> None:
        if found := re.search(r"\b(books|pages)\.([0-9a-f]{8})\b", said):
            self.names.setdefault("3fa2c1d0", found[2])


def has_rows(path: Path) -> bool:
    """Return True for a file with lines, behind the names of the columns in CSV."""
    return path.is_file() and len(path.read_text().splitlines()) > (path.suffix == ".csv")


class Takes(BaseHTTPRequestHandler):
    """The server of a shop that is sent items and events."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    """Has installed as printed; a forum is there to practise on."""
    one = Newcomer(Path(os.environ.get("NEWCOMER_HOME") or tmp_path_factory.mktemp("newcomer") / "home"))
    one.arrive()
    one.install()
    (one.home / "backups").mkdir()
    forum = f"http://localhost:{(port := free_port())}"
    one.environment |= {"TRAWL_ALLOW_PRIVATE": "1", "TRAWL_DEMO_URL": forum, "TOKEN": "0123456789abcdef"}
    command = f"python -m demo.forum --port {port} --rate 0 --threads 12 --comments 3"  # what is crawled does not matter here
    with none_left(folder=one.home), one.going_on(command, one.checkout, "http", one.home / "forum.log"):
        yield one


@pytest.fixture(scope="module")
def shop() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Takes) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def fleet(newcomer: Newcomer, shop: str) -> Iterator[Reader]:
    """A project with spiders, tasks, an output of events and files of its reader, whose fleet runs."""
    folder, forum = newcomer.home / "shop", newcomer.environment["TRAWL_DEMO_URL"]
    assert newcomer.run("trawl init shop", newcomer.home)[0] == 0
    (folder / "shop/spiders/shop.py").write_text(SPIDERS.replace("FORUM", forum))
    (folder / "shop/tasks.py").write_text(TASKS)
    (folder / "urls.txt").write_text(f"{forum}/\n{forum}/html/f/f1\n")
    (folder / "trawl.toml").write_text(f'[outputs.shop]\nkind = "webhook"\nurl = "{shop}/posts"\nsecret = "${{SHOP_SECRET}}"\n')
    (folder / "pages.jsonl").write_text('{"url": "https://forum.example.org/t/1", "path": "saved.html"}\n')
    assert newcomer.run(f"curl -s {forum}/html/t/p1 > saved.html", folder)[0] == 0
    for site in ("demo", "books"):
        seldom = {"min_interval_s = 0.5": "min_interval_s = 20", "max_interval_s = 10": "max_interval_s = 60"}
        text = (ROOT / "demo/sites/demo.toml").read_text()
        for often, less in seldom.items():
            assert often in text
            text = text.replace(often, less)
        (folder / f"sites/{site}.toml").write_text(text)
    if newcomer.run("python -c 'import pyarrow'", folder)[0]:
        assert newcomer.run("pip install 'trawl-fleet[parquet]'", folder)[0] == 0  # as the pages say where they name Parquet
    # Room for the jobs of all pages at one time: one that waits for room is waited for.
    more = {"TRAWL_TASK_MODULES": "shop.tasks", "SHOP_SECRET": "0123456789abcdef", "TRAWL_NODE_CRAWLERS": "16"}
    up = "trawl up --port-flower 0 --port-exporter 0"
    with newcomer.going_on(up, folder, "launched crawler", newcomer.home / "up.log", **more):
        yield Reader(newcomer, folder, forum, shop, more=more)


def parts() -> Iterator[tuple[str, bool, list[Documented]]]:
    """Page, whether its reader starts everything, and its commands; a page may have both parts."""
    for page in PAGES:
        name, commands = str(page.relative_to(ROOT)), in_blocks(page)
        lines = page.read_text("utf-8").splitlines()
        rest = ON_ITS_OWN.get(name, lines[0])
        border = len(lines) + 1 if rest is None else lines.index(rest) + 1
        if own := [one for one in commands if one.line < border]:
            yield f"{name}, first", True, own
        if others := [one for one in commands if one.line >= border]:
            yield name, False, others


@pytest.mark.parametrize("own", [pytest.param(one, id=name) for name, alone, one in parts() if alone])
def test_the_pages_of_the_first_hour_work_as_printed(own: list[Documented], newcomer: Newcomer, shop: str) -> None:
    folder = newcomer.checkout
    if own[0].page in IN_A_NEW_FOLDER:
        folder = newcomer.home / f"own-{Path(own[0].page).stem}"
        folder.mkdir()
        (folder / "urls.txt").write_text(newcomer.environment["TRAWL_DEMO_URL"] + "/\n")
    reader = Reader(newcomer, folder, newcomer.environment["TRAWL_DEMO_URL"], shop)
    try:
        failed = [said for command in own if (said := reader.type_in(command))]
    finally:
        reader.close()
    assert not failed, "\n\n".join(failed)


@pytest.mark.parametrize("rest", [pytest.param(one, id=name) for name, alone, one in parts() if not alone])
def test_a_pages_commands_run_as_printed_in_a_fleet(rest: list[Documented], fleet: Reader) -> None:
    try:
        failed = [said for command in rest if (said := fleet.type_in(command))]
    finally:
        fleet.close()
    assert not failed, "\n\n".join(failed)


def test_the_installation_costs_what_it_may(newcomer: Newcomer) -> None:
    assert newcomer.install_cpu_s <= INSTALL_CPU_S
