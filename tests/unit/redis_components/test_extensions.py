"""The garbage collector is tuned when the engine starts, and only where the setting says so."""

from __future__ import annotations

import subprocess
import sys

import pytest
from scrapy.exceptions import NotConfigured
from scrapy.utils.test import get_crawler

from redis_components.extensions import GarbageCollection

SCRIPT = """
import gc
from scrapy import signals
from scrapy.utils.test import get_crawler
from redis_components.extensions import GarbageCollection
crawler = get_crawler(settings_dict={"GC_THRESHOLD": [50_000, 40, 30]})
extension = GarbageCollection.from_crawler(crawler)
print(gc.get_threshold(), gc.get_freeze_count() > 0)
crawler.signals.send_catch_log(signals.engine_started)
print(gc.get_threshold(), gc.get_freeze_count() > 1000)
"""


@pytest.mark.processes
def test_it_freezes_what_is_there_and_sets_the_thresholds_when_the_engine_starts() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["(700, 10, 10) False", "(50000, 40, 30) True"]


@pytest.mark.parametrize("value", [[], [1, 2], None])
def test_without_three_integers_it_is_switched_off(value: object) -> None:
    with pytest.raises(NotConfigured):
        GarbageCollection.from_crawler(get_crawler(settings_dict={"GC_THRESHOLD": value}))
