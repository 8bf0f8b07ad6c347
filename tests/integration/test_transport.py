"""Every way in which an exchange travels, under the real frontier, on an event loop and a real Redis."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import redis
from scrapy.settings import Settings

from redis_components import connection
from redis_components.frontier.frontier import Frontier, FrontierConfig
from redis_components.frontier.messages import NewRequest
from redis_components.frontier.transport import Exchanger, LoopTransport, ThreadTransport
from redis_components.keys import CrawlKeys
from tests.support.processes import wait_until
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer

KEYS = CrawlKeys.for_spider("s")
TIMEOUT_S = 20


class LoopClock:
    """The running event loop as the frontier's clock; it notes the threads in which the frontier is called."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.threads: set[int] = set()

    def now(self) -> float:
        self.threads.add(threading.get_ident())
        return self._loop.time()

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Callable[[], None]:
        return self._loop.call_later(delay_s, call).cancel

    def call_soon_threadsafe(self, call: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(call)


class Process:
    """A crawler process with the given way to travel, in a running loop."""

    def __init__(self, way: str, url: str, *, beat_s: float = 60.0, ttl_s: float = 8.0) -> None:
        settings = Settings({"REDIS_URL": url})
        self.clock = LoopClock()
        self.transport: Exchanger = ThreadTransport(connection.from_settings(settings), self.clock, beat_s=beat_s)
        if way == "loop":
            client = connection.asyncio_client(settings)
            assert client is not None
            self.transport = LoopTransport(client, self.transport)
        self.frontier = Frontier(FrontierConfig(keys=KEYS, owner="one", ttl_s=ttl_s), self.transport, self.clock)

    async def flushed(self) -> None:
        """Return when everything that was told is stored."""
        done = asyncio.Event()
        self.frontier.flush(done.set)
        await asyncio.wait_for(done.wait(), TIMEOUT_S)

    async def end(self) -> None:
        self.frontier.stop()
        if isinstance(self.transport, LoopTransport):
            await self.transport.closed()


@pytest.fixture(params=["loop", "thread"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


async def until(happened: Callable[[], bool], what: str) -> None:
    """Let the loop run until it happened."""
    end = asyncio.get_running_loop().time() + TIMEOUT_S
    while not happened():  # what is waited for is in Redis, which tells nobody
        assert asyncio.get_running_loop().time() < end, f"waited {TIMEOUT_S} s: {what}"
        await asyncio.sleep(0.005)


def test_what_is_told_arrives_and_the_answers_come_in_the_owning_thread(
    way: str, redis_url: str, redis_client: redis.Redis
) -> None:
    async def scenario() -> None:
        process = Process(way, redis_url)
        for number in range(3):
            process.frontier.add_request(NewRequest(b"", "0", b"%d" % number))
        await process.flushed()
        assert process.clock.threads == {threading.get_ident()}
        await process.end()

    run(scenario)
    assert redis_client.zcard(KEYS.ready()) == 3


def test_lost_replies_and_cut_connections_are_applied_once(
    way: str, redis_server: RedisServer, redis_client: redis.Redis
) -> None:
    async def scenario() -> None:
        with Proxy(redis_server.port) as proxy:
            process = Process(way, redis_server.url.replace(f":{redis_server.port}", f":{proxy.port}"))
            await process.flushed()
            for number in range(4):
                if number % 2:
                    proxy.cut()
                else:
                    proxy.swallow = True
                process.frontier.add_item(b"item %d" % number)
                stored = asyncio.create_task(process.flushed())
                await until(lambda: redis_client.llen(KEYS.item_stream()) > number, "the item arrived, its reply may be lost")  # noqa: B023
                proxy.swallow = False
                await stored
            await process.end()

    run(scenario)
    assert redis_client.lrange(KEYS.item_stream(), 0, -1) == [b"item %d" % number for number in range(4)]


def test_a_process_that_computes_for_longer_than_its_time_stays_alive(
    way: str, redis_url: str, redis_client: redis.Redis
) -> None:
    async def scenario() -> None:
        process = Process(way, redis_url, beat_s=0.05, ttl_s=0.4)
        await process.flushed()
        first = redis_client.zscore(KEYS.owners(), "one")
        assert first is not None
        # The loop stands still from here on: only the heart's thread can keep the owner alive.
        wait_until(
            lambda: (redis_client.zscore(KEYS.owners(), "one") or 0) > first + 400, "its time goes on beyond its first end"
        )
        await process.end()

    run(scenario)


def test_nothing_stays_open_after_the_end(way: str, redis_url: str, redis_client: redis.Redis) -> None:
    name = f"ends-{way}"  # parameters of nobody else's: what is shared stays open for the others

    def open_ones() -> int:
        return sum(client["name"] == name for client in redis_client.client_list())

    async def scenario() -> None:
        process = Process(way, f"{redis_url}?client_name={name}")
        await process.flushed()
        assert open_ones()
        await process.end()
        await process.end()  # twice is allowed

    run(scenario)
    wait_until(lambda: not open_ones(), lambda: f"every connection is closed: {redis_client.client_list()}")
    wait_until(lambda: all(t.name != "trawl-exchange" for t in threading.enumerate()), "the thread has ended")


def test_an_error_of_redis_is_told_and_everything_is_kept(
    way: str, redis_url: str, redis_client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        redis_client.set(KEYS.item_stream(), "not a list")
        process = Process(way, redis_url)
        process.frontier.add_item(b"item")
        stored = asyncio.create_task(process.flushed())
        await until(lambda: "trying again" in caplog.text, "the operator is told")
        redis_client.delete(KEYS.item_stream())
        await stored
        await process.end()

    run(scenario)
    assert redis_client.lrange(KEYS.item_stream(), 0, -1) == [b"item"]


class Client(redis.Redis):
    """A client class of the user's."""


@pytest.mark.parametrize(
    "params",
    [
        {"redis_cls": Client},
        {"redis_cls": "tests.integration.test_transport.Client"},
        {"connection_pool": redis.ConnectionPool()},
        {"retry": object()},
        {"a_parameter_of_nobody": 1},
    ],
)
def test_what_only_the_synchronous_client_can_do_goes_by_thread(params: dict[str, Any]) -> None:
    assert connection.asyncio_client(Settings({"REDIS_PARAMS": params})) is None
