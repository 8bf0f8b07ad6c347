"""`trawl services check`: each kind of spider that would crawl nothing, badly or for ever is a line with its fix."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis

from fleet_operations.deploy.deploy import Findings, check
from workers.state.services import ServiceRecord, Services

SETTINGS = """
SPIDER_MODULES = ["checked_spiders"]
SCHEDULER = "redis_components.scheduler.Scheduler"
DUPEFILTER_CLASS = "redis_components.dupefilter.RFPDupeFilter"
STATS_CLASS = "redis_components.stats.RedisStatsCollector"
ITEM_PIPELINES = {"redis_components.pipelines.RedisPipeline": 300}
ROBOTSTXT_OBEY = True
"""
SPIDERS = """
import sys
import threading
import time

import scrapy
from scrapy import signals
from scrapy.exceptions import DontCloseSpider

from redis_components.spiders import RedisMixin, RedisSpider


class Page(scrapy.Spider):
    def parse(self, response):
        yield {"url": response.url}


class Fed(RedisSpider, Page):
    name = "fed"

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        threading.Thread(target=time.sleep, args=[1000]).start()
        print("printed by a project")


class Watching(Page):
    name = "watching"

    async def start(self):
        while True:
            yield scrapy.Request("https://example.org/", dont_filter=True)


class Idle(Page):
    name = "idle"

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.stay, signals.spider_idle)
        return spider

    def stay(self):
        raise DontCloseSpider


class Old(Page):
    name = "old"

    def start_requests(self):
        yield scrapy.Request("https://example.org/")


class Nothing(Page):
    name = "nothing"

    def __init__(self, pages=0, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [f"https://example.org/{page}" for page in range(int(pages))]


class NoSetup(RedisMixin, Page):
    name = "no_setup"


class Select(RedisSpider, Page):
    name = "select"
    custom_settings = {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"}


class NoReactor(Select):
    name = "no_reactor"
    custom_settings = {"TWISTED_REACTOR_ENABLED": False}


class Init(RedisSpider, Page):
    name = "init"

    def __init__(self, **kwargs):
        raise RuntimeError("no key")


class Maker(RedisSpider, Page):
    name = "maker"

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        return crawler.settings["KEY"].lower()


class Leaves(RedisSpider, Page):
    name = "leaves"

    def __init__(self, **kwargs):
        sys.exit("left")


class Eats(RedisSpider, Page):
    name = "eats"

    def __init__(self, **kwargs):
        bytearray(5 * 1024**3)


class Feeds(RedisSpider, Page):
    name = "feeds"
    custom_settings = {"FEEDS": {"books.jsonl": {"format": "jsonlines"}}}


class Finite(Page):
    name = "finite"
    start_urls = ["https://example.org/"]


class Tired(RedisSpider, Page):
    name = "tired"
    max_idle_time = 5


class Opens(RedisSpider, Page):
    name = "opens"
    custom_settings = {"LOG_FILE": "crawl.log", "TELNETCONSOLE_ENABLED": True, "ROBOTSTXT_OBEY": False}
"""
WRONG = {
    "old": "Old has start_requests() and Scrapy",
    "nothing": "Nothing fetches nothing: give it start_urls",
    "no_setup": "NoSetup never calls setup_redis(crawler)",
    "select": "name TWISTED_REACTOR and ASYNCIO_EVENT_LOOP in the settings of the project or of the service",
    "no_reactor": "TWISTED_REACTOR_ENABLED = False",
    "init": "RuntimeError: no key (",
    "maker": "'NoneType' object has no attribute 'lower' (",
    "leaves": "its project ended the process that loaded it (exit code 1): left",
    "eats": "MemoryError",
}
FAULTS = {
    "finite": ["it ends when the requests of its start() are done, and the fleet starts it again for ever: run it as a job"],
    "tired": ["it ends after 5 s without work, and the fleet starts it again for ever: unset max_idle_time"],
    "opens": ["TELNETCONSOLE_ENABLED = True", "ROBOTSTXT_OBEY = False", "LOG_FILE"],
    "feeds": ["FEEDS: several crawlers write books.jsonl: put %(batch_time)s into its name"],
}
RIGHT = {
    "fed": ServiceRecord(size=2),
    "watching": ServiceRecord(size=2),
    "idle": ServiceRecord(),
    "once": ServiceRecord(spider="nothing", arguments={"pages": "3"}, size=0),
    "meant": ServiceRecord(
        spider="fed",
        settings={"ROBOTSTXT_OBEY": False, "DOWNLOAD_HANDLERS": {"ftp": "shop.Ftp"}},
    ),
}


@pytest.fixture
def checked(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[dict[str, ServiceRecord]], dict[str, Findings]]:
    (tmp_path / "checked_settings.py").write_text(SETTINGS)
    (tmp_path / "checked_spiders.py").write_text(SPIDERS)
    (tmp_path / "shop.py").write_text("class Ftp: ...\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "checked_settings")
    monkeypatch.delenv("TRAWL_ALLOW_PRIVATE", raising=False)

    def look(services: dict[str, ServiceRecord]) -> dict[str, Findings]:
        for name, record in services.items():
            Services(redis_client).declare(name, record)
        with ThreadPoolExecutor(2) as pool:
            return dict(zip(services, pool.map(lambda name: check(redis_client, name), services), strict=True))

    return look


def test_a_spider_that_would_crawl_nothing_is_wrong(checked: Callable[..., dict[str, Findings]]) -> None:
    for name, found in checked({name: ServiceRecord() for name in WRONG}).items():
        assert WRONG[name] in found.wrong, name
        assert "\n" not in found.wrong


def test_a_spider_that_would_crawl_badly_has_faults(checked: Callable[..., dict[str, Findings]]) -> None:
    for name, found in checked({name: ServiceRecord(size=2) for name in FAULTS}).items():
        assert found.wrong == "", name
        assert len(found.faults) == len(FAULTS[name]), found
        for part, line in zip(FAULTS[name], found.faults, strict=True):
            assert part in line


def test_a_right_spider_has_none(checked: Callable[..., dict[str, Findings]]) -> None:
    """Also one that waits, has threads, and what the service itself opens."""
    for name, found in checked(RIGHT).items():
        assert (found.wrong, found.faults, found.warnings) == ("", [], []), name
