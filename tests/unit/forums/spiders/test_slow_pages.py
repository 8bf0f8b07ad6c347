"""Pages that take long to be read are counted, and the slowest is named."""

from __future__ import annotations

import logging
from itertools import accumulate
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.settings import Settings
from scrapy.statscollectors import MemoryStatsCollector

from forums.spiders import base


def test_slow_pages_are_counted_and_the_slowest_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    crawler: Any = SimpleNamespace(settings=Settings())
    crawler.stats = MemoryStatsCollector(crawler)
    spider: Any = SimpleNamespace(crawler=crawler)
    clock = accumulate([10.0, 0.049, 1.0, 0.08, 1.0, 0.2, 1.0, 0.09])
    monkeypatch.setattr(base.time, "thread_time", lambda: next(clock))
    with caplog.at_level(logging.INFO):
        for number in range(4):
            with base.noticed(spider, "forum.example", "comments", f"https://forum.example/{number}"):
                pass
    assert crawler.stats.get_stats() == {
        "sites/forum.example/comments/slow": 3,
        "sites/forum.example/comments/slowest_ms": 200,
        "sites/forum.example/comments/slowest_url": "https://forum.example/2",
    }
    assert [record.getMessage() for record in caplog.records] == [
        "https://forum.example/1 took 80 ms of CPU to be read; "
        "further slow pages are in the stats sites/forum.example/comments/slow"
    ]


def test_a_page_that_fails_is_counted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    crawler: Any = SimpleNamespace(settings=Settings())
    crawler.stats = MemoryStatsCollector(crawler)
    clock = accumulate([10.0, 0.3])
    monkeypatch.setattr(base.time, "thread_time", lambda: next(clock))
    with pytest.raises(ValueError, match="no page"), base.noticed(SimpleNamespace(crawler=crawler), "s", "list", "u"):  # type: ignore[arg-type]
        raise ValueError("no page")
    assert crawler.stats.get_value("sites/s/list/slow") == 1
