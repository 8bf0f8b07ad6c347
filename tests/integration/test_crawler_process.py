"""`python -m workers.crawler` as a process: how it ends, what it says, what it leaves."""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest
import redis
from scrapy.utils.test import get_crawler

from redis_components.admin.inspector import snapshot
from redis_components.keys import CrawlKeys
from redis_components.scrapy_glue.engine import config_of, name_owner
from tests.support.crawl import hits_of, link_site
from tests.support.fleet import Program, program, toy_environment
from tests.support.processes import wait_until
from workers.process.exit_kinds import ExitKind
from workers.state.history import Run
from workers.state.keys import FleetKeys
from workers.state.registry import CrawlerState, Registry

Start = Callable[..., AbstractContextManager[Program]]

SLOT, RECORDS = FleetKeys().slot("toy", 0), FleetKeys().crawlers()

pytestmark = pytest.mark.usefixtures("no_process_left")


@pytest.fixture
def run(redis_url: str, tmp_path: Path) -> Start:
    """Start a crawler on the toy project: `with run("toy", "-a", "mode=finish") as crawler`."""

    def start(*arguments: str, url: str = redis_url) -> AbstractContextManager[Program]:
        return program(["-m", "workers.crawler", *arguments], toy_environment(url, tmp_path), tmp_path / "log")

    return start


@pytest.fixture
def registry(redis_client: redis.Redis) -> Registry:
    return Registry(redis_client)


@pytest.fixture
def slow_page() -> Iterator[tuple[str, threading.Event]]:
    """URL of a page that takes 1.5 s, `endless` below it one that does not end, and an event that says that it was asked for."""
    asked, over = threading.Event(), threading.Event()

    class Slow(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.set()
            over.wait(600 if self.path == "/endless" else 1.5)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"at last")

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/", asked
    over.set()
    server.shutdown()
    thread.join()
    server.server_close()


def crawling(registry: Registry) -> bool:
    return any(r.state is CrawlerState.RUNNING and r.pages > 0 for r in registry.crawlers())


def test_a_crawl_that_ends_by_itself_exits_with_0_and_leaves_a_run_and_no_record(
    run: Start, registry: Registry, redis_client: redis.Redis
) -> None:
    with run("toy", "-a", "mode=finish") as crawler:
        assert crawler.wait() == ExitKind.FINISHED.exit_code
        said = crawler.said()
    assert (said.count("Spider opened"), said.count("the crawl is over: finished")) == (1, 1)
    assert registry.crawlers() == []
    begun, ended = map(Run.from_json, redis_client.lrange(FleetKeys().runs(), 0, -1))
    assert begun.id == ended.id
    assert (begun.by, begun.pid, begun.ended_at) == ("hand", crawler.process.pid, None)
    assert (ended.outcome, ended.exit_code, ended.pages, ended.items) == ("finished", 0, 1, 1)


def test_a_crawler_started_by_hand_is_listed_but_holds_no_slot(run: Start, registry: Registry, redis_client: redis.Redis) -> None:
    with run("toy", "-s", "HEARTBEAT_INTERVAL=0.2") as crawler:
        wait_until(lambda: crawling(registry), crawler.said)
        (record,) = registry.crawlers()
        assert record.name == f"toy/hand-{crawler.process.pid}"
        assert record.alive(registry.now())
        assert record.rss_bytes > 10_000_000
        assert not list(redis_client.scan_iter(f"{FleetKeys().prefix}:slot:*"))
        crawler.process.send_signal(signal.SIGINT)
        assert crawler.wait() == 0
    assert registry.crawlers() == []


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["nix"], 2, "trawl: nix: unknown spider 'nix'; there are toy, toy_two"),
        (["toy", "-a", "mode"], 2, "'mode' is not of the form NAME=VALUE"),
        (["toy", "--slot", "1"], 2, "--slot and --token go together"),
        (["toy", "-a", "mode=raise"], 1, "RuntimeError: this spider cannot be made"),
        (["toy", "-a", "mode=start-error"], 1, "this spider cannot start"),
        (["toy", "-a", "mode=sys.exit"], 1, "raised SystemExit (sys.exit)"),
    ],
)
def test_what_cannot_run_says_why(arguments: list[str], code: int, line: str, run: Start) -> None:
    with run(*arguments) as crawler:
        assert crawler.wait() == code
        assert line in crawler.said()


@pytest.mark.parametrize(
    ("url", "line"), [("redis://127.0.0.1:1/0", "is not running"), ("redis://:wrong@{}", "does not accept the password")]
)
def test_a_redis_that_cannot_be_used_is_one_line_and_exit_code_1(url: str, line: str, run: Start, redis_url: str) -> None:
    with run("toy", url=url.format(redis_url.rpartition("@")[2])) as crawler:
        assert crawler.wait() == 1
        assert line in crawler.said()
        assert len(crawler.said().splitlines()) == 1
        assert "wrong" not in crawler.said()


