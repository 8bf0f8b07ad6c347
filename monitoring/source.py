"""The Redis that the exporter reads: one connection, short waits, one reading for many requests; and the answer of `/readyz`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import redis
from fastapi.responses import PlainTextResponse

from fleet_operations.overview import Overview, OverviewReader, problems
from redis_components.connection import connect, explain
from redis_components.errors import ConfigError
from redis_components.server.printable import in_one_line, masked
from redis_components.server.url import impatient

FIND_EVERY_S = 5.0  # between two searches for foreign values: each asks for every field of the fleet's keys
ANSWER_S = 3  # longest wait for Redis; Prometheus waits 10 s for the whole scrape


class Source:
    """Looks at the Redis at `url`. `services` are the spiders to look at, each with its declared size, if known; None: those
    that are declared at the time of the look.

    Raises ConfigError for a URL of another form; nothing is sent before the first look.
    """

    def __init__(self, url: str, services: Mapping[str, int | None] | None) -> None:
        self.url = url
        self.client = connect(impatient(url, ANSWER_S))
        self._reader = OverviewReader(self.client, services, find_every_s=FIND_EVERY_S)

    @property
    def name(self) -> str:
        """The URL without its password."""
        return masked(self.url)

    def look(self) -> Overview:
        """Read everything. Never raises because of Redis: see `Overview.failure` and `Overview.unreadable`."""
        started = time.monotonic()
        try:
            return self._reader.read()
        except (redis.RedisError, OSError) as error:
            return Overview(failure=str(explain(error, self.url)), seconds=time.monotonic() - started)
        except ConfigError as error:  # trawl.toml is being edited
            return Overview(failure=str(error), seconds=time.monotonic() - started)


MAX_AGE_S = 1.0

T = TypeVar("T")


class CachedOverview(Generic[T]):
    """Calls `look` when its result is older than `max_age_s`; concurrent callers wait and share one result."""

    def __init__(
        self, look: Callable[[], T], *, max_age_s: float = MAX_AGE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._look = look
        self._max_age_s = max_age_s
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: tuple[T, float] | None = None

    def __call__(self) -> T:
        """Return the last result, at most `max_age_s` old. Raises the exceptions of `look`, which are not kept."""
        with self._lock:
            if self._seen is None or self._clock() - self._seen[1] >= self._max_age_s:
                self._seen = (self._look(), self._clock())  # when it was there: a slow look is not old at once
            return self._seen[0]


PROBLEMS_SAID = 20


def readiness(view: Overview) -> PlainTextResponse:
    """Return 200 `ok`, or 503 and a line for each thing that does not work, with the next step."""
    grave = [in_one_line(str(one)) for one in problems(view) if one.grave]
    lines = "\n".join(grave[:PROBLEMS_SAID]) or "ok"
    return PlainTextResponse(f"{lines}\n", status_code=503 if grave else 200, headers={"X-Content-Type-Options": "nosniff"})
