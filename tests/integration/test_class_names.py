"""No class of Python stands on a page or in a command's output, whatever is broken."""

from __future__ import annotations

import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from html import unescape
from pathlib import Path

import msgspec
import pytest
import redis

from fleet_operations.overview import OverviewReader
from forums.breaker.probe import probe_sites
from monitoring.forums import pages as of_forums
from monitoring.pages import views
from monitoring.pages.views import Reading
from redis_components.admin.health import Problem
from tests.support.trawl_command import Trawl, commands
from workers.state.holds import Breaker, BreakerState
from workers.state.keys import FleetKeys
from workers.state.registry import Registry
from workers.state.reports import Troubles

CLASS = re.compile(r"\b[A-Z]\w+(Error|Exception)\b")
Answer = Callable[[socket.socket], None]


def reset(one: socket.socket) -> None:
    one.recv(1000)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def nonsense(one: socket.socket) -> None:
    one.recv(1000)
    one.sendall(b"\x00\x01 this is not HTTP\r\n\r\n")


def broken_off(one: socket.socket) -> None:
    one.recv(1000)
    one.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nContent-Type: text/html\r\n\r\nhalf")


def failing(one: socket.socket) -> None:
    one.recv(1000)
    one.sendall(b"HTTP/1.1 500 no\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")


KINDS = {"reset": reset, "nonsense": nonsense, "broken_off": broken_off, "failing": failing, "tls": failing, "refused": failing}


@contextmanager
def site_of(kind: str) -> Iterator[str]:
    """A server that is broken in this way; its address."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]

        def serve() -> None:
            with suppress(OSError):
                while True:
                    with closing(server.accept()[0]) as one, suppress(OSError):
                        KINDS[kind](one)

        if kind == "refused":
            server.close()
        else:
            threading.Thread(target=serve, daemon=True).start()
        yield f"{'https' if kind == 'tls' else 'http'}://127.0.0.1:{port}"


@pytest.fixture
def trawl(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Trawl:
    return commands(redis_url, tmp_path, monkeypatch, capfd)


def pages(client: redis.Redis, site: str) -> dict[str, str]:
    one = Reading(client=client, source="redis", view=OverviewReader(client).read())
    return {
        "sites": of_forums.sites(one),
        "site": of_forums.site(one, site) if site else "",
        "dead": views.dead(one),
        "events": of_forums.events(one),
        "overview": views.overview(one, is_known=True),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_broken_site_is_described_in_words(
    kind: str, trawl: Trawl, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forums.sites.http.fetch.TIMEOUT_S", 2.0)
    with site_of(kind) as url:
        (tmp_path / "sites/example.toml").write_text(
            f'profile = "phpbb"\nbase_url = "{url}"\nforums = ["1"]\nallow_private = true\n[politeness]\nobey_robots = false\n'
        )
        breaker = Breaker(state=BreakerState.OPEN, cause="unreachable", reason="x", since=1.0, kind="list", next_probe_at=1.0)
        redis_client.hset(FleetKeys().breakers(), "example", msgspec.json.encode(breaker))
        probe_sites(redis_client)
        said = {
            "sites new": trawl("sites", "new", url, "--name", "new", "--allow-private", "--contact", "a@example.org"),
            "sites check": trawl("sites", "check", "example", "--live"),
            "read": trawl("read", url),
            "why": trawl("why", f"{url}/viewtopic.php?t=1"),
            "status": trawl("status"),
            "forums": trawl("forums"),
        }
    for name, one in said.items():
        assert not CLASS.search(one.out + one.err), (name, one)
    assert said["sites check"].code == 1
    if kind == "refused":
        assert "refused" in (said["sites new"].err + said["sites new"].out).lower()
    for name, html in pages(redis_client, "example").items():
        assert not CLASS.search(unescape(html)), name


def test_what_processes_report_is_shown_in_words(trawl: Trawl, redis_client: redis.Redis) -> None:
    raw = "scrapy.exceptions.DownloadConnectionRefusedError: Cannot connect to host 127.0.0.1:8765"
    Registry(redis_client).report_error("forum_list/0", raw)
    Troubles(redis_client).report("writer", [Problem(what=f"StorageError: {raw}")])
    redis_client.set(FleetKeys().nodes(), "of another type")
    said = trawl("status")
    assert "download connection refused: Cannot connect to host 127.0.0.1:8765" in said.out.replace("\n", " ").replace("  ", "")
    assert not CLASS.search(said.out + said.err), said
    for name, html in pages(redis_client, "").items():
        assert not CLASS.search(unescape(html)), name