def test_sigterm_lets_the_page_in_flight_finish(run: Start, slow_page: tuple[str, threading.Event]) -> None:
    url, asked = slow_page
    with run("toy", "-a", "mode=fetch", "-a", f"url={url}") as crawler:
        assert asked.wait(60), crawler.said()
        crawler.process.terminate()
        assert crawler.wait() == 0
        assert f"parsed {url}" in crawler.said()
        assert "Closing spider (shutdown)" in crawler.said()


def test_a_second_sigterm_ends_it_at_once(run: Start, slow_page: tuple[str, threading.Event]) -> None:
    url, asked = slow_page
    with run("toy", "-a", "mode=fetch", "-a", f"url={url}endless", "-s", "SHUTDOWN_GRACE=50") as crawler:
        assert asked.wait(60), crawler.said()
        crawler.process.terminate()
        wait_until(lambda: "stopping because it got a signal" in crawler.said(), crawler.said)
        crawler.process.terminate()
        assert crawler.wait() == ExitKind.ABORTED.exit_code
        assert "the grace time is over" not in crawler.said()


def test_what_is_not_finished_in_the_grace_time_is_given_back_unharmed(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    keys = CrawlKeys.for_spider("links")
    environment = toy_environment(redis_url, tmp_path, SCRAPY_SETTINGS_MODULE="tests.support.link_settings")
    command = ["-m", "workers.crawler", "links", "-s", "SHUTDOWN_GRACE=0.3"]
    with link_site(tmp_path, pages=3, latency_s=30) as site:
        redis_client.rpush(keys.start_tasks(), f"{site}/1")
        with program(command, environment, tmp_path / "log") as crawler:
            wait_until(lambda: hits_of(site), crawler.said)
            crawler.process.terminate()
            assert crawler.wait() == ExitKind.ABORTED.exit_code
            assert "exiting with pages in flight: the grace time is over" in crawler.said()
    shot = snapshot(redis_client, "links")
    assert (shot.ready, shot.leased, shot.reclaimed) == (1, 0, 0)


def test_sigterm_while_it_starts_is_not_lost(run: Start) -> None:
    with run("toy") as crawler:
        wait_until(lambda: "Enabled addons" in crawler.said(), crawler.said, every_s=0.001)
        crawler.process.terminate()
        assert crawler.wait() == 0


def test_a_hung_reactor_is_noticed_and_its_stacks_are_logged(run: Start) -> None:
    with run("toy", "-a", "mode=hang", "-s", "WATCHDOG_TIMEOUT=4") as crawler:
        assert crawler.wait() == ExitKind.HUNG.exit_code
        assert "tests/support/toy/spiders.py" in crawler.said()


def test_a_crawler_whose_slot_was_given_to_another_leaves_at_once(
    run: Start, registry: Registry, redis_client: redis.Redis
) -> None:
    slot = registry.acquire("toy", 0, "node-a")
    assert slot is not None
    with run("toy", "--slot", "0", "--token", str(slot.token), "-s", "HEARTBEAT_INTERVAL=0.2") as crawler:
        wait_until(lambda: crawling(registry), crawler.said)
        # As if it had run out; again, should a heartbeat come in between.
        wait_until(
            lambda: redis_client.delete(SLOT, RECORDS) and registry.acquire("toy", 0, "node-b"), "another node has the slot"
        )
        assert crawler.wait() == ExitKind.LOST_SLOT.exit_code
        assert redis_client.exists(SLOT)  # the other's


def test_a_frozen_crawler_that_comes_back_too_late_is_fenced(run: Start, registry: Registry, redis_client: redis.Redis) -> None:
    slot = registry.acquire("toy", 0, "node-a")
    assert slot is not None
    with run("toy", "--slot", "0", "--token", str(slot.token), "-s", "HEARTBEAT_INTERVAL=0.2") as crawler:
        wait_until(lambda: crawling(registry), crawler.said)
        crawler.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: psutil.Process(crawler.process.pid).status() == psutil.STATUS_STOPPED, "it is frozen")
        redis_client.delete(SLOT, RECORDS)
        assert registry.acquire("toy", 0, "node-b")
        crawler.process.send_signal(signal.SIGCONT)
        assert crawler.wait() == ExitKind.LOST_SLOT.exit_code


