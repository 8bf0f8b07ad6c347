"""Looking seldom at what is slow to find: a reader that reads often does not wait for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Generic, TypeVar

import redis

T = TypeVar("T")


class Seldom(Generic[T]):
    """Looks at its first call, and then every `every_s` seconds at most, by a thread; 0: at every call."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._seen: T | None = None
        self._due = 0.0  # monotonic
        self._thread: Thread | None = None

    def __call__(self, look: Callable[[], T], guard: Callable[[Callable[[], T]], T | None]) -> T | None:
        """What was seen last. A look of this thread goes through `guard`, which keeps its fault; one of another that fails
        leaves what was seen before.
        """
        if self._seen is None or not self._every_s:
            self._seen = guard(look)
            self._due = time.monotonic() + self._every_s
        elif time.monotonic() >= self._due and not (self._thread and self._thread.is_alive()):
            self._thread = Thread(target=self._again, args=(look,), daemon=True)
            self._thread.start()
        return self._seen

    def _again(self, look: Callable[[], T]) -> None:
        with suppress(redis.RedisError, OSError, ValueError):  # the next look says it
            self._seen = look()
        self._due = time.monotonic() + self._every_s
