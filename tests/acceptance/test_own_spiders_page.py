"""docs/own-spiders.md by what comes out of it: rows in the file that its last command names.

One crawler stands for `trawl up` here; `make test-docs` runs the page as printed.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.support.documented_commands import ROOT, block_after, in_blocks
from tests.support.fleet import MARK, Program
from tests.support.processes import wait_until
from tests.support.watched_site import Page, WatchedSite

PAGE = ROOT / "docs/own-spiders.md"


@pytest.mark.usefixtures("no_process_left", "redis_client")
def test_the_printed_project_gives_rows_in_the_printed_file(redis_url: str, tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    kept = {
        name: value for name, value in os.environ.items() if name not in ("TRAWL_SITES_DIR", "TRAWL_FLEET", "TRAWL_ALLOW_PRIVATE")
    }
    environment = {**kept, "TRAWL_REDIS_URL": redis_url, MARK: str(tmp_path)}
    environment |= {"PYTHONPATH": f"{shop}:{ROOT}", "TRAWL_DATA_DIR": str(shop / "data")}

    def start(*command: str, folder: Path = shop) -> Program:
        return Program([sys.executable, "-m", *command], environment, tmp_path / f"{command[1]}.log", folder)

    running: list[Program] = []
    with WatchedSite() as site:
        site.pages |= {"/": Page('<title>One</title><a rel="next" href="/2">2</a>'), "/2": Page("<title>Two</title>")}
        try:
            for command in [one.text for one in in_blocks(PAGE)]:
                match command.split():
                    case ["cd", _]:
                        (shop / "shop/spiders/books.py").write_text(block_after(PAGE, "`shop/spiders/books.py`:"))
                        (shop / "urls.txt").write_text(f"{site.url}/\n")
                    case ["trawl", "up"]:
                        running.append(start("workers.crawler", "books"))
                    case ["trawl", "items", "consume", *rest]:
                        running.append(start("cli.main", "items", "consume", *rest))
                    case ["trawl", *rest]:
                        done = start("cli.main", *rest, folder=tmp_path if "init" in rest else shop)
                        assert done.wait() in ((0, 1) if "status" in rest else (0,)), done.said()
            rows = shop / "data/books.jsonl"
            wait_until(
                lambda: rows.exists() and rows.read_text().count("\n") == 2, lambda: "\n".join(one.said() for one in running)
            )
        finally:
            for one in running:
                one.process.terminate()
            ends = [one.wait() for one in running]
    found = [json.loads(line) for line in rows.read_text().splitlines()]
    assert sorted((row["title"], row["url"]) for row in found) == [("One", f"{site.url}/"), ("Two", f"{site.url}/2")]
    assert ends == [0, 0], [one.said() for one in running]
