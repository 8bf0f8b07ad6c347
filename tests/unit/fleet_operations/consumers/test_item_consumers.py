"""A consumer of the fleet touches the streams that were declared as its own, and no others."""

from __future__ import annotations

from fleet_operations.consumers.declared import streams_of
from forums.records import FORUM_WRITER
from redis_components.keys import CrawlKeys, CrawlRecord

TRAWLS = {"SCRAPY_SETTINGS_MODULE": "workers.settings"}
ANOTHERS = {"SCRAPY_SETTINGS_MODULE": "shop.settings"}


def record(spider: str, *, consumer: str = "", items: str = "") -> CrawlRecord:
    keys = CrawlKeys.for_spider(spider, namespace="", items=items or "%(spider)s:items")
    return CrawlRecord(spider=spider, keys=keys, consumer=consumer)


def streams(*records: CrawlRecord, services: tuple[str, ...] = (), environment: dict[str, str] = ANOTHERS) -> dict[str, str]:
    found = streams_of(FORUM_WRITER, {one.spider: one for one in records}, services, environment)
    return {name: keys.items for name, keys in found.items()}


def test_only_declared_streams_are_touched() -> None:
    assert streams(record("books"), record("board", consumer=FORUM_WRITER), services=("books", "new")) == {"board": "board:items"}


def test_the_stream_of_a_removed_service_is_drained_where_it_was_declared() -> None:
    assert streams(record("board", consumer=FORUM_WRITER, items="mine"), services=()) == {"board": "mine"}


def test_a_stream_that_another_service_writes_into_is_left_alone() -> None:
    assert streams(record("books", items="items"), record("board", consumer=FORUM_WRITER, items="items")) == {}


def test_a_stream_that_two_declare_is_drained_once() -> None:
    both = [record(name, consumer=FORUM_WRITER, items="items") for name in ("one", "two")]
    assert streams(*both) == {"one": "items"}


def test_trawls_own_spiders_need_not_have_run_before_but_only_in_trawls_own_project() -> None:
    services = ("forum_list", "forum_detail", "books")
    assert set(streams(services=services, environment=TRAWLS)) == {"forum_list", "forum_detail"}
    assert streams(services=services, environment=ANOTHERS) == {}
    assert streams(record("forum_list"), services=("forum_list",), environment=TRAWLS) == {}, "it says itself that it has none"
