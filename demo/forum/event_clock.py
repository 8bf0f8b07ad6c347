"""Runs events in the forum at a given rate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

TICK_S = 0.02


async def run_events(rate: Callable[[], float], advance: Callable[[], None]) -> None:
    """Call `advance` `rate()` times per second, until cancelled.

    `rate` is called at each tick, so that a change applies at once and 0 freezes. After a stall (a busy machine, a stopped
    process) at most one second's events are made up for, to avoid a flood.
    """
    loop = asyncio.get_running_loop()
    due, last = 0.0, loop.time()
    while True:
        await asyncio.sleep(TICK_S)
        now = loop.time()
        due += rate() * min(now - last, 1.0)
        last = now
        for _ in range(int(due)):
            advance()
        due -= int(due)
