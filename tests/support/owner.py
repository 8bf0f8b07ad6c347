"""Crawler processes without Scrapy, for tests of the frontier: the real `Frontier` on the real script and a real Redis, moved
by hand.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Any

import redis

from redis_components.frontier.frontier import Frontier, FrontierConfig
from redis_components.frontier.messages import NO_FILTER, NewRequest
from redis_components.keys import CrawlKeys
from redis_components.server.scripts import script

KEYS = CrawlKeys.for_spider("s")


class HandClock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.time = 0.0
        self._ticket = itertools.count()
        self._calls: list[tuple[float, int, Callable[[], None]]] = []

    def now(self) -> float:
        return self.time

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Callable[[], None]:
        entry = (self.time + delay_s, next(self._ticket), call)
        heapq.heappush(self._calls, entry)

        def cancel() -> None:
            if entry in self._calls:
                self._calls.remove(entry)
                heapq.heapify(self._calls)

        return cancel

    def call_soon_threadsafe(self, call: Callable[[], None]) -> None:
        call()

    def advance(self, seconds: float) -> None:
        """Run everything that is due within `seconds`, in order."""
        end = self.time + seconds
        while self._calls and self._calls[0][0] <= end:
            self.time, _, call = heapq.heappop(self._calls)
            call()
        self.time = end


class DirectExchanger:
    """Runs the real script at once. `lose_replies` and `lose_requests` do to the next exchanges what a network does; after
    `cut_after` more exchanges nothing gets through any more.
    """

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self.lose_replies = 0
        self.lose_requests = 0
        self.cut_after: int | None = None
        self.closed = False

    def keep_alive(self, owners_key: str, owner: str, ttl_ms: int) -> None:
        """The clock stands still: nobody's time runs out."""

    def send(self, keys: dict[str, str | list[str]], args: dict[str, Any], answer: Callable[[Any], None]) -> None:
        if self.cut_after is not None:
            if not self.cut_after:
                answer(redis.ConnectionError("the connection is cut"))
                return
            self.cut_after -= 1
        if self.lose_requests:
            self.lose_requests -= 1
            answer(redis.ConnectionError("the request was lost"))
            return
        try:
            reply = script("exchange")(self.client, keys, args)
        except redis.RedisError as exc:
            answer(exc)
            return
        if self.lose_replies:
            self.lose_replies -= 1
            answer(redis.ConnectionError("the reply was lost"))
            return
        answer(reply)

    def close(self) -> None:
        self.closed = True


class Owner:
    """One crawler process, as the frontier sees it."""

    def __init__(self, client: redis.Redis, name: str, **config: Any) -> None:
        self.clock = HandClock()
        self.exchanger = DirectExchanger(client)
        self.frontier = Frontier(FrontierConfig(keys=config.pop("keys", KEYS), owner=name, **config), self.exchanger, self.clock)
        self.duplicates: list[bytes] = []
        self.fenced = 0
        self.frontier.listeners.duplicate = self.duplicates.append
        self.frontier.listeners.fenced = self._fenced

    def _fenced(self) -> None:
        self.fenced += 1

    def open(self) -> Owner:
        self.frontier.open()
        self.advance()
        return self

    def advance(self, seconds: float = 0.5) -> None:
        """Let the process live for a while: several exchanges."""
        self.clock.advance(seconds)

    def add(self, payload: str, *, priority: int = 0, fingerprint: str | None = None, dont_filter: bool = False) -> None:
        mark = NO_FILTER if dont_filter else self.frontier.config.filter.entry((fingerprint or payload).encode())
        self.frontier.add_request(NewRequest(mark, str(-priority), payload.encode()))

    def return_unsent(self, lease_id: str) -> None:
        """Give a lease back that was not sent, as `Page.release` does."""
        self.frontier.free_time(lease_id)
        self.frontier.release(lease_id)

    def take(self) -> tuple[str, str] | None:
        """(lease id, payload) of the next request, after as many exchanges as it needs."""
        lease = self.frontier.take()
        if lease is None:
            self.advance()
            lease = self.frontier.take()
        return (lease.id, lease.data.decode()) if lease else None

    def take_all(self) -> list[str]:
        """Payloads in the order in which they are leased; their leases stay open."""
        taken = []
        while (lease := self.take()) is not None:
            taken.append(lease[1])
        return taken

    def take_tasks(self, number: int = 10) -> dict[str, str]:
        """Lease id of each start task that one wish brings, in their order."""
        self.frontier.want_tasks(number)
        self.advance()
        taken = {}
        while (task := self.frontier.take_task()) is not None:
            taken[task.data.decode()] = task.id
        return taken

    def close(self) -> None:
        """Leave as SIGTERM does it."""
        self.frontier.close(lambda: None)
        self.advance()
        self.frontier.leave(lambda: None)
        self.advance()
