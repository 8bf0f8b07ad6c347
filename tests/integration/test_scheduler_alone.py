"""The Scheduler without an engine: scrapy-redis's constructor, attributes and synchronous methods."""

from __future__ import annotations

import inspect
import struct
from typing import Any

import pytest
import redis
from scrapy import Request, Spider
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from redis_components import picklecompat
from redis_components.dupefilter import RFPDupeFilter
from redis_components.errors import ConfigError, LayoutError
from redis_components.queue import LifoQueue
from redis_components.scheduler import Scheduler
from tests.support.custom_classes import ListQueue, OwnFilter
from tests.support.owner import Owner


class Books(Spider):
    """A spider that keeps what it is told to log."""

    name = "s"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.said: list[str] = []

    def parse(self, response: Any, **kwargs: Any) -> None: ...

    def log(self, message: Any, *args: Any, **kwargs: Any) -> None:
        self.said.append(message)


def scheduler_on(url: str, **settings: Any) -> tuple[Scheduler, Books]:
    crawler = get_crawler(Books, {"REDIS_URL": url, **settings})
    spider = crawler._create_spider()
    return Scheduler.from_crawler(crawler), spider


def fill(scheduler: Scheduler, *pages: int) -> None:
    for page in pages:
        scheduler.enqueue_request(Request(f"http://127.0.0.1/{page}"))


def drain(scheduler: Scheduler) -> list[str]:
    taken = []
    while (request := scheduler.next_request()) is not None:
        taken.append(request.url.rpartition("/")[2])
    return taken


def test_constructor_and_attributes_are_those_of_scrapy_redis() -> None:
    parameters = inspect.signature(Scheduler).parameters
    assert {name: parameter.default for name, parameter in parameters.items() if name != "server"} == {
        "persist": False,
        "flush_on_start": False,
        "queue_key": "%(spider)s:requests",
        "queue_cls": "redis_components.queue.PriorityQueue",
        "dupefilter": None,
        "dupefilter_key": "%(spider)s:dupefilter",
        "dupefilter_cls": "redis_components.dupefilter.RFPDupeFilter",
        "idle_before_close": 0,
        "serializer": None,
    }
    server = redis.Redis()
    scheduler = Scheduler(server, True, True, "q", "Q", None, "d", "D", 3, picklecompat)
    assert scheduler.server is server
    assert (scheduler.persist, scheduler.flush_on_start, scheduler.idle_before_close) == (True, True, 3)
    assert (scheduler.queue_key, scheduler.queue_cls, scheduler.dupefilter_key, scheduler.dupefilter_cls) == ("q", "Q", "d", "D")
    assert (scheduler.df, scheduler.stats, scheduler.serializer) == (None, None, picklecompat)
    with pytest.raises(TypeError, match="idle_before_close cannot be negative"):
        Scheduler(server, idle_before_close=-1)


def test_settings_become_arguments_and_scrapys_default_dupefilter_means_ours() -> None:
    scheduler = Scheduler.from_settings(
        Settings({"SCHEDULER_PERSIST": "1", "SCHEDULER_IDLE_BEFORE_CLOSE": "7", "SCHEDULER_QUEUE_KEY": "q:%(spider)s"})
    )
    assert (scheduler.persist, scheduler.idle_before_close, scheduler.queue_key) == (True, 7, "q:%(spider)s")
    assert scheduler.dupefilter_cls == "redis_components.dupefilter.RFPDupeFilter"
    named = Scheduler.from_settings(Settings({"DUPEFILTER_CLASS": "scrapy.dupefilters.RFPDupeFilter"}))
    assert named.dupefilter_cls == "scrapy.dupefilters.RFPDupeFilter"


def test_a_percent_sign_in_a_key_pattern_is_one_in_the_key(redis_url: str, redis_client: redis.Redis) -> None:
    scheduler, spider = scheduler_on(redis_url, SCHEDULER_QUEUE_KEY="100%%:%(spider)s")
    scheduler.open(spider)
    fill(scheduler, 1)
    assert redis_client.zcard("100%:s") == len(scheduler) == 1


def test_it_stores_and_takes_at_once_and_filters_duplicates(redis_url: str, redis_client: redis.Redis) -> None:
    scheduler, spider = scheduler_on(redis_url)
    scheduler.open(spider)
    assert not scheduler.has_pending_requests()
    fill(scheduler, 1, 2, 1)
    assert scheduler.enqueue_request(Request("http://127.0.0.1/1")) is False
    scheduler.enqueue_request(Request("http://127.0.0.1/1", dont_filter=True, priority=9))
    assert (len(scheduler), scheduler.has_pending_requests(), redis_client.zcard("s:requests")) == (3, True, 3)
    assert drain(scheduler) == ["1", "1", "2"]
    assert not scheduler.has_pending_requests()
    stats = scheduler.stats
    assert stats is not None
    assert (stats.get_value("scheduler/enqueued/redis"), stats.get_value("scheduler/dequeued/redis")) == (3, 3)
    assert spider.said == []


def test_it_resumes_after_it_was_closed_and_says_so_once(redis_url: str, redis_client: redis.Redis) -> None:
    scheduler, spider = scheduler_on(redis_url, SCHEDULER_PERSIST=True)
    scheduler.open(spider)
    fill(scheduler, 1, 2)
    scheduler.close("finished")
    scheduler.open(spider)
    assert spider.said == ["Resuming crawl (2 requests scheduled)"]
    fill(scheduler, 2)
    assert len(scheduler) == 2
    scheduler.persist = False
    scheduler.close("finished")
    assert len(scheduler) == 0
    assert redis_client.exists("s:dupefilter") == 0


