"""Servers that answer slowly, without end, or with what grows when it is unpacked: each request ends, others go on meanwhile."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import brotli
import psutil
import pytest
from scrapy import Request
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from tests.support.cpu_time import least_cpu_s
from workers.http.client import DownloadHandler

MOST_BYTES = 8 * 1024 * 1024  # as in workers/settings.py
MOST_CPU_S = 3.0  # of one answer and one good page, client and server together
MOST_GROWTH = 64 * 1024 * 1024
PATIENCE_S = 0.5
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
GOOD = OK + b"Content-Length: 4\r\nConnection: close\r\n\r\ngood"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
SLOW = object()  # a pause between two parts


def endless(head: bytes, part: bytes) -> Callable[[], AsyncIterator[bytes | object]]:
    async def parts() -> AsyncIterator[bytes | object]:
        yield head
        while True:
            yield part

    return parts


def drip(head: bytes, part: bytes = b"x") -> Callable[[], AsyncIterator[bytes | object]]:
    async def parts() -> AsyncIterator[bytes | object]:
        yield head
        while True:
            yield part
            yield SLOW

    return parts


def once(answer: bytes) -> Callable[[], AsyncIterator[bytes | object]]:
    async def parts() -> AsyncIterator[bytes | object]:
        yield answer

    return parts


def packed(encoding: bytes, body: bytes) -> Callable[[], AsyncIterator[bytes | object]]:
    return once(OK + b"Content-Encoding: %b\r\nContent-Length: %d\r\n\r\n%b" % (encoding, len(body), body))


ZEROS = gzip.compress(bytes(64 * 1024 * 1024), 1)


def brotli_zeros() -> bytes:
    made = brotli.Compressor(quality=1)
    return b"".join(made.process(bytes(1 << 20)) for _ in range(64)) + made.finish()


def numbered(line: bytes) -> bytes:
    return b"".join(line % number for number in range(3000))


ATTACKS: dict[str, Callable[[], AsyncIterator[bytes | object]]] = {
    "a slow head": drip(b"HTTP/1.1 200 OK\r\nX: "),
    "a slow body": drip(OK + b"Content-Length: 1000000\r\n\r\n"),
    "slow chunks": drip(CHUNKED, b"1\r\nx\r\n"),
    "headers without end": endless(OK, numbered(b"X-%d: y\r\n")),
    "a header without end": endless(OK + b"X: ", b"y" * 65536),
    "cookies": once(OK + numbered(b"Set-Cookie: a%d=" + b"z" * 3000 + b"\r\n") + b"\r\n"),
    "a reason without end": endless(b"HTTP/1.1 200 ", b"z" * 65536),
    "100 without end": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 500),
    "103 without end": endless(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n" * 500),
    "another protocol": drip(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"),
    "HTTP/2": once(b"\0\0\x12\4\0\0\0\0\0" * 100),
    "a body without end": endless(OK + b"\r\n", b"x" * 65536),
    "chunks without end": endless(CHUNKED, b"1\r\nx\r\n" * 1000),
    "a chunk's extension without end": endless(CHUNKED + b"1;", b"a=b;" * 10000),
    "a chunk's size of 100,000 digits": once(CHUNKED + b"f" * 100_000 + b"\r\nx"),
    "trailers without end": endless(CHUNKED + b"0\r\n", b"X: y\r\n" * 1000),
    "a negative length": once(OK + b"Content-Length: -5\r\n\r\nx"),
    "a length of 5,000 digits": once(OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\nx"),
    "two lengths": once(OK + b"Content-Length: 1\r\nContent-Length: 5\r\n\r\nxxxxx"),
    "a length and chunks": once(OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n" + GOOD),
    "gzip": packed(b"gzip", ZEROS),
    "gzip of gzip": packed(b"gzip, gzip", gzip.compress(ZEROS)),
    "500 encodings": packed(b", ".join([b"gzip"] * 500), ZEROS),
    "brotli": packed(b"br", brotli_zeros()),
}


class Server:
    """Answers the path /N with the attack of that number, any other with a good page."""

    def __init__(self) -> None:
        self._names = list(ATTACKS)
        self.answering: set[asyncio.Task[None]] = set()

    def path(self, name: str) -> str:
        return f"/{self._names.index(name)}"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.answering.add(task)
        try:
            path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1][1:].decode()
            attack = ATTACKS[self._names[int(path)]] if path.isdigit() else once(GOOD)
            async for part in attack():
                if isinstance(part, bytes):
                    writer.write(part)
                    await writer.drain()
                else:
                    await asyncio.sleep(PATIENCE_S / 20)
            writer.close()
            await writer.wait_closed()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    async def end(self) -> None:
        """Wait until nobody is answered any more."""
        for task in self.answering:
            task.cancel()
        await asyncio.gather(*self.answering, return_exceptions=True)


@pytest.mark.parametrize("name", ATTACKS)
def test_the_request_ends_and_another_one_is_answered_meanwhile(name: str) -> None:
    crawler = get_crawler(settings_dict={"DOWNLOAD_MAXSIZE": MOST_BYTES, "TWISTED_REACTOR_ENABLED": False})
    server = Server()

    async def run() -> tuple[Response | BaseException, Response]:
        listening = await asyncio.start_server(server.answer, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        handler = DownloadHandler(crawler)
        try:
            attacked = Request(url + server.path(name), meta={"download_timeout": PATIENCE_S})
            download = asyncio.ensure_future(handler.download_request(attacked))
            await asyncio.sleep(0)
            good = await handler.download_request(Request(f"{url}/good", meta={"download_timeout": 60}))
            with suppress(Exception):
                HttpCompressionMiddleware.from_crawler(crawler).process_response(attacked, await download)
            (ended,) = await asyncio.gather(download, return_exceptions=True)
            return ended, good
        finally:
            await handler.close()
            listening.close()
            await server.end()
            await asyncio.sleep(0)  # what is closed ends in the loop's next round

    before = psutil.Process().memory_info().rss
    answers: list[tuple[Response | BaseException, Response]] = []
    assert least_cpu_s(lambda: answers.append(asyncio.run(run())), MOST_CPU_S) < MOST_CPU_S
    ended, good = answers[-1]
    assert psutil.Process().memory_info().rss - before < MOST_GROWTH
    assert good.body == b"good"
    assert isinstance(ended, Response) or type(ended).__module__ in ("scrapy.exceptions", "builtins"), repr(ended)
    assert not isinstance(ended, Response) or len(ended.body) <= MOST_BYTES
