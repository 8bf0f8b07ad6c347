"""The fleet's HTTP client against servers that are old, slow, broken, or large."""

from __future__ import annotations

import asyncio
import gzip
import json
import resource
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from scrapy import Request
from scrapy.exceptions import (
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
)
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from tests.support.crawl import crawl
from workers.http import client
from workers.http.client import DownloadHandler, PrivateAddress, allow
from workers.http.public_addresses import Allowance

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def raw(*answers: bytes, then: float = 0) -> Answer:
    """A server of bytes: each connection's requests get these answers; then silence for some seconds, then the end."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            for one in answers:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(one)
            await asyncio.sleep(then)
        finally:
            writer.close()

    return answer


def fetch(answer: Answer, *, times: int = 1, **request: Any) -> Response:
    """The last response of so many requests."""

    async def run() -> Response:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        handler = DownloadHandler(get_crawler(settings_dict={"DOWNLOAD_MAXSIZE": 1000, "TWISTED_REACTOR_ENABLED": False}))
        try:
            for _ in range(times):
                response = await handler.download_request(Request(f"http://127.0.0.1:{port}/a%20b?q=%E9", **request))
            return response
        finally:
            await handler.close()
            server.close()
            await asyncio.sleep(0)  # what is closed ends in the loop's next round

    return asyncio.run(run())


def ok(body: bytes, *headers: bytes) -> bytes:
    return b"\r\n".join([b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *headers, b"", body])


def test_headers_arrive_byte_for_byte() -> None:
    old = (b"Location: /forum/caf\xe9", b"X-Title: \xcc\xfb\xd7\xd3", b"Set-Cookie: a=1", b"Set-Cookie: b=2", b"Empty:")
    response = fetch(raw(ok(b"page", *old)))
    assert response.headers["Location"] == b"/forum/caf\xe9"
    assert response.headers["X-Title"] == b"\xcc\xfb\xd7\xd3"
    assert response.headers.getlist("Set-Cookie") == [b"a=1", b"b=2"]
    assert (response.status, response.body, response.headers["Empty"]) == (200, b"page", b"")


def test_the_request_leaves_as_it_was_written() -> None:
    seen: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        seen.append(head + await reader.readexactly(4))
        writer.write(ok(b""))
        writer.close()

    fetch(answer, method="POST", body=b"x=\xe9!", headers={"X-Two": ["1", "2"], "User-Agent": "trawl"})
    assert seen[0].startswith(b"POST /a%20b?q=%E9 HTTP/1.1\r\n")
    assert seen[0].endswith(b"\r\n\r\nx=\xe9!")
    assert seen[0].count(b"X-Two: ") == 2
    assert b"User-Agent: trawl\r\n" in seen[0]
    assert b"Accept-Encoding" not in seen[0], "what Scrapy does not say is not said"


def test_redirects_and_compression_are_left_to_the_middlewares() -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
    assert fetch(raw(moved)).status == 302
    packed = gzip.compress(b"page")
    assert fetch(raw(ok(packed, b"Content-Encoding: gzip"))).body == packed


def test_a_redirect_is_followed_and_nothing_is_warned_of(redis_url: str, redis_client: redis.Redis, tmp_path: Path) -> None:
    from workers.settings import DOWNLOADER_MIDDLEWARES  # importing it starts the private Redis

    (redirect,) = [path for path in DOWNLOADER_MIDDLEWARES if path.startswith("workers.http.client.")]
    ours = {redirect: 600, "scrapy.downloadermiddlewares.redirect.RedirectMiddleware": None}
    with crawl(redis_url, tmp_path, pages=3) as run:
        run.seed(f"{run.site}/to/1")
        process = run.start(REFERER_ENABLED=False, METAREFRESH_ENABLED=False, DOWNLOADER_MIDDLEWARES=json.dumps(ours))
        assert process.wait(60) == 0, run.log()
        assert run.missing() == ([], [])
        assert "WARNING" not in run.log()


def test_a_server_that_closes_kept_connections_is_asked_again() -> None:
    assert fetch(raw(ok(b"page")), times=3).body == b"page"


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    assert fetch(raw(b"HTTP/1.0 200 OK\r\n\r\nold page")).body == b"old page"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), ResponseDataLossError),
        (raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"), ResponseDataLossError),
        (raw(ok(b"x" * 1001)), DownloadCancelledError),
        (raw(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1001), DownloadCancelledError),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", then=10), DownloadTimeoutError),
        (raw(then=10), DownloadTimeoutError),
    ],
    ids=["half a page", "half a chunked page", "large", "large, no length", "slow body", "silent"],
)
def test_a_broken_answer_is_an_error_that_scrapy_knows(answer: Answer, error: type[Exception]) -> None:
    with pytest.raises(error):
        fetch(answer, meta={"download_timeout": 0.3})


def endless(chunk: bytes) -> Answer:
    """A server that goes on with this as long as somebody reads."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        with suppress(ConnectionError):
            while True:
                writer.write(chunk)
                await writer.drain()

    return answer


