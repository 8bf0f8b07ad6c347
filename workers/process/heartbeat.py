"""Renews a slot in a separate thread, so that the supervising thread never waits for Redis."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

import redis

from workers.state.registry import Renewal, SlotCommand

PERIOD_S = 2.0
MAX_ERRANDS = 100  # more of them wait only when Redis is away for long; the oldest are dropped

logger = logging.getLogger(__name__)


class Heartbeat:
    """Calls `beat` every `period_s` in a separate thread and keeps the last answer.

    `beat` renews the slot (`Registry.renew`) and returns the answer, or None without a report: a process that is not well lets
    its slot run out. Redis may be slow or away: then the last answer stands, and the beat is tried again. Other messages to
    Redis are errands: also sent from this thread, in order, and repeated until Redis has accepted them. `on_news` is called, in
    this thread, when an answer differs from the last.
    """

    def __init__(
        self, beat: Callable[[], Renewal | None], *, period_s: float = PERIOD_S, on_news: Callable[[], object] = lambda: None
    ) -> None:
        self._beat = beat
        self._on_news = on_news
        self._period_s = period_s
        self._wake = threading.Event()
        self._errands: deque[Callable[[], object]] = deque(maxlen=MAX_ERRANDS)
        self._ended = False
        self._failing = False
        self._last = Renewal(held=True)
        self._answered_at = self._turned_at = time.monotonic()
        # A daemon: a Redis that hangs must not keep the process from its end.
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    @property
    def lost(self) -> bool:
        """True if the slot belongs to another process now."""
        return not self._last.held

    @property
    def order(self) -> SlotCommand | None:
        """The fleet's order to the holder of the slot."""
        return self._last.order

    @property
    def unanswered_s(self) -> float:
        """Seconds since the last answered beat, the last proof that this process holds the slot."""
        return time.monotonic() - self._answered_at

    @property
    def turned_at(self) -> float:
        """Time of the thread's last turn (monotonic), also without an answer: if it is long ago, the thread hangs or
        has ended.
        """
        return self._turned_at

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float = 1.0) -> None:
        """Stop beating; wait at most `timeout_s` for the beat under way and for the errands that are left."""
        self._ended = True
        self._wake.set()
        self._thread.join(timeout_s)

    def now(self) -> None:
        """Beat at once: something has changed."""
        self._wake.set()

    def errand(self, errand: Callable[[], object]) -> None:
        """Run this soon, once, before the next beat."""
        self._errands.append(errand)
        self._wake.set()

    def _run(self) -> None:
        while not self._ended:
            self._try(self._once)
            self._turned_at = time.monotonic()
            self._wake.wait(self._period_s)
            self._wake.clear()
        self._try(self._run_errands)

    def _once(self) -> None:
        self._run_errands()
        asked_at = time.monotonic()
        answer = self._beat()
        if answer is not None:
            before, self._last, self._answered_at = self._last, answer, asked_at
            if answer != before:
                self._on_news()

    def _run_errands(self) -> None:
        while self._errands:
            self._errands[0]()
            self._errands.popleft()

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except redis.RedisError as error:
            if not self._failing:  # one line when it begins, one when it is over
                how = "refuses" if isinstance(error, redis.ResponseError) else "does not answer"
                logger.warning("heartbeat failed, Redis %s; retrying every %.1f s: %s", how, self._period_s, error)
            self._failing = True
        else:
            if self._failing:
                logger.warning("Redis answers again")
            self._failing = False
