"""Pipeline, stats and package as scripts written for scrapy-redis use them: directly, without a crawl."""

from __future__ import annotations

import importlib.metadata
import json
from datetime import UTC, datetime
from typing import Any

import pytest
import redis
from scrapy import Spider
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

import redis_components
from redis_components import connection, picklecompat, utils
from redis_components.errors import ConfigError
from redis_components.keys import CrawlKeys
from redis_components.pipelines import RedisPipeline
from redis_components.spiders import RedisSpider
from redis_components.stats import RedisStatsCollector
from tests.support.owner import Owner


class Books(Spider):
    name = "books"


class Fed(RedisSpider):
    name = "fed"


def upper(item: dict[str, str]) -> str:
    return json.dumps(item).upper()


def test_a_pipeline_without_a_crawl_appends_at_once(redis_client: redis.Redis) -> None:
    pipeline = RedisPipeline(redis_client)
    item = {"title": "a"}
    assert pipeline.process_item(item, Books()) is item
    RedisPipeline(redis_client, "%(spider)s:own", upper).process_item(item, Books())
    assert redis_client.lrange("books:items", 0, 9) == [b'{"title":"a"}']
    assert redis_client.lrange("books:own", 0, 9) == [b'{"TITLE": "A"}']


def test_a_pipeline_from_settings(redis_client: redis.Redis, redis_url: str) -> None:
    settings = Settings(
        {"REDIS_URL": redis_url, "REDIS_ITEMS_KEY": "k:%(spider)s", "REDIS_ITEMS_SERIALIZER": f"{__name__}.upper"}
    )
    pipeline = RedisPipeline.from_settings(settings)
    assert (pipeline.key, pipeline.serialize, pipeline.item_key({}, Books())) == ("k:%(spider)s", upper, "k:books")
    pipeline.process_item({"a": 1}, Books())
    assert redis_client.lrange("k:books", 0, 9) == [b'{"A": 1}']
    pipeline.server.close()


def test_a_pipeline_without_crawler_and_spider_says_so(redis_client: redis.Redis) -> None:
    with pytest.raises(TypeError, match=r"RedisPipeline knows no spider: give one, or make it by from_crawler"):
        RedisPipeline(redis_client).process_item({})


def test_a_serializer_that_cannot_be_loaded_is_named() -> None:
    with pytest.raises(ConfigError, match=r"REDIS_ITEMS_SERIALIZER = 'no\.such\.function'"):
        RedisPipeline.from_settings(Settings({"REDIS_ITEMS_SERIALIZER": "no.such.function"}))


def test_a_list_in_another_slot_of_a_cluster_is_refused_before_it_stops_an_exchange(redis_client: redis.Redis) -> None:
    class Tagged(RedisPipeline):
        def item_key(self, item: dict[str, str], spider: Spider) -> str:
            return item["key"]

    pipeline, frontier = (
        Tagged(redis_client),
        Owner(redis_client, "one", keys=CrawlKeys.for_spider("s", namespace="{s}")).frontier,
    )
    pipeline._one_slot = True  # as on a Cluster
    assert pipeline._own_key(frontier, {"key": "{s}:mine"}, Books()) == "{s}:mine"
    with pytest.raises(ConfigError, match=r"all keys of a crawl must be in one slot, but .*elsewhere"):
        pipeline._own_key(frontier, {"key": "elsewhere"}, Books())


@pytest.fixture
def stats(redis_url: str) -> Any:
    crawler = get_crawler(Books, {"REDIS_URL": redis_url})
    collector = RedisStatsCollector.from_crawler(crawler)
    yield collector
    collector.server.close()


@pytest.mark.parametrize("value", [1, 0.5, "text", True, None, [1], datetime(2026, 1, 31, tzinfo=UTC)])
def test_a_stat_reads_back_as_it_was_set(stats: RedisStatsCollector, value: Any) -> None:
    stats.set_value("v", value)
    assert stats.get_value("v") is value
    assert stats.get_stats() == {"v": value}
    assert "v" in str(stats)


def test_the_collector_takes_a_spider_wherever_scrapy_redis_does(stats: RedisStatsCollector) -> None:
    spider = Books()
    stats.open_spider(spider)
    stats.inc_value("n", 2, 10, spider)
    stats.max_value("max", 0.5, spider)
    stats.min_value("min", 3, spider)
    stats.min_value("min", 2, spider=spider)
    assert stats.get_value("n", None, spider) == 12
    assert stats.get_stats(spider) == {"n": 12, "max": 0.5, "min": 2}
    stats.set_stats({"a": 1}, spider)
    assert stats.get_stats() == {"a": 1}
    stats.clear_stats(spider)
    assert stats.get_value("a", "none") == "none"
    stats.close_spider(spider, "finished")


def test_the_shared_stats_are_read_from_redis(stats: RedisStatsCollector, redis_client: redis.Redis) -> None:
    redis_client.hset("books:stats", mapping={"n": "7", "max": "0.5", "word": "text"})
    assert stats.shared_stats() == {"n": 7, "max": 0.5, "word": "text"}
    assert stats._get_key() == "books:stats"
    other = Books(name="other")
    assert stats._get_key(other) == "other:stats"


def test_a_collector_from_a_spider_and_with_a_key_of_its_own() -> None:
    crawler = get_crawler(Books, {"STATS_KEY": "s:%(spider)s"})
    spider = Books.from_crawler(crawler)
    assert RedisStatsCollector.from_spider(spider)._get_key() == "s:books"
    assert RedisStatsCollector(crawler, spider).spider is spider


def test_a_namespace_comes_before_every_key(redis_url: str) -> None:
    settings = {"REDIS_URL": redis_url, "REDIS_NAMESPACE": "job", "REDIS_START_URLS_KEY": ["%(name)s:a", "%(name)s:b"]}
    crawler = get_crawler(Fed, settings)
    spider = Fed.from_crawler(crawler)
    assert spider.start_keys == ("job:fed:a", "job:fed:b")
    assert RedisPipeline.from_settings(crawler.settings).item_key({}, spider) == "job:fed:items"
    assert RedisStatsCollector(crawler)._get_key() == "job:fed:stats"


def test_the_package_has_the_names_that_are_imported_from_it() -> None:
    assert redis_components.get_redis is connection.get_redis
    assert redis_components.get_redis_from_settings is connection.get_redis_from_settings
    assert redis_components.__version__ == importlib.metadata.version("trawl-fleet")
    assert redis_components.__author__
    assert redis_components.__email__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = redis_components.nothing


@pytest.mark.parametrize(("text", "is_json"), [("{}", True), ("[1]", True), ("1", True), ("http://a", False), ("", False)])
def test_is_dict_says_what_scrapy_redis_says(text: str, is_json: bool) -> None:
    assert utils.is_dict(text) is is_json


def test_bytes_become_text() -> None:
    assert utils.bytes_to_str(b"\xe9", "latin-1") == "\xe9"
    assert utils.bytes_to_str(5) == 5
    assert utils.convert_bytes_to_str({b"a": (b"b", 1), "c": b"\xe9"}, "latin-1") == {"a": ("b", 1), "c": "\xe9"}
    assert utils.TextColor.WARNING.startswith("\033[")


def test_pickles_keep_what_they_were_given() -> None:
    value = {"meta": {"when": datetime(2026, 1, 31, tzinfo=UTC), "set": {1}}}
    assert picklecompat.loads(picklecompat.dumps(value)) == value
