"""Every command of README.md and docs/*.md that can be run is run as printed, in its page's order, on a real fleet.

What has to differ is in `as_here`: ports, and https://forum.example.org, which is the demo's forum here. `make test-docs` runs
it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.documented_commands import PAGES, ROOT, Documented, in_blocks, why_not_run
from tests.support.processes import none_left, wait_until
from tests.support.redis_server import free_port

FORUM = "http://localhost:{port}"
GOES_ON = re.compile(r"--watch|trawl logs .*-f\b|trawl tail(?!.*--no-follow)|trawl consume |monitoring.exporter")
ENDS_WITH = {  # exit codes other than 0 that are right, too
    r"^trawl (status|doctor|why|upgrade)": {1},  # something needs attention
    r"^trawl query": {1},  # nothing has these words
    r"^trawl reparse": {1},  # no raw pages are kept
    r"^trawl (rescan|seed|backfill)": {1},  # a forum is being scanned at this moment
}
SPIDERS = """
import scrapy
from redis_components.spiders import RedisSpider

class Books(RedisSpider):
    name = "books"
    def parse(self, response):
        yield {"url": response.url}

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


@dataclass
class Reader:
    """Somebody who types what the pages print, in a project of theirs."""

    folder: Path
    environment: dict[str, str]
    forum: str
    names: dict[str, str] = field(default_factory=dict)  # what the pages print -> what a command has printed here

    def as_here(self, text: str) -> str:
        here = text.replace("https://forum.example.org/threads/some-thread.123/", f"{self.forum}/html/t/p1")
        new = f"sites new {self.forum}/ --name forum.example.org --force"
        here = re.sub(r"sites new https://forum\.example\.org/", new, here)
        here = here.replace("http://127.0.0.1:8765", self.forum).replace("/var/backups/", f"{self.folder}/backups/")
        here = re.sub(r"^python -m monitoring.exporter", "python -m monitoring.exporter --port 0", here)
        here = here.replace("URL  ", f"{self.forum}/list/f1/1  ")
        for printed, name in self.names.items():
            here = here.replace(printed, name)
        return here

    def run(self, text: str, goes_on: bool = False) -> tuple[int, str]:
        """Exit code and output. A command that goes on is stopped with Ctrl-C when it has started, or has said something."""
        place: dict[str, Any] = {"cwd": self.folder, "env": self.environment, "stdin": subprocess.DEVNULL}
        if not goes_on:
            command = ["bash", "-o", "pipefail", "-c", text]
            done = subprocess.run(command, **place, capture_output=True, text=True, timeout=240, check=False)
            return done.returncode, done.stdout + done.stderr
        log = self.folder / "goes_on.log"
        with log.open("wb") as file:
            process = subprocess.Popen(["bash", "-c", f"exec {text}"], **place, stdout=file, stderr=file)
        until = time.monotonic() + 5
        wait_until(lambda: log.stat().st_size or process.poll() is not None or time.monotonic() > until, "it says something", 60)
        process.send_signal(signal.SIGINT)
        return process.wait(60), log.read_text(errors="replace")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    folder = tmp_path_factory.mktemp("reader") / "shop"
    environment = {name: text for name, text in os.environ.items() if not name.startswith("TRAWL_")}
    environment |= {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "TRAWL_ALLOW_PRIVATE": "1",
        "TRAWL_DATA_DIR": str(folder / "data"),
        "TRAWL_DEMO_URL": (forum := FORUM.format(port=(port := free_port()))),
    }
    one = Reader(folder=folder, environment=environment, forum=forum)
    folder.mkdir()
    assert one.run("trawl init . --package shop")[0] == 0
    (folder / "shop/spiders/shop.py").write_text(SPIDERS.replace("FORUM", forum))
    (folder / "urls.txt").write_text(f"{forum}/\n{forum}/html/f/f1\n")
    (folder / "demo").symlink_to(ROOT / "demo")
    (folder / "backups").mkdir()
    (folder / "sites/books.toml").write_text((ROOT / "demo/sites/demo.toml").read_text())
    with none_left():
        forum_process = subprocess.Popen(
            [sys.executable, "-m", "demo.forum", "--port", str(port), "--rate", "0"], cwd=folder, env=environment
        )
        with (folder / "up.log").open("wb") as log:
            up = subprocess.Popen(
                ["trawl", "up", "--port-flower", "0", "--port-exporter", "0"], cwd=folder, env=environment, stdout=log, stderr=log
            )
        try:
            wait_until(
                lambda: "launched crawler" in (folder / "up.log").read_text(), lambda: (folder / "up.log").read_text(), 120
            )
            yield one
        finally:
            up.send_signal(signal.SIGINT)
            up.wait(120)
            forum_process.send_signal(signal.SIGINT)
            forum_process.wait(60)


@pytest.mark.parametrize("page", [page for page in PAGES if in_blocks(page)], ids=lambda page: str(page.relative_to(ROOT)))
def test_a_pages_commands_run_as_printed(page: Path, reader: Reader) -> None:
    failed = [said for command in in_blocks(page) if (said := fault(command, reader))]
    assert not failed, "\n\n".join(failed)


def fault(command: Documented, reader: Reader) -> str | None:
    """What went wrong with a command; None where it did what it should, or is not run."""
    text = command.text
    if why_not_run(text) or text.startswith(("trawl up", "python -m demo.forum")):
        return None
    if "jq " in text and not shutil.which("jq"):
        return None
    code, said = reader.run(reader.as_here(text), goes_on := bool(GOES_ON.search(text)))
    if found := re.search(r"\b(books|pages)\.([0-9a-f]{8})\b", said):
        reader.names.setdefault("3fa2c1d0", found[2])
    allowed = {0, *(code for pattern, codes in ENDS_WITH.items() if re.search(pattern, text) for code in codes)}
    if goes_on:
        allowed |= {130, -signal.SIGINT}
    if code in allowed and "Traceback" not in said:
        return None
    return f"{command}\n  as {reader.as_here(text)}\n  ended with {code}:\n{said[-1500:]}"
