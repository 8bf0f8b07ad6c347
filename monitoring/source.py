"""The Redis that the exporter reads: one connection, short waits, and each fault of it as one line."""

from __future__ import annotations

import time
from collections.abc import Mapping

import redis

from forums.overview import Overview, OverviewReader
from redis_components.connection import connect, explain
from redis_components.errors import ConfigError
from redis_components.server.replies import server_time
from redis_components.server.url import impatient, masked

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

    def check(self) -> str | None:
        """Return why Redis cannot be used, in one line; None when it answers."""
        try:
            server_time(self.client)
        except (redis.RedisError, OSError) as error:
            return str(explain(error, self.url))
        return None

    def look(self) -> Overview:
        """Read everything. Never raises because of Redis: see `Overview.failure` and `Overview.unreadable`."""
        started = time.monotonic()
        try:
            return self._reader.read()
        except (redis.RedisError, OSError) as error:
            return Overview(failure=str(explain(error, self.url)), seconds=time.monotonic() - started)
        except ConfigError as error:  # trawl.toml is being edited
            return Overview(failure=str(error), seconds=time.monotonic() - started)
