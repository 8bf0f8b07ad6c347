"""The exporter as a process: what it serves, how it starts, refuses and stops."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from redis_components.frontier.messages import StatChange
from redis_components.keys import CrawlKeys
from tests.support import warm_start
from tests.support.owner import Owner
from tests.support.processes import none_left, wait_until
from tests.support.redis_server import RedisServer

COMMAND = [sys.executable, "-W", "error", "-m", "monitoring.exporter"]


def _environment(url: str) -> dict[str, str]:
    return {"TRAWL_FLEET": "forum_list=1,forum_detail=2", **os.environ, "TRAWL_REDIS_URL": url}


@contextmanager
def running_exporter(redis_url: str, *, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A running exporter and its port (0: any); killed if it is still there at the end, with everything that it said shown."""
    with warm_start.Popen(
        [*COMMAND, "--port", str(port)],
        env=_environment(redis_url),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            m = re.search(r"http://127\.0\.0\.1:(\d+) ", line)
            assert m, line + process.communicate(timeout=60)[1]
            yield process, int(m[1])
        finally:
            process.kill()


def _get(port: int, path: str) -> tuple[int, str, str]:
    """(status, content type, body)."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.getheader("Content-Type", ""), response.read().decode()
    finally:
        connection.close()


def test_it_serves_metrics_health_and_a_page(redis_server: RedisServer, redis_url: str) -> None:
    owner = Owner(redis_server.client(), "crawler-1", keys=CrawlKeys.for_spider("forum_list")).open()
    owner.frontier.listeners.stats = lambda final: [StatChange("max", "item_scraped_count", "41")]
    owner.add("one")
    owner.advance()
    with running_exporter(redis_url) as (_, port):
        status, kind, text = _get(port, "/metrics")
        assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert 'collector_scraped_item_count{service="forum_list",spider="forum_list"} 41.0' in text.splitlines()
        assert "# TYPE collector_scraped_item_count counter" in text.splitlines()
        assert 'trawl_crawlers_desired{service="forum_detail",spider="forum_detail"} 2.0' in text.splitlines()
        assert _get(port, "/livez")[::2] == (200, "ok\n")
        status, kind, text = _get(port, "/readyz")
        assert (status, kind) == (503, "text/plain; charset=utf-8")
        assert "no crawler is alive: start the fleet with trawl up" in text
        status, kind, text = _get(port, "/")
        assert (status, kind) == (200, "text/html; charset=utf-8")
        assert "forum_detail" in text
        assert _get(port, "/docs")[0] == 404


def test_when_redis_goes_it_says_so_and_when_redis_is_back_it_goes_on() -> None:
    with RedisServer() as server, running_exporter(server.url) as (process, port):
        assert "trawl_redis_up 1.0" in _get(port, "/metrics")[2].splitlines()
        server.stop()
        wait_until(lambda: "trawl_redis_up 0.0" in _get(port, "/metrics")[2], "what was read last is a second old at most", 60)
        status, _, text = _get(port, "/metrics")
        assert status == 200
        names = {line.split(" ")[0] for line in text.splitlines() if not line.startswith("#")}
        assert names == {"trawl_redis_up", "trawl_scrape_duration_seconds"}
        assert "trawl_redis_up 0.0" in text.splitlines()
        status, _, text = _get(port, "/readyz")
        assert status == 503
        assert text.count("\n") == 1
        assert "is not running" in text
        status, _, text = _get(port, "/")
        assert status == 200
        assert "Redis is away" in text
        server.start()
        wait_until(lambda: "trawl_redis_up 1.0" in _get(port, "/metrics")[2].splitlines(), "it reads again", 60)
        process.terminate()
        assert process.communicate(timeout=60)[1] == "", "an outage makes no traceback"


def test_it_starts_before_its_redis_does() -> None:
    with RedisServer() as server:
        server.stop()
        with running_exporter(server.url) as (_, port):
            assert "trawl_redis_up 0.0" in _get(port, "/metrics")[2].splitlines()
            server.start()
            wait_until(lambda: "trawl_redis_up 1.0" in _get(port, "/metrics")[2].splitlines(), "it is well", 60)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_code_0_and_without_a_word(redis_url: str, number: signal.Signals) -> None:
    with none_left(), running_exporter(redis_url) as (process, port):
        assert _get(port, "/livez")[0] == 200
        process.send_signal(number)
        assert process.communicate(timeout=60) == ("", "")
        assert process.returncode == 0


def test_a_port_in_use_is_one_line_and_exit_code_1(redis_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = warm_start.run(
            [*COMMAND, f"--port={port}"],
            env=_environment(redis_url),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr == (
        f"exporter: cannot listen on 127.0.0.1 port {port}: Address already in use; "
        "choose another --port (0 takes any free one) or --host\n"
    )


def test_a_wrong_redis_url_is_one_line_and_exit_code_1() -> None:
    ended = warm_start.run(
        [*COMMAND, "--port=0"],
        env=_environment("http://:secret@127.0.0.1"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert "is not a Redis URL" in ended.stderr
    assert "secret" not in ended.stderr


def test_without_a_url_it_uses_the_projects_own_redis(tmp_path: Path) -> None:
    environment = {name: value for name, value in _environment("").items() if name != "TRAWL_REDIS_URL"}
    environment |= {"TRAWL_DATA_DIR": str(tmp_path), "TRAWL_TEST_PLACE": str(tmp_path)}
    with (
        none_left(("TRAWL_TEST_PLACE", str(tmp_path)), timeout_s=60),
        warm_start.Popen([*COMMAND, "--port=0"], env=environment, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        m = re.search(r":(\d+) ", line)
        assert m, line
        assert _get(int(m[1]), "/livez")[0] == 200
        process.terminate()
        assert process.wait(60) == 0
