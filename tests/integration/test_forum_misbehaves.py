"""Each misbehaviour as it looks on the wire, and what it never touches."""

from __future__ import annotations

import http.client
import json
import select
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from demo.forum.process import ForumProcess

WELL = {"rate": 0, "latency_ms": 0, "error_rate": 0, "throttle_rate": 0, "reset_rate": 0}


@pytest.fixture(scope="module")
def server() -> Iterator[ForumProcess]:
    with ForumProcess(seed=4, forums=1, threads=25) as forum:
        yield forum


@pytest.fixture
def forum(server: ForumProcess) -> Iterator[ForumProcess]:
    """A forum that behaves until the test says otherwise, and again after it."""
    yield server
    server.control(wall="")
    assert server.control(**WELL).items() >= WELL.items()


def test_latency_holds_back_the_whole_answer(forum: ForumProcess) -> None:
    forum.control(latency_ms=2000)

    with _connect(forum) as wire:
        held_back = not select.select([wire], [], [], 0.2)[0]
        answer = _read(wire)

    assert held_back
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")


def test_an_error_is_a_500_and_the_connection_stays(forum: ForumProcess) -> None:
    forum.control(error_rate=1)
    connection = http.client.HTTPConnection(urlsplit(forum.url).netloc, timeout=60)

    for _ in range(2):
        connection.request("GET", "/post/p1")
        response = connection.getresponse()
        assert (response.status, "error" in json.loads(response.read())) == (500, True)
    connection.close()


def test_a_throttled_page_is_a_429_that_says_how_long_to_wait(forum: ForumProcess) -> None:
    forum.control(throttle_rate=1)

    with _connect(forum) as wire:
        answer = _read(wire)

    head = answer.split(b"\r\n\r\n")[0]
    assert head.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
    assert b"\r\nRetry-After: 1" in head


def test_a_reset_cuts_the_connection_in_the_middle_of_the_body(forum: ForumProcess) -> None:
    forum.control(reset_rate=1)
    received = b""

    with _connect(forum) as wire, pytest.raises(ConnectionResetError):
        while chunk := wire.recv(65_536):
            received += chunk

    # What arrived before the reset may be thrown away by the kernel, but never is it the whole page.
    head, _, body = received.partition(b"\r\n\r\n")
    if head:
        promised = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        assert len(body) < promised


def test_the_truth_the_stats_and_the_control_never_misbehave(forum: ForumProcess) -> None:
    forum.control(error_rate=0.4, reset_rate=0.6, latency_ms=60_000)  # longer than the client waits

    for _ in range(20):
        forum.truth()
        forum.stats()
    assert forum.control(rate=0)["reset_rate"] == 0.6


def test_the_stats_count_every_page_by_kind_and_status(forum: ForumProcess) -> None:
    before = forum.stats()["served"].get("post", {})
    forum.control(error_rate=0.3, throttle_rate=0.3)

    statuses = []
    connection = http.client.HTTPConnection(urlsplit(forum.url).netloc, timeout=60)
    for _ in range(100):
        connection.request("GET", "/post/p1")
        response = connection.getresponse()
        response.read()
        statuses.append(str(response.status))
    connection.close()

    after = forum.stats()["served"]["post"]
    assert {s: after[s] - before.get(s, 0) for s in ("200", "429", "500")} == {
        s: statuses.count(s) for s in ("200", "429", "500")
    }
    assert all(statuses.count(status) > 10 for status in ("200", "429", "500"))


def test_two_forums_of_one_seed_spoil_the_same_pages() -> None:
    def fates(seed: int) -> list[int]:
        with ForumProcess(seed=seed, forums=1, threads=1) as forum:
            forum.control(error_rate=0.5)
            connection = http.client.HTTPConnection(urlsplit(forum.url).netloc, timeout=60)
            statuses = []
            for _ in range(40):
                connection.request("GET", "/post/p1")
                response = connection.getresponse()
                response.read()
                statuses.append(response.status)
            connection.close()
            return statuses

    assert fates(8) == fates(8)


def _connect(forum: ForumProcess) -> socket.socket:
    """A connection on which one list page has been asked for, as the last one."""
    address = urlsplit(forum.url)
    wire = socket.create_connection((address.hostname or "", address.port or 0), timeout=60)
    wire.sendall(b"GET /list/f1/1 HTTP/1.1\r\nHost: forum\r\nConnection: close\r\n\r\n")
    return wire


def _read(wire: socket.socket) -> bytes:
    answer = b""
    while chunk := wire.recv(65_536):
        answer += chunk
    return answer


def _body(forum: ForumProcess) -> bytes:
    with _connect(forum) as wire:
        return _read(wire).partition(b"\r\n\r\n")[2]


def test_a_wall_answers_200_with_a_form_or_nothing_and_spares_what_it_is_not_for(forum: ForumProcess) -> None:
    def page(path: str) -> tuple[int, str, bytes]:
        connection = http.client.HTTPConnection(urlsplit(forum.url).netloc, timeout=60)
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, response.headers["Content-Type"], body

    usual = page("/list/f1/1")
    forum.control(wall="login", wall_page="list")
    assert page("/list/f1/1")[:2] == page("/html/f/f1")[:2] == (200, "text/html; charset=utf-8")
    assert b'type="password"' in page("/list/f1/1")[2]
    assert b'"id":"p1"' in page("/post/p1")[2]
    forum.control(wall="captcha", wall_page="")
    assert all(b"captcha" in page(path)[2] for path in ("/", "/list/f1/1", "/post/p1", "/comment/p1/1", "/html/t/p1"))
    forum.control(wall="empty", wall_forum="f1")
    assert page("/list/f1/1") == (200, "application/json", b'{"page": 1, "pages": 1, "threads": []}')
    assert b'"comments": []' in page("/comment/p1/1")[2]
    assert b'"forums":[{' in page("/forums")[2], "the index is of no forum"
    forum.control(wall_forum="f2")
    assert page("/list/f1/1") == usual
    assert forum.stats()["served"]["list"]["wall"] == 4
