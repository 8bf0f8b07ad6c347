"""Attacks on the exporter's and the API's server: connections that say nothing, say it slowly or read slowly, many searches
at once, and a page of others that makes the operator's browser ask.
"""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import redis

from forums.storage.read.search import Results
from monitoring import client_limits
from monitoring.app import create_app
from monitoring.client_limits import LOOPBACK
from monitoring.exporter import listen, server_of
from monitoring.forums import data, search
from monitoring.source import Source
from tests.support.processes import wait_until

MOST = 20
REQUEST = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n"
UNFINISHED = {
    "nothing": b"",
    "part of a line": b"GET /li",
    "part of a head": REQUEST + b"X-A: ",
    "part of a body": b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\ntoken=",
    "a chunk without end": b"POST /login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ntoken",
    "a second request": REQUEST + b"\r\n" + REQUEST,
    "a body for who reads none": b"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nx",
}
Port = int


@contextmanager
def served(app: Any) -> Iterator[Port]:
    with listen("127.0.0.1", 0) as listener:
        server = server_of(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()


@pytest.fixture
def port(redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> Iterator[Port]:
    monkeypatch.setattr(client_limits, "MOST", MOST)
    with served(create_app(Source(redis_url, {"forum_list": 1}), hosts=LOOPBACK)) as found:
        yield found


def status(port: Port, path: str = "/livez", **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        return connection.getresponse().status
    finally:
        connection.close()


def is_ended(connection: socket.socket) -> bool:
    """Once all that was answered is read."""
    try:
        while connection.recv(65_536):
            pass
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize("sent", UNFINISHED.values(), ids=UNFINISHED)
def test_who_does_not_finish_a_request_keeps_nobody_from_an_answer(port: Port, sent: bytes) -> None:
    with ExitStack() as stack:
        held = []
        for _ in range(3 * MOST):
            held.append(stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60)))
            held[-1].sendall(sent)
        assert status(port) == 200
        assert all(is_ended(one) for one in held[:MOST]), "who waits longest goes first"


@pytest.mark.parametrize("sent", UNFINISHED.values(), ids=UNFINISHED)
def test_a_request_that_does_not_come_to_its_end_is_ended(port: Port, sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_limits, "REQUEST_S", 0.2)
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(sent)
        assert is_ended(connection)


def test_a_request_that_comes_drop_by_drop_has_no_longer(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_limits, "REQUEST_S", 0.5)
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(REQUEST)

        def dropped() -> bool:
            try:
                connection.sendall(b"X: y\r\n")
            except OSError:
                return True
            return False

        wait_until(dropped, "the server ends it", 30, every_s=0.02)


def test_who_does_not_read_an_answer_is_left(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_limits, "READ_S", 0.2)
    ended = threading.Event()

    async def large(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * 100_000_000})

    class Watched(client_limits.BoundedConnection):
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            ended.set()

    monkeypatch.setattr(client_limits, "BoundedConnection", Watched)
    with served(large) as port, socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(REQUEST + b"\r\n")
        assert ended.wait(30)


def test_searches_leave_threads_for_everything_else(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, at_work = threading.Event(), threading.Semaphore(0)

    def slow(*_: object, **__: object) -> Results:
        at_work.release()
        assert go_on.wait(60)
        return Results([])

    monkeypatch.setattr(client_limits, "MOST", 200)
    monkeypatch.setattr(search, "find", slow)
    monkeypatch.setattr(data, "stored_data", lambda _: ExitStack())
    codes: list[int] = []
    threads = [threading.Thread(target=lambda: codes.append(status(port, "/search?q=word"))) for _ in range(60)]
    try:
        for one in threads:
            one.start()
        for _ in range(search.MOST_AT_ONCE):
            assert at_work.acquire(timeout=60)
        wait_until(lambda: len(codes) >= 60 - search.MOST_AT_ONCE, "the others are told at once", 60)
        assert status(port, "/metrics") == 200
    finally:
        go_on.set()
        for one in threads:
            one.join(60)
    assert codes == [200] * 60


LOADED = {
    "a picture of a foreign page": ("cross-site", "no-cors", "image", 403),
    "its frame": ("cross-site", "navigate", "iframe", 403),
    "a script of a neighbour": ("same-site", "cors", "empty", 403),
    "a link": ("cross-site", "navigate", "document", 200),
    "the page itself": ("same-origin", "cors", "empty", 200),
    "a typed address": ("none", "navigate", "document", 200),
}


@pytest.mark.parametrize(("site", "mode", "dest", "code"), LOADED.values(), ids=LOADED)
def test_what_a_foreign_page_loads_is_refused(port: Port, site: str, mode: str, dest: str, code: int) -> None:
    assert status(port, "/metrics", Sec_Fetch_Site=site, Sec_Fetch_Mode=mode, Sec_Fetch_Dest=dest) == code
    assert status(port, "/metrics") == 200, "Prometheus says nothing of this"
