"""`trawl up`: the real services on a real Redis, one of them killed, and Ctrl-C."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis

from cli.commands.up import _resize
from tests.support import warm_start
from tests.support.crawl import link_site
from tests.support.fleet import ROOT
from tests.support.processes import arguments, none_left, wait_until
from workers.state.registry import CrawlerState, Registry

TRAWL = [sys.executable, "-m", "cli.main"]


class Up:
    """A `trawl up` in a session of its own, as in a terminal, with what it said in a file."""

    def __init__(self, environment: dict[str, str], log: Path, *options: str, folder: Path = ROOT) -> None:
        self._log = log
        command = [*TRAWL, "up", "--port-flower", "0", "--port-exporter", "0", *options]
        with log.open("wb") as file:
            self.process = warm_start.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
            )

    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def find(self, pattern: str, timeout_s: float = 60.0) -> re.Match[str]:
        """Wait until it has said something like that."""
        return wait_until(
            lambda: re.search(pattern, self.said()), lambda: f"{pattern} is said; so far:\n{self.said()}", timeout_s
        )

    def service(self, word: str) -> psutil.Process:
        """The one child whose command line has this word."""
        (found,) = (p for p in psutil.Process(self.process.pid).children() if word in arguments(p))
        return found

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


@pytest.fixture
def environment(redis_url: str, tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "TRAWL_REDIS_URL": redis_url,
        "TRAWL_DATA_DIR": str(tmp_path / "data"),
        "TRAWL_FLOWER_AUTH": "me:secret-word",
        "TRAWL_FLEET": "forum_list=1,forum_detail=1",
        "TRAWL_NODE_CRAWLERS": "2",  # each is a process of the pool
    }


@pytest.fixture
def up(environment: dict[str, str], tmp_path: Path) -> Iterator[Up]:
    # By its mark: what a killed `trawl up` leaves hangs on another parent, and would write its node into the next test's Redis.
    with none_left(("TRAWL_DATA_DIR", environment["TRAWL_DATA_DIR"]), timeout_s=60):
        running = Up(environment, tmp_path / "up.log", "--fleet", "forum_list=1,forum_detail=0")
        try:
            yield running
        finally:
            if running.process.poll() is None:
                running.process.kill()
                running.process.wait()


def get(address: str, path: str, login: str | None = None) -> tuple[int, str]:
    """Status and body of a page."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
    try:
        connection.request("GET", path, headers={"Authorization": f"Basic {b64encode(login.encode()).decode()}"} if login else {})
        response = connection.getresponse()
        return response.status, response.read().decode(errors="replace")
    finally:
        connection.close()


def test_up_runs_a_fleet_restarts_what_dies_or_hangs_and_leaves_nothing_after_ctrl_c(
    up: Up, redis_client: redis.Redis, tmp_path: Path
) -> None:
    registry = Registry(redis_client)
    flower = up.find(r"Flower +(http://127\.0\.0\.1:\d+)  user me, the password of TRAWL_FLOWER_AUTH")[1]
    assert "secret-word" not in up.said(), "it would be in the journal"
    exporter = up.find(r"exporter  (http://127\.0\.0\.1:\d+)")[1]
    link = up.find(r"page +(http://127\.0\.0\.1:\d+)(/login\?token=[\w-]+)")

    # a fleet of the size that was asked for
    def crawling() -> list[str]:
        return [r.name for r in registry.crawlers() if r.state is CrawlerState.RUNNING]

    assert wait_until(crawling, lambda: f"a crawler runs:\n{up.said()}", 60) == ["forum_list/0"]
    assert registry.desired() == {"forum_list": 1, "forum_detail": 0}

    # people can look, with the password
    wait_until(lambda: get(exporter, "/metrics")[0] == 200, "the exporter answers", 60)
    wait_until(lambda: get(flower, "/api/workers", "me:secret-word")[0] == 200, "Flower answers who has the password", 60)
    assert get(flower, "/api/workers")[0] == 401
    assert (link[1], get(link[1], link[2])[0]) == (exporter, 303), "logged in, so that the page's buttons act"
    assert not any("secret-word" in part for part in up.service("flower").cmdline()), "`ps` does not show it"

    # what dies is started again
    victim = up.service("monitoring.exporter")
    victim.kill()
    up.find(r"trawl +│ exporter ended \(SIGKILL\); starting it again")
    wait_until(lambda: get(exporter, "/metrics")[0] == 200, "the exporter answers again, at the same address", 60)
    assert up.service("monitoring.exporter").pid != victim.pid

    # what hangs is ended, and started again: its status file gets no line any more
    worker, pids = up.service("worker"), {one.pid for one in registry.crawlers()}
    worker.send_signal(signal.SIGSTOP)
    (file,) = (tmp_path / "data" / "run" / "health").glob(f"worker@*.{worker.pid}")
    wait_until(lambda: worker.status() == psutil.STATUS_STOPPED, "it stands still")
    file.write_text(file.read_text().replace(" 60 ", " 1 ", 1))  # not after a minute
    up.find(r"trawl +│ worker hangs \(nothing was heard of it for 1 s; before: [^)]+\); it is ended")
    up.find(r"trawl +│ worker ended \(SIGKILL\); starting it again")
    assert wait_until(
        lambda: [r for r in registry.crawlers() if r.state is CrawlerState.RUNNING and r.pid not in pids], up.said, 90
    )

    # every line says whose it is, and the tasks of every second are not in it
    up.find(r"(?m)^worker +│ .*launched crawler \d+")
    assert "store_items" not in up.said()

    assert up.end() == 0, up.said()
    assert "(SIGKILL)" not in up.said().rpartition("starting it again")[2], "each ended within the time that it was given"
    assert "everything is stopped" in up.said()
    assert "Traceback" not in up.said()


