"""Attacks on the exporter: a stranger's name that points to it, and more scrapes than Redis should be read for."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import redis

from fleet_operations.overview import Overview
from monitoring.app import create_app
from monitoring.client_limits import LOOPBACK, allowed_hosts, host_of
from monitoring.source import CachedOverview, Source
from redis_components.errors import ConfigError
from tests.attacks.test_page_clients import served as serving

STRANGERS = (
    "evil.example",
    "127.0.0.1.evil.example",
    "localhost.",
    "",
    "evil.example:9410",
    "10.0.0.1",
    "localhost@evil.example",
)


class Counted(Source):
    """A source that knows how often it looked."""

    looks = 0

    def look(self) -> Overview:
        self.looks += 1
        return super().look()


@contextmanager
def served(source: Source, hosts: frozenset[str]) -> Iterator[int]:
    """The port of an exporter in a thread."""
    with serving(create_app(source, hosts=hosts)) as port:
        yield port


def ask(port: int, host: str | None, path: str = "/metrics") -> tuple[int, str]:
    """Status and body of a request with this Host header."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.putrequest("GET", path, skip_host=True)
        if host is not None:
            connection.putheader("Host", host)
        connection.endheaders()
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_only_requests_that_name_it_are_answered(redis_url: str, redis_client: redis.Redis) -> None:
    source = Counted(redis_url, {"forum_list": 1})
    with served(source, LOOPBACK | {"status.example.com"}) as port:
        for host in ("127.0.0.1", f"127.0.0.1:{port}", "localhost", "LOCALHOST:80", "[::1]:9410", "status.example.com"):
            assert ask(port, host)[0] == 200
        seen = source.looks
        for path in ("/", "/metrics", "/readyz", "/nowhere"):
            for host in (
                "evil.example",
                "127.0.0.1.evil.example",
                "localhost.",
                "",
                "evil.example:9410",
                "10.0.0.1",
                "localhost@evil.example",
            ):
                status, said = ask(port, host, path)
                assert status in (400, 421), host
                assert "trawl" not in said
        assert ask(port, None)[0] in (400, 421)
        assert source.looks == seen, "Redis is not read for them"


def test_many_scrapes_read_redis_once(redis_url: str, redis_client: redis.Redis) -> None:
    source = Counted(redis_url, {"forum_list": 1})
    frozen = CachedOverview(source.look, clock=lambda: 0.0)
    with ThreadPoolExecutor(32) as pool:
        seen = list(pool.map(lambda _: frozen(), range(200)))
    assert source.looks == 1
    assert len({id(one) for one in seen}) == 1


def test_a_reading_is_kept_for_a_second_and_a_failure_not_at_all() -> None:
    now, calls = [0.0], list[int]()

    def look() -> int:
        calls.append(1)
        if len(calls) == 1:
            raise OSError("away")
        return len(calls)

    shared = CachedOverview(look, clock=lambda: now[0])
    with pytest.raises(OSError, match="away"):
        shared()
    assert [shared(), shared()] == [2, 2]
    now[0] = 0.99
    assert shared() == 2
    now[0] = 1.0
    assert shared() == 3


@pytest.mark.parametrize(
    ("header", "host"),
    [
        *[("a:1", "a"), ("[::1]:1", "[::1]"), ("A.b", "a.b"), ("", ""), ("a b", ""), ("a:b", ""), ("a@b", ""), ("a/b", "")],
        *[("[::1", ""), ("a:1:2", ""), ("\x00", "\x00")],
    ],
)
def test_the_name_in_a_host_header(header: str, host: str) -> None:
    assert host_of(header) == host


def test_names_come_from_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_EXPORTER_HOSTS", " exporter, Status.Example.com ,[fe80::1]")
    assert allowed_hosts() - LOOPBACK == {"exporter", "status.example.com", "[fe80::1]"}
    for wrong in ("http://exporter", "exporter:9410", "a b", "*"):
        monkeypatch.setenv("TRAWL_EXPORTER_HOSTS", wrong)
        with pytest.raises(ConfigError, match="TRAWL_EXPORTER_HOSTS"):
            allowed_hosts()


class Told(Source):
    """A source that reads what it was told."""

    view = Overview()

    def look(self) -> Overview:
        return self.view


def test_it_is_ready_while_nothing_needs_attention_and_a_problem_is_one_line_whatever_it_says(redis_url: str) -> None:
    source = Told(redis_url, {"forum_list": 1})
    with served(source, LOOPBACK) as port:
        assert ask(port, "localhost", "/readyz") == (200, "ok\n")
    source = Told(redis_url, {"forum_list": 1})
    source.view = Overview(unreadable={"nodes": "<b>\n\x1b[2J"})
    with served(source, LOOPBACK) as port:
        status, text = ask(port, "localhost", "/readyz")
    assert status == 503
    assert text == "nodes cannot be read (<b>\\n\\x1b[2J): trawl doctor names foreign keys\n"
