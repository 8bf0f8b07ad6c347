"""The transport of an exchange to Redis without blocking the reactor: on the event loop where there is one, else in a thread.

The reason for two is in `docs/decisions/0006-transport-on-the-loop.md`.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from typing import Any, Protocol

import redis
import redis.asyncio
from redis.exceptions import AuthenticationError, AuthenticationWrongNumberOfArgsError, MovedError, NoPermissionError

from redis_components.errors import RedisUnavailable
from redis_components.server.scripts import script

logger = logging.getLogger(__name__)


def lasting(error: Exception) -> RedisUnavailable | None:
    """Return the error for an answer that stays the same however often it is asked for; None for one that may pass."""
    text = " ".join(str(error).split())
    if isinstance(error, AuthenticationError | AuthenticationWrongNumberOfArgsError):
        fix = "correct user and password in REDIS_URL or REDIS_PARAMS"
    elif "CROSSSLOT" in text or "in request don't hash to the same slot" in text or isinstance(error, MovedError):
        fix = "this is a node of a Redis Cluster: write redis+cluster://, and REDIS_NAMESPACE = '{name}' for keys of one slot"
    elif "WRONGTYPE" in text:
        fix = "use other keys, or trawl migrate scrapy-redis for a queue of that package"
    elif isinstance(error, NoPermissionError):
        fix = "give the user of REDIS_URL the rights that docs/security.md names"
    elif "DB index" in text:
        fix = "choose a database that this Redis has: CONFIG GET databases"
    else:
        return None
    return RedisUnavailable(f"Redis does not take the first exchange ({type(error).__name__}: {text}): {fix}")


class Clock(Protocol):
    """Time and turns of the thread that owns the frontier: a reactor, an event loop, or a test."""

    def now(self) -> float:
        """Return seconds that never go back."""

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Callable[[], None]:
        """Run `call` after `delay_s` seconds; returns a function that cancels it."""

    def call_soon_threadsafe(self, call: Callable[[], None]) -> None:
        """Run `call` in the owning thread soon; may be called from any thread."""


class Exchanger(Protocol):
    """Carries one exchange at a time."""

    def keep_alive(self, owners_key: str, owner: str, ttl_ms: int) -> None:
        """Beat for `owner` from now on, whenever there is nothing to send."""

    def send(self, keys: dict[str, str | list[str]], args: dict[str, Any], answer: Callable[[Any], None]) -> None:
        """Run `exchange.lua`; later call `answer` in the owning thread with the raw reply or the exception."""

    def close(self) -> None:
        """End after the sent messages are answered; closing twice is allowed."""


class LoopTransport:
    """redis-py's asyncio client on the event loop that Scrapy runs on: no switch of threads in an exchange.

    Only the heartbeat has a separate thread, so that a callback that computes for long does not cost its process the leases.
    """

    def __init__(self, client: redis.asyncio.Redis, heart: ThreadTransport) -> None:
        self._client = client
        self._heart = heart
        self._flight: asyncio.Task[Any] | None = None
        self._end: asyncio.Task[None] | None = None

    def keep_alive(self, owners_key: str, owner: str, ttl_ms: int) -> None:
        """Beat for `owner` from now on."""
        self._heart.keep_alive(owners_key, owner, ttl_ms)

    def send(self, keys: dict[str, str | list[str]], args: dict[str, Any], answer: Callable[[Any], None]) -> None:
        """Run `exchange.lua`; `answer` gets the raw reply or the exception in a later turn of the loop."""

        def answered(task: asyncio.Task[Any]) -> None:
            if not task.cancelled():  # the loop ends: there is no receiver any more
                answer(task.exception() or task.result())

        self._flight = asyncio.ensure_future(script("exchange").run(self._client, keys, args))
        self._flight.add_done_callback(answered)

    def close(self) -> None:
        """Stop the heart at once, and the client after the sent messages are answered."""
        self._heart.close()
        if self._end is None:
            self._end = asyncio.ensure_future(self._disconnect())

    async def _disconnect(self) -> None:
        if self._flight is not None:
            await asyncio.wait([self._flight])
        await self._client.aclose()

    async def closed(self) -> None:
        """Return when the connection is closed, so that the loop may end; only after `close`."""
        if self._end is not None:
            await asyncio.wait([self._end], timeout=1.0)


class ThreadTransport:
    """One daemon thread with one synchronous client, which it gives up at its end: for every reactor, and every way to connect
    that redis-py or a client class of the user's knows.

    While there is nothing to exchange it keeps the owner alive, so that a callback that computes for long does not
    cost its process the leases.
    """

    def __init__(self, client: redis.Redis, clock: Clock, *, beat_s: float) -> None:
        self._client = client
        self._clock = clock
        self._beat_s = beat_s
        self._jobs: queue.SimpleQueue[tuple[dict[str, str | list[str]], dict[str, Any], Callable[[Any], None]] | None] = (
            queue.SimpleQueue()
        )
        self._beat: tuple[str, dict[str, Any]] | None = None
        self._thread = threading.Thread(target=self._run, name="trawl-exchange", daemon=True)
        self._thread.start()

    def keep_alive(self, owners_key: str, owner: str, ttl_ms: int) -> None:
        """Beat for `owner` from now on; the thread reads this once for each beat."""
        self._beat = (owners_key, {"owner": owner, "ttl_ms": ttl_ms})

    def send(self, keys: dict[str, str | list[str]], args: dict[str, Any], answer: Callable[[Any], None]) -> None:
        """Run `exchange.lua` in the thread; `answer` gets the raw reply or the exception, in the owning thread."""
        self._jobs.put((keys, args, answer))

    def close(self) -> None:
        """Let the thread end after the jobs it has."""
        self._beat = None
        self._jobs.put(None)

    def _run(self) -> None:
        try:
            self._work()
        finally:
            del self._client  # not closed: others in this process may share it

    def _work(self) -> None:
        exchange = script("exchange")
        while True:
            try:
                job = self._jobs.get(timeout=self._beat_s)
            except queue.Empty:
                self._send_beat()
                continue
            if job is None:
                return
            keys, args, answer = job
            try:
                reply = exchange(self._client, keys, args)
            except Exception as exc:  # any error: the frontier decides, and sends the same message again
                reply = exc
            try:
                self._clock.call_soon_threadsafe(lambda answer=answer, reply=reply: answer(reply))  # type: ignore[misc]
            except RuntimeError:  # the event loop is closed: there is no receiver any more
                return

    def _send_beat(self) -> None:
        if self._beat is None:
            return
        owners_key, args = self._beat
        try:
            script("heartbeat")(self._client, {"owners": owners_key}, args)
        except Exception as exc:  # any error: without this thread nothing would be sent any more
            logger.debug("heartbeat not sent: %s", exc)  # the next exchange reports it to the operator