def test_up_that_is_killed_takes_everything_with_it(up: Up, redis_client: redis.Redis) -> None:
    up.find(r"worker +│ .*launched crawler \d+", 60)
    up.process.kill()  # its fixture sees that nothing is left


def test_up_with_a_port_in_use_starts_nothing_and_says_how_to_choose_another(environment: dict[str, str]) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        command = [*TRAWL, "up", f"--port-flower={taken.getsockname()[1]}"]
        done = warm_start.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "is in use by another program" in done.stderr
    assert "--port-flower 0" in done.stderr


def test_up_refuses_a_fleet_that_cannot_be(environment: dict[str, str]) -> None:
    for fleet, word in (("nope=1", "unknown spider 'nope'"), ("forum_list", "forum_list")):
        command = [*TRAWL, "up", "--port-flower=0", "--port-exporter=0", "--fleet", fleet]
        done = warm_start.run(
            command,
            cwd=ROOT,
            env=environment | {"TRAWL_SITES_DIR": str(ROOT / "demo" / "sites")},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1
        assert word in done.stderr


def test_status_in_another_process_is_what_a_script_can_read(environment: dict[str, str]) -> None:
    done = warm_start.run([*TRAWL, "status", "--json"], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, "no crawler is alive"
    assert json.loads(done.stdout)["running"] is True


SPIDERS = """
import scrapy


class Books(scrapy.Spider):
    name = "books"
    start_urls = ["SITE/1"]

    def parse(self, response):
        yield {"url": response.url}
        yield from response.follow_all(css="a")


class Notes(Books):
    name = "notes"
"""


@pytest.fixture
def project(environment: dict[str, str], tmp_path: Path) -> Iterator[Path]:
    """A Scrapy project that knows nothing of Trawl, in whose folder nothing is declared."""
    del environment["TRAWL_FLEET"]
    environment |= {"PYTHONPATH": str(ROOT), "TRAWL_ALLOW_PRIVATE": "1", "TRAWL_DATA_DIR": str(tmp_path / "shop/data")}
    with link_site(tmp_path, pages=8) as site:
        folder = tmp_path / "shop"
        (folder / "shop").mkdir(parents=True)
        (folder / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
        (folder / "shop/__init__.py").touch()
        (folder / "shop/settings.py").write_text('SPIDER_MODULES = ["shop.spiders"]\nROBOTSTXT_OBEY = False\n')
        (folder / "shop/spiders.py").write_text(SPIDERS.replace("SITE", site))
        yield folder


def test_up_in_a_project_with_nothing_declared_shows_how_to_run_a_spider_and_serves_jobs(
    environment: dict[str, str], project: Path, tmp_path: Path
) -> None:
    with none_left(("TRAWL_DATA_DIR", environment["TRAWL_DATA_DIR"]), timeout_s=60):
        up = Up(environment, tmp_path / "up.log", folder=project)
        try:
            up.find(r"no service is declared; jobs are served")
            up.find(r"trawl job start SPIDER, or for ever: trawl services add SPIDER")
            command = [*TRAWL, "job", "start", "books", "--wait"]
            done = warm_start.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=120, check=False)
            assert (done.returncode, "8 pages" in done.stdout) == (0, True), done.stdout + done.stderr + up.said()
            assert "forum_list" not in up.said()
        finally:
            up.end()


@pytest.mark.parametrize(
    ("fleet", "options", "said"),
    [
        ("boks=2", (), "TRAWL_FLEET: unknown spider 'boks': there are books, notes; did you mean 'books'?"),
        (None, ("--fleet", "boks=2"), "unknown spider 'boks': there are books, notes; did you mean 'books'?"),
    ],
)
def test_a_typo_is_refused_at_once_with_a_suggestion(
    environment: dict[str, str], project: Path, fleet: str | None, options: tuple[str, ...], said: str
) -> None:
    command = [*TRAWL, "up", "--port-flower=0", "--port-exporter=0", *options]
    given = {"TRAWL_FLEET": fleet} if fleet else {}
    done = warm_start.run(command, cwd=project, env=environment | given, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"trawl: {said}\n")


def test_fleet_may_name_any_spider_of_the_project(
    project: Path, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.commands.up.project_spiders", lambda: {"books", "notes"})
    monkeypatch.chdir(project)
    monkeypatch.delenv("TRAWL_FLEET", raising=False)
    monkeypatch.setenv("TRAWL_NODE_CRAWLERS", "8")
    assert _resize(redis_client, "books=2") == {"books": 2}
    assert _resize(redis_client, "books=3,notes=1") == {"books": 3, "notes": 1}