def test_a_crawler_that_stood_still_for_longer_than_its_leases_live_leaves_though_its_slot_is_free(
    run: Start, registry: Registry
) -> None:
    slot = registry.acquire("toy", 0, "node-a")
    assert slot is not None
    settings = ("-s", "HEARTBEAT_INTERVAL=0.2", "-s", "SCHEDULER_OWNER_TTL=4")
    with run("toy", "--slot", "0", "--token", str(slot.token), *settings) as crawler:
        wait_until(lambda: crawling(registry), crawler.said)
        crawler.process.send_signal(signal.SIGSTOP)
        time.sleep(4.5)  # the case itself
        crawler.process.send_signal(signal.SIGCONT)
        assert crawler.wait() == ExitKind.LOST_SLOT.exit_code
        assert "its leases are others' by now" in crawler.said()


SUPERVISOR_THAT_DIES = """
import json, os, sys, time
from pathlib import Path
from workers.state.registry import Slot
from workers.process.options import CrawlerOptions
from workers.supervision.launcher import launch
from workers.logs.slot_log import SlotLog
slot = Slot(spider="toy", number=0, token=int(sys.argv[1]), owner="node-a")
options = CrawlerOptions(spider="toy", slot=slot, owner="toy/0#owner", settings=json.loads(sys.argv[3]))
crawler = launch(options, SlotLog(Path(sys.argv[2])))
time.sleep(60)
"""


def test_a_crawler_whose_supervisor_is_killed_ends_and_gives_the_slot_back(
    registry: Registry, redis_client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    slot = registry.acquire("toy", 0, "node-a")
    assert slot is not None
    log = tmp_path / "crawler.log"
    command = ["-c", SUPERVISOR_THAT_DIES, str(slot.token), str(log), '{"HEARTBEAT_INTERVAL": "0.2"}']
    with program(command, toy_environment(redis_url, tmp_path, TOY_MODE="browser"), tmp_path / "log") as supervisor:
        wait_until(lambda: crawling(registry), supervisor.said)
        (record,) = registry.crawlers()
        crawler = psutil.Process(record.pid)
        found = wait_until(lambda: re.search(r"^browser: (\d+)$", log.read_text(), re.MULTILINE), supervisor.said)
        browser = psutil.Process(int(found[1]))
        supervisor.process.kill()
        crawler.wait(60)
    assert "its supervisor is gone" in log.read_text()
    wait_until(lambda: not browser.is_running(), lambda: f"the end of {browser} with its crawler", 30)
    (ended,) = map(Run.from_json, redis_client.lrange(FleetKeys().runs(), 0, -1))  # nobody else can tell
    assert (ended.id, ended.outcome, ended.reason) == ("toy/0#owner", "orphaned", "its supervisor is gone")
    assert not redis_client.exists(SLOT)


def test_an_orphan_that_is_stuck_in_c_code_ends_all_the_same(registry: Registry, redis_url: str, tmp_path: Path) -> None:
    slot = registry.acquire("toy", 0, "node-a")
    assert slot is not None
    log = tmp_path / "crawler.log"
    settings = '{"HEARTBEAT_INTERVAL": "0.2", "WATCHDOG_TIMEOUT": "4"}'
    command = ["-c", SUPERVISOR_THAT_DIES, str(slot.token), str(log), settings]
    with program(command, toy_environment(redis_url, tmp_path, TOY_MODE="freeze"), tmp_path / "log") as supervisor:
        wait_until(lambda: "INFO: freeze" in log.read_text(), supervisor.said)
        below = psutil.Process(supervisor.process.pid).children(recursive=True)
        (crawler,) = [one for one in below if "workers.crawler" in one.cmdline()]
        supervisor.process.kill()
        crawler.wait(60)
    assert "tests/support/toy/spiders.py" in log.read_text(), "where it stood"


def test_two_crawls_of_one_process_own_their_leases_each_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_OWNER", "the same")  # once it named the owner of all crawls of a process
    one, two, named = (get_crawler(settings_dict={"REDIS_URL": "redis://127.0.0.1:1"}) for _ in range(3))
    name_owner(named, "toy/0#1.0")
    assert config_of(one).owner != config_of(two).owner
    assert config_of(named).owner == "toy/0#1.0"


def test_a_crawler_by_hand_crawls_alone_and_shows_its_end(run: Start, tmp_path: Path) -> None:
    output = tmp_path / "items.jsonl"
    with run(
        "--alone", "toy", "-a", "mode=finish", "-s", f"FEEDS={json.dumps({str(output): {'format': 'jsonlines'}})}"
    ) as crawler:
        assert crawler.wait() == 0, crawler.said()
    assert output.read_text() == '{"page": "data:,one"}\n'
    assert "Spider closed (finished)" in crawler.said()
