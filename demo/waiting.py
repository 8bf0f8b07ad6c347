"""Waiting in the demo's steps, which are generators that yield whenever the screen may be drawn and never sleep."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import TypeVar

from redis_components.errors import TrawlError

from .progress import Progress

START_TIMEOUT_S = 60.0

T = TypeVar("T")
Step = Generator[None, None, T]


class DemoFailed(TrawlError):
    """A condition was not met in time; the message names it."""


def until(progress: Progress, done: Callable[[], T | None], what: str, timeout_s: float) -> Step[T]:
    """Yield until `done` returns a true value, and return it. Raises DemoFailed after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while True:
        yield  # the figures are read and the screen is drawn here: they are fresh for `done`
        if found := done():
            return found
        if time.monotonic() > deadline:
            logs = f"{progress.processes.folder.shown}/logs"
            raise DemoFailed(f"waited {timeout_s:.0f} s in vain {what}: see the logs in {logs}")
