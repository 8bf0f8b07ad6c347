"""Scrapy's stats, shared: each process keeps its own in memory, and what changed travels with an exchange at most once a second.

`inc_value` costs nothing extra; LogStats, PeriodicLog and CloseSpider read the process's own values as ever.
"""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from scrapy import Spider, signals
from scrapy.statscollectors import MemoryStatsCollector

from . import connection, defaults
from .frontier.messages import StatChange
from .keys import filled
from .scrapy_glue.engine import frontier_of, is_one_page, is_refused, refusing
from .server.names import crawl_name, namespace_of, prefixed
from .utils import bytes_to_str

if TYPE_CHECKING:
    import redis
    from scrapy.crawler import Crawler

    from .frontier.frontier import Frontier

INTERVAL_S = 1.0
_NEVER = object()


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


class RedisStatsCollector(MemoryStatsCollector):
    """Sums of counters, maxima and minima over all processes in the hash `STATS_KEY`; values that were set, in a hash for each
    process as long as it crawls. The values of the last process are in `STATS_KEY` when it has left; `start_time` there is the
    first one's.
    """

    # Scrapy wraps every method at every look-up, to warn of a deprecated argument. That is 1.6 µs of each count, and a page makes
    # a dozen: 2 % of a crawl.
    __getattribute__ = object.__getattribute__

    def __init__(self, crawler: Crawler, spider: Spider | None = None) -> None:
        super().__init__(crawler)
        self.spider = spider
        self.spider_name = crawl_name(spider or crawler.spidercls) or None
        self.stats_key = crawler.settings.get("STATS_KEY", defaults.STATS_KEY)
        self._kinds: dict[str, str] = {}
        self._sent: dict[str, Any] = {}
        self._sent_at = 0.0
        self._frontier: Frontier | None = None
        self._owner = ""
        crawler.signals.connect(self._share, signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Return the collector of a crawl."""
        return cls(crawler)

    @classmethod
    def from_spider(cls, spider: Spider) -> Self:
        """Return the collector for the spider's crawler."""
        return cls(spider.crawler)

    @cached_property
    def server(self) -> redis.Redis:
        """A client for `shared_stats`; the exchange has its own."""
        return connection.from_settings(self._crawler.settings)

    def _get_key(self, spider: Spider | None = None) -> str:
        """Return the key of the shared stats, a hash."""
        known = spider or self.spider
        key = filled(self.stats_key, crawl_name(known) if known else self.spider_name or "scrapy")
        return prefixed(key, namespace_of(self._crawler.settings))

    def shared_stats(self, spider: Spider | None = None) -> dict[str, Any]:
        """Return the stats over all processes, as Redis has them now; numbers as numbers. Waits for Redis."""
        raw: Any = self.server.hgetall(self._get_key(spider))
        return {bytes_to_str(field): _number(bytes_to_str(value)) for field, value in raw.items()}

    def clear_stats(self, spider: Spider | None = None) -> None:  # noqa: ARG002
        """Start from zero in this process; its share of the shared stats stays there."""
        super().clear_stats()
        self._kinds.clear()
        self._sent.clear()

    def set_stats(self, stats: dict[str, Any], spider: Spider | None = None) -> None:  # noqa: ARG002
        """Replace all stats of this process."""
        self._stats = dict(stats)

    def set_value(self, key: str, value: Any, spider: Spider | None = None) -> None:  # noqa: ARG002
        """Set a value of this process."""
        self._kinds[key] = "set"
        super().set_value(key, value)

    def max_value(self, key: str, value: Any, spider: Spider | None = None) -> None:  # noqa: ARG002
        """Keep the largest value, here and over all processes."""
        self._kinds[key] = "max"
        super().max_value(key, value)

    def min_value(self, key: str, value: Any, spider: Spider | None = None) -> None:  # noqa: ARG002
        """Keep the smallest value, here and over all processes."""
        self._kinds[key] = "min"
        super().min_value(key, value)

    def _share(self) -> None:
        if is_refused(self._crawler) or is_one_page(self._crawler.spider):
            return
        with refusing(self._crawler):
            self._frontier = frontier_of(self._crawler)
        self._frontier.listeners.stats = self._changes

    def _changes(self, final: bool) -> list[StatChange]:
        """Return the changes since the last call, at most once a second and at the end, for the next exchange."""
        assert self._frontier is not None
        now = self._frontier.now()
        if now - self._sent_at < INTERVAL_S and not final:
            return []
        self._sent_at = now
        if self._frontier.owner != self._owner:  # fenced: under the new name nothing is known of what was set
            self._owner = self._frontier.owner
            kinds = self._kinds
            self._sent = {key: v for key, v in self._sent.items() if kinds.get(key) != "set" and type(v) in (int, float)}
        changes = []
        for key, value in self._stats.items():
            before = self._sent.get(key, _NEVER)
            if before == value and type(before) is type(value):
                continue
            self._sent[key] = value
            changes.append(self._change(key, before, value))
        return changes

    def _change(self, key: str, before: Any, value: Any) -> StatChange:
        kind = self._kinds.get(key)
        if type(value) in (int, float) and kind in ("max", "min"):
            return StatChange(kind, key, repr(value))  # type: ignore[arg-type]  # one of the two
        if type(value) in (int, float) and kind is None:
            known = before if type(before) in (int, float) else 0
            return StatChange("add", key, repr(value - known))
        return StatChange("set", key, repr(value.timestamp()) if isinstance(value, datetime) else str(value))