def test_it_spares_a_queue_that_crawlers_work_on(redis_url: str, redis_client: redis.Redis) -> None:
    scheduler, spider = scheduler_on(redis_url, SCHEDULER_FLUSH_ON_START=True)
    crawler = Owner(redis_client, "one").open()
    crawler.add("found")
    crawler.add("found too")
    crawler.advance()
    before = redis_client.zcard("s:requests"), redis_client.scard("s:dupefilter")
    scheduler.open(spider)
    scheduler.close("finished")
    assert (redis_client.zcard("s:requests"), redis_client.scard("s:dupefilter")) == before == (0, 2)


def test_what_it_stores_is_crawled_and_what_crawlers_store_it_takes(redis_url: str, redis_client: redis.Redis) -> None:
    scheduler, spider = scheduler_on(redis_url)
    scheduler.open(spider)
    fill(scheduler, 1)
    crawler = Owner(redis_client, "one").open()
    taken = crawler.frontier.take()
    assert taken is not None
    assert b"127.0.0.1/1" in taken.data
    crawler.frontier.release(taken.id)
    crawler.close()
    assert drain(scheduler) == ["1"]


def test_a_subclass_may_name_other_keys_and_bring_its_own_parts(redis_client: redis.Redis) -> None:
    class Mine(Scheduler):
        def open(self, spider: Spider) -> None:
            self.queue_key = "mine:" + self.queue_key
            super().open(spider)

    scheduler = Mine(redis_client, queue_cls=LifoQueue, dupefilter=RFPDupeFilter(redis_client, "elsewhere"))
    scheduler.open(Books())
    fill(scheduler, 1, 2, 2)
    assert (redis_client.zcard("mine:s:requests"), redis_client.scard("elsewhere")) == (2, 2)
    assert drain(scheduler) == ["2", "1"]
    scheduler.close("finished")
    assert redis_client.exists("mine:s:requests", "elsewhere") == 0


def test_classes_of_the_users_own_are_called_as_scrapy_redis_calls_them(redis_client: redis.Redis) -> None:
    scheduler = Scheduler(redis_client, queue_cls=ListQueue, dupefilter=OwnFilter(redis_client, "own"), serializer=picklecompat)
    scheduler.open(Books())
    fill(scheduler, 1, 2, 2)
    assert (redis_client.llen("s:requests"), redis_client.scard("own")) == (2, 2)
    assert drain(scheduler) == ["1", "2"]
    scheduler.close("finished")
    assert redis_client.exists("s:requests", "own") == 0


def test_a_dupefilter_that_does_not_want_to_be_cleared_is_not(redis_client: redis.Redis) -> None:
    class Keeping(RFPDupeFilter):
        def clear(self) -> None: ...

    scheduler = Scheduler(redis_client, dupefilter=Keeping(redis_client, "kept"))
    scheduler.open(Books())
    fill(scheduler, 1, 2)
    scheduler.close("finished")
    assert (len(scheduler), redis_client.scard("kept")) == (0, 2)


def test_other_kinds_of_dupefilters_are_asked_in_the_step_that_stores(redis_url: str, redis_client: redis.Redis) -> None:
    scheduler, spider = scheduler_on(redis_url, DUPEFILTER_CLASS="redis_components.dupefilter.ExactDupeFilter")
    scheduler.open(spider)
    fill(scheduler, 1, 2, 1)
    assert len(scheduler) == 2
    other, spider = scheduler_on(redis_url)
    other.open(spider)
    with pytest.raises(ConfigError, match="holds a dupefilter of the form 'exact"):
        fill(other, 3)
    redis_client.hset("s:requests:counters", "layout", 99)
    with pytest.raises(LayoutError, match="another layout version"):
        fill(scheduler, 3)


def test_a_namespace_comes_before_its_keys(redis_url: str, redis_client: redis.Redis) -> None:
    scheduler, spider = scheduler_on(redis_url, REDIS_NAMESPACE="monday")
    scheduler.open(spider)
    fill(scheduler, 1)
    assert (redis_client.zcard("monday:s:requests"), redis_client.scard("monday:s:dupefilter")) == (1, 1)


def test_pickles_of_a_serializer_named_by_its_module_are_what_is_stored(redis_url: str, redis_client: redis.Redis) -> None:
    scheduler, spider = scheduler_on(redis_url, SCHEDULER_SERIALIZER="pickle")
    scheduler.open(spider)
    fill(scheduler, 1)
    ((member, _),) = redis_client.zrange("s:requests", 0, 0, withscores=True)
    assert picklecompat.loads(member[struct.calcsize(">QB") :])["url"] == "http://127.0.0.1/1"


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("SCHEDULER_QUEUE_CLASS", "collections.OrderedDict"),
        ("SCHEDULER_QUEUE_CLASS", "asyncio.Queue"),
        ("DUPEFILTER_CLASS", "collections.OrderedDict"),
        ("SCHEDULER_SERIALIZER", "json.encoder"),
    ],
)
def test_a_class_that_cannot_be_meant_is_named_with_its_setting(redis_url: str, setting: str, value: str) -> None:
    scheduler, spider = scheduler_on(redis_url, **{setting: value})
    with pytest.raises(ConfigError, match=setting):
        scheduler.open(spider)
