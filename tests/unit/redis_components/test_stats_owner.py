"""Values that a process has set are told again under the name that it gets when it was fenced."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from scrapy.utils.test import get_crawler

from redis_components.stats import RedisStatsCollector


def test_a_new_name_is_told_what_was_set_and_no_sum_twice() -> None:
    stats = RedisStatsCollector.from_crawler(get_crawler())
    clock = iter(range(10, 100, 10))
    frontier: Any = SimpleNamespace(owner="one", now=lambda: float(next(clock)))
    stats._frontier = frontier
    stats.set_value("start_time", "now")
    stats.set_value("places", 3)
    stats.inc_value("pages", 5)
    everything = {("set", "start_time", "now"), ("set", "places", "3"), ("add", "pages", "5")}
    assert set(stats._changes(False)) == everything
    assert stats._changes(False) == []
    frontier.owner = "one~1"
    stats.inc_value("pages", 2)
    assert set(stats._changes(False)) == {("set", "start_time", "now"), ("set", "places", "3"), ("add", "pages", "2")}
