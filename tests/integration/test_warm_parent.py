"""Crawlers that are forked from a warm parent: what is theirs, what ends them, and when another parent is needed."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from redis_components import picklecompat
from redis_components.embedded.child_process import ChildProcess
from tests.support import warm_start
from tests.support.processes import wait_until
from workers.logs.slot_log import SlotLog
from workers.process import forked
from workers.process.exit_kinds import ExitKind
from workers.process.options import CrawlerOptions
from workers.supervision.launcher import LaunchedCrawler, launch

SETTINGS = """
from tests.support.light_scrapy import *
import os
SPIDER_MODULES = ["warm_spiders"]
ITEM_PIPELINES = {"warm_pipelines.Pipeline": 1}
EVALUATED_IN = os.getpid()
"""
PIPELINES = """
import os
IMPORTED_IN = os.getpid()
class Pipeline:
    def process_item(self, item, spider):
        return item
"""
SPIDERS = """
import asyncio, os, random
from pathlib import Path
import scrapy
import warm_pipelines
class Spider(scrapy.Spider):
    name = "warm"
    stays = ""
    secret = ""
    async def start(self):
        pids = self.settings["EVALUATED_IN"], warm_pipelines.IMPORTED_IN, os.getpid()
        self.logger.info("imported by %s; %s; %s; drew %s", *pids, random.random())
        while self.stays:
            await asyncio.sleep(0.05)
        return
        yield
"""

pytestmark = pytest.mark.usefixtures("no_process_left")
Launch = Callable[..., LaunchedCrawler]


@pytest.fixture
def launched(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Launch]:
    for name, text in {"settings": SETTINGS, "pipelines": PIPELINES, "spiders": SPIDERS}.items():
        (tmp_path / f"warm_{name}.py").write_text(text)
    monkeypatch.setattr(ChildProcess, "fork", lambda _, asked, files: warm_start.forked(asked, files, ""))
    environment = {"TRAWL_REDIS_URL": redis_url, "TRAWL_DATA_DIR": str(tmp_path / "data")}
    environment |= {"SCRAPY_SETTINGS_MODULE": "warm_settings", "PYTHONPATH": str(tmp_path)}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(forked, "STARTED_WITHIN_S", 60.0)
    begun: list[LaunchedCrawler] = []

    def begin(**arguments: str) -> LaunchedCrawler:
        log = SlotLog(tmp_path / f"{len(begun)}.log")
        begun.append(launch(CrawlerOptions(spider="warm", alone=True, arguments=arguments), log))
        return begun[-1]

    with subprocess.Popen(["sleep", "1000"]) as owner:
        monkeypatch.setattr(forked, "_owner", owner.pid)
        yield begin
        for one in begun:
            one.close()
        owner.kill()


def said(tmp_path: Path, number: int) -> list[str]:
    """What a crawler's imports and chance were, once it crawls."""

    def line() -> list[str]:
        return [one for one in (tmp_path / f"{number}.log").read_text().splitlines() if "imported by" in one]

    found = wait_until(line, lambda: (tmp_path / f"{number}.log").read_text())
    return found[0].partition("imported by ")[2].split("; ")


def parent_of(crawler: LaunchedCrawler) -> psutil.Process:
    parent = psutil.Process(crawler.pid).parent()
    assert parent is not None
    return parent


def test_a_crawler_has_its_own_imports_chance_and_command_line(launched: Launch, tmp_path: Path) -> None:
    first, second = launched(secret="hunter2"), launched()
    for number, crawler in enumerate((first, second)):
        *pids, _ = said(tmp_path, number)
        assert isinstance(crawler._process, forked.ForkedProcess)
        assert pids == [str(crawler.pid)] * 3, "settings and modules of the project are imported by the crawler itself"
        wait_until(lambda crawler=crawler: crawler.poll() is not None, "it ends")  # type: ignore[misc]
        crawler.pulse()
        assert (crawler.poll(), crawler.announced) == (0, ExitKind.FINISHED)
    assert said(tmp_path, 0)[-1] != said(tmp_path, 1)[-1]


def test_a_crawler_ends_with_its_parent_and_the_next_has_another(launched: Launch, tmp_path: Path) -> None:
    crawler = launched(stays="1", secret="hunter2")
    said(tmp_path, 0)
    line = " ".join(psutil.Process(crawler.pid).cmdline())
    assert f" workers.crawler warm --parent={os.getpid()} " in line
    assert "hunter2" not in line
    parent = parent_of(crawler)
    assert parent.pid != os.getpid()
    parent.kill()
    wait_until(lambda: crawler.poll() is not None, "it ends")
    assert (crawler.poll(), crawler.announced) == (0, ExitKind.STOPPED), "it has finished its pages, as after a signal"
    after = launched(stays="1")
    said(tmp_path, 1)
    assert parent_of(after).pid != parent.pid
    after.kill()
    assert after.poll() == -9


def test_a_supervisor_that_is_gone_ends_its_crawler(launched: Launch, tmp_path: Path) -> None:
    crawler = launched(stays="1")
    said(tmp_path, 0)
    process = psutil.Process(crawler.pid)
    assert isinstance(crawler._process, forked.ForkedProcess)
    crawler._process._connection.close()  # as the kernel does with a dead process's
    wait_until(lambda: not process.is_running(), "it ends")


def test_requests_that_were_given_up_cost_the_others_nothing(launched: Launch, tmp_path: Path) -> None:
    crawler = launched(stays="1")
    said(tmp_path, 0)
    parent = parent_of(crawler)
    assert isinstance(crawler._process, forked.ForkedProcess)
    parent.suspend()  # a busy machine: no request is taken within its time
    with Path(os.devnull).open("rb") as file:
        for _ in range(3):
            with socket.socket(socket.AF_UNIX) as request:
                request.connect(crawler._process._connection.getpeername())
                socket.send_fds(request, [b"\0"], [file.fileno()] * 4)
    parent.resume()
    after = launched(stays="1")
    said(tmp_path, 1)
    assert crawler.poll() is None
    assert {child.pid for child in parent.children()} == {crawler.pid, after.pid}


def test_another_parent_is_made_when_a_module_of_trawl_has_changed(launched: Launch, tmp_path: Path) -> None:
    before = launched(stays="1")
    said(tmp_path, 0)
    file = Path(picklecompat.__file__).with_name("scheduler.py")
    stat = file.stat()
    try:
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
        after = launched(stays="1")
    finally:
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    said(tmp_path, 1)
    assert parent_of(after).pid != parent_of(before).pid
    assert before.poll() is None, "the crawlers of the old parent stay"
    before.kill()
    after.kill()


def test_no_parent_where_it_is_switched_off(launched: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_WARM_START", "0")
    crawler = launched()
    assert psutil.Process(crawler.pid).ppid() == os.getpid()
    wait_until(lambda: crawler.poll() is not None, "it ends")
    assert crawler.poll() == 0
