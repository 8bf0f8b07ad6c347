"""Key patterns, numbers and connection options that cannot work are refused in one line that names them."""

from __future__ import annotations

import pytest
import redis
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from redis_components.connection import from_settings
from redis_components.dupefilter import RFPDupeFilter
from redis_components.errors import ConfigError
from redis_components.keys import CrawlKeys, filled
from redis_components.pipelines import RedisPipeline
from redis_components.queue import FifoQueue
from redis_components.scrapy_glue.engine import config_of, crawl_keys
from redis_components.scrapy_glue.scheduler_parts import arguments_of
from redis_components.spiders import RedisSpider
from redis_components.stats import RedisStatsCollector


class Forum(RedisSpider):
    name = "forum"


@pytest.mark.parametrize("pattern", ["%(spider)s:%d", "%(foo)s:q", "50%"])
def test_a_wrong_key_pattern_is_named_with_the_fix(pattern: str) -> None:
    with pytest.raises(ConfigError, match=r"the key pattern '.*' is wrong .*: write %\(name\)s for the spider's name"):
        CrawlKeys.for_spider("forum", namespace="", requests=pattern)
    spider = RedisSpider("forum", redis_key=["a", pattern])
    with pytest.raises(ConfigError, match="the key pattern"):
        spider.setup_redis(get_crawler())


def test_a_percent_sign_can_be_written() -> None:
    assert filled("50%%:%(name)s", "forum") == "50%:forum"


def test_whoever_fills_a_pattern_knows_both_words_for_the_spider() -> None:
    patterns = {"SCHEDULER_DUPEFILTER_KEY": "%(name)s:d", "REDIS_ITEMS_KEY": "%(name)s:i", "STATS_KEY": "%(name)s:st"}
    crawler = get_crawler(Forum, {"REDIS_NAMESPACE": "job", **patterns})
    spider, keys = crawler._create_spider(), crawl_keys(crawler.settings, Forum.name)
    assert RFPDupeFilter.from_spider(spider).key == keys.fingerprints() == f"job:{Forum.name}:d"
    assert RedisPipeline.from_settings(crawler.settings).item_key(None, spider) == keys.item_stream() == f"job:{Forum.name}:i"
    assert RedisStatsCollector(crawler)._get_key() == keys.stats_hash() == f"job:{Forum.name}:st"
    assert FifoQueue(redis.Redis(), spider, "%(name)s:q").key == f"{Forum.name}:q"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("SCHEDULER_DUPEFILTER_KEY", "same is set as the key of both the queue and the dupefilter"),
        ("REDIS_START_URLS_KEY", "same is set as the key of both the queue and start tasks"),
    ],
)
def test_two_uses_of_one_key_are_refused(setting: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config_of(get_crawler(Forum, {"SCHEDULER_QUEUE_KEY": "same", setting: "same"}))


@pytest.mark.parametrize(
    "url",
    ["redis://:secret@127.0.0.1:1/0?foo=1", "redis+sentinel://:secret@127.0.0.1:1/service?foo=1"],
    ids=["server", "sentinel"],
)
def test_an_option_that_redis_py_does_not_know_is_refused_before_the_first_command(url: str) -> None:
    with pytest.raises(ConfigError, match="'foo'") as caught:
        from_settings(Settings({"REDIS_URL": url}))
    assert "127.0.0.1" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_parameter_that_redis_py_does_not_know_is_refused() -> None:
    with pytest.raises(ConfigError, match="'foo'"):
        from_settings(Settings({"REDIS_HOST": "127.0.0.1", "REDIS_PARAMS": {"foo": 1}}))


@pytest.mark.parametrize("name", ["SCHEDULER_OWNER_TTL", "SCHEDULER_MAX_ATTEMPTS", "CONCURRENT_REQUESTS"])
def test_a_setting_that_is_no_number_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"{name} = 'many' is not a (whole )?number"):
        config_of(get_crawler(Forum, {name: "many"}))


@pytest.mark.parametrize(("value", "message"), [("-1", "= -1 is out of range"), ("soon", "= 'soon' is not a whole number")])
def test_a_wrong_idle_time_is_refused_by_name(value: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"SCHEDULER_IDLE_BEFORE_CLOSE {message}"):
        arguments_of(Settings({"SCHEDULER_IDLE_BEFORE_CLOSE": value}))