def test_some_responses_of_1xx_may_come_first_and_an_endless_row_of_them_is_an_error() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n"
    assert fetch(raw(early * 16 + ok(b"page"), early * 16 + ok(b"again")), times=2).body == b"again"
    for code in (b"100 Continue", b"103 Early Hints"):
        with pytest.raises(DownloadFailedError, match="more than 16 responses of 1xx"):
            fetch(endless(b"HTTP/1.1 " + code + b"\r\n\r\n"), meta={"download_timeout": 30})


def test_nobody_listens() -> None:
    async def run() -> None:
        handler = DownloadHandler(get_crawler(settings_dict={"TWISTED_REACTOR_ENABLED": False}))
        server = await asyncio.start_server(raw(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        try:
            with pytest.raises(DownloadConnectionRefusedError):
                await handler.download_request(Request(f"http://127.0.0.1:{port}/"))
        finally:
            await handler.close()

    asyncio.run(run())


def test_a_place_at_no_site_is_not_fetched_under_scrapys_own_scheduler_either(redis_url: str, tmp_path: Path) -> None:
    with crawl(redis_url, tmp_path, pages=3, spider="starting") as run:
        ours = json.dumps({"forums.sites.http.politeness.AllowedSites": 50})
        memory = {
            "SCHEDULER": "scrapy.core.scheduler.Scheduler",
            "DUPEFILTER_CLASS": "scrapy.dupefilters.RFPDupeFilter",
            "STATS_CLASS": "scrapy.statscollectors.MemoryStatsCollector",
            "ITEM_PIPELINES": "{}",
        }
        process = run.start("-a", f"site={run.site}", DOWNLOADER_MIDDLEWARES=ours, **memory)
        assert process.wait(60) == 0, run.log()
        assert "is at no site" in run.log()
        assert "Traceback" not in run.log()
        assert run.hits() == {}


def test_a_kept_connection_is_not_given_to_who_may_not_have_it() -> None:
    connections: list[object] = []

    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await raw(ok(b"one"), ok(b"two"), ok(b"three"))(reader, writer)

    async def run() -> None:
        listening = await asyncio.start_server(server, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
        handler = DownloadHandler(get_crawler(settings_dict={"ALLOW_PRIVATE_ADDRESSES": False, "TWISTED_REACTOR_ENABLED": False}))

        async def ask(allowance: Allowance) -> bytes:
            request = Request(url)
            allow(request, allowance)
            return (await handler.download_request(request)).body

        try:
            named = Allowance(hosts=frozenset({"127.0.0.1"}))
            assert [await ask(Allowance(everything=True)), await ask(named)] == [b"one", b"two"]
            assert len(connections) == 1, "it was kept"
            with pytest.raises(PrivateAddress, match=r"127\.0\.0\.1 is not a public address"):
                await ask(Allowance())
            with pytest.raises(PrivateAddress):
                await handler.download_request(Request(url))
            assert len(connections) == 1
            assert await ask(named) == b"one", "by a new one"
        finally:
            await handler.close()
            listening.close()
            await asyncio.sleep(0)

    asyncio.run(run())


def test_a_download_without_a_free_descriptor_waits_for_one(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_logged_at", float("-inf"))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def run() -> Response:
        server = await asyncio.start_server(raw(ok(b"page")), "127.0.0.1", 0)
        handler = DownloadHandler(get_crawler(settings_dict={"TWISTED_REACTOR_ENABLED": False}))
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
            request = Request(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
            page = asyncio.ensure_future(handler.download_request(request))
            done, _ = await asyncio.wait([page], timeout=3 * client.AGAIN_S)
            assert not done
            assert "too many open files: downloads wait" in caplog.text
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
            return await page
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
            await handler.close()
            server.close()
            await asyncio.sleep(0)

    assert asyncio.run(asyncio.wait_for(run(), 60)).body == b"page"
