"""Cache of a slow reading, refreshed in a thread, so that a frequent reader does not wait for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Generic, TypeVar

import redis

T = TypeVar("T")


class Seldom(Generic[T]):
    """Reads at its first call, and then in a thread every `every_s` seconds at most; 0: at every call."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._seen: T | None = None
        self._due = 0.0  # monotonic
        self._thread: Thread | None = None

    def __call__(self, look: Callable[[], T], guard: Callable[[Callable[[], T]], T | None]) -> T | None:
        """Return the last result. A reading in this thread goes through `guard`, which stores its error; a failed one in the
        other thread leaves the last result.
        """
        if self._seen is None or not self._every_s:
            self._seen = guard(look)
            self._due = time.monotonic() + self._every_s
        elif time.monotonic() >= self._due and not (self._thread and self._thread.is_alive()):
            self._thread = Thread(target=self._again, args=(look,), daemon=True)
            self._thread.start()
        return self._seen

    def _again(self, look: Callable[[], T]) -> None:
        with suppress(redis.RedisError, OSError, ValueError):  # the next reading reports it
            self._seen = look()
        self._due = time.monotonic() + self._every_s
