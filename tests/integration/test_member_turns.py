"""Members of a run, one after the other in a process: what one leaves behind, or its death, is not the next one's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.plain_project import project_fleet
from tests.support.processes import wait_until
from tests.support.watched_site import Page, WatchedSite
from workers.state.group_runs import GroupRuns

SETTINGS = """
from tests.support.light_scrapy import *
SPIDER_MODULES = ["turn_spiders"]
ROBOTSTXT_OBEY = False
LOG_LEVEL = "INFO"
"""
BASE = '''
import os
import scrapy


class Turn(scrapy.Spider):
    """An item with the process that made it, and what it found there."""

    owner = "turns"

    async def start(self):
        yield scrapy.Request(f"{os.environ['TEST_SITE']}/{self.name}")

    def parse(self, response):
        self.act()
        self.logger.info("a line of %s", self.name)
        yield {"pid": os.getpid(), "left": os.environ.get("LEFT", "")}

    def act(self):
        pass
'''
ACTS = {
    "a_first": "",
    "b_thread": "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()",
    "c_environment": "os.environ['LEFT'] = 'by c'",
    "d_timer": "from twisted.internet import reactor; reactor.callLater(600, print)",
    "e_task": "self.kept = asyncio.ensure_future(asyncio.sleep(600))",
    "f_settings": "from scrapy.settings import default_settings; default_settings.DOWNLOAD_DELAY = 0.01",
    "g_child": "subprocess.Popen(['sleep', '600'])",
    "h_quiet": "",
    "i_alone": "",
    "j_quiet": "",
    "k_dies": "",
    "l_quiet": "",
}
DIES = """
    def parse(self, response):
        if not os.path.exists(os.environ["TEST_MARK"]):
            os.mkdir(os.environ["TEST_MARK"])
            os.kill(os.getpid(), 9)
        yield from super().parse(response)
"""


def write(folder: Path) -> None:
    package = folder / "project" / "turn_spiders"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "base.py").write_text(BASE)
    for name, act in ACTS.items():
        more = "    custom_settings = {'OWN_PROCESS': True}\n" if name == "i_alone" else ""
        body = DIES if name == "k_dies" else f"    def act(self):\n        {act or 'pass'}\n"
        head = "import asyncio, os, subprocess, threading, time\nfrom .base import Turn\n\n\n"
        (package / f"{name}.py").write_text(f'{head}class Spider(Turn):\n    name = "{name}"\n{more}\n{body}')
    (folder / "project" / "turn_settings.py").write_text(SETTINGS)
    (folder / "trawl.toml").write_text(
        f'[groups.turns]\nattributes = {{owner = "turns"}}\nat_once = 1\nfiles = "{folder}/files"\n'
    )


@pytest.mark.usefixtures("no_process_left")
def test_members_take_turns_in_a_process_until_one_leaves_something_behind(tmp_path: Path) -> None:
    write(tmp_path)
    with WatchedSite() as site:
        site.pages = {f"/{name}": Page("<p>a page</p>") for name in ACTS}
        more = {"TRAWL_NODE_CRAWLERS": "1", "TEST_MARK": str(tmp_path / "mark")}
        with project_fleet(tmp_path, "turn_settings", "a_first=0", site.url, **more) as fleet:
            fleet.beat()
            fleet.node()
            run = fleet.trawl("run", "--group", "turns").split()[0]
            store = GroupRuns(fleet.redis.client())
            wait_until(lambda: (found := store.get(run)) is not None and found.state.ended, fleet.said, 120)
            stored = tmp_path / "files" / "turns" / run
            wait_until(lambda: (stored / "manifest.json").exists(), fleet.said, 60)
            members = store.members(run)
        assert {name: (one.verdict, one.items) for name, one in members.items()} == dict.fromkeys(ACTS, ("fine", 1))
        rows = {name[0]: json.loads((stored / f"{name}.jsonl").read_text()) for name in ACTS}
        pids = {name: row["pid"] for name, row in rows.items()}
        assert pids["a"] == pids["b"], "two members in one process"
        assert pids["k"] == pids["l"], "also after a death"
        for name, following in zip("bcdefghij", "cdefghijk", strict=True):
            assert pids[name] != pids[following], f"{following} began in the process that {name} had left unclean"
        assert not any(row["left"] for name, row in rows.items() if name != "c")
        assert [site.paths().count(f"/{name}") for name in ACTS] == [2 if name == "k_dies" else 1 for name in ACTS]
        for name in ACTS:
            log = next((tmp_path / "data" / "logs").glob(f"{name}.*.log")).read_text()
            assert [other for other in ACTS if f"a line of {other}" in log] == [name]
