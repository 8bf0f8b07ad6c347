"""A setting that cannot be meant is refused by its name, before anything is sent to Redis."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.utils.test import get_crawler

from redis_components.crawl_config import config_of
from redis_components.errors import ConfigError
from redis_components.scheduler import Scheduler
from tests.support.link_spiders import LinksSpider


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("SCHEDULER_MAX_PREFETCH", "many", "is no whole number"),
        ("SCHEDULER_OWNER_TTL", "soon", "is no number"),
        ("SCHEDULER_OWNER_TTL", "0", "is out of range"),
        ("REDIS_NAMESPACE", "two words", "must be without spaces"),
    ],
)
def test_what_a_frontier_is_told(setting: str, value: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        config_of(get_crawler(LinksSpider, {setting: value}))
    assert repr(value) in str(refused.value) or f"{setting} = {float(value):g}" in str(refused.value)
    assert said in str(refused.value)


@pytest.mark.parametrize(("value", "said"), [("soon", "is no whole number"), (-1, "is out of range")])
def test_what_a_scheduler_is_told(value: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=f"SCHEDULER_IDLE_BEFORE_CLOSE = .* {said}"):
        Scheduler.from_settings(get_crawler(LinksSpider, {"SCHEDULER_IDLE_BEFORE_CLOSE": value}).settings)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("", "must not be empty"),
        ([], "is empty"),
        (["a", " "], "must not be empty"),
        (7, "must be a key or a list of keys"),
    ],
)
def test_what_a_spider_is_told(key: Any, said: str) -> None:
    with pytest.raises(ValueError, match=f"redis_key.*{said}"):
        LinksSpider.from_crawler(get_crawler(LinksSpider), redis_key=key)


def test_a_spiders_start_key_may_hold_its_name_by_either_word() -> None:
    spider = LinksSpider.from_crawler(get_crawler(LinksSpider), redis_key=["%(name)s:a", "%(spider)s:b"])
    assert spider.start_keys == ("links:a", "links:b")
