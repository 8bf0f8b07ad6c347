"""The dupefilter classes: as Scrapy and users' code call them, in a real crawl, and from the command line."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from scrapy import Request, Spider
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from redis_components import dupefilter
from redis_components import filters as filter_access
from redis_components.admin.inspector import snapshot
from redis_components.dupefilter import (
    BloomDupeFilter,
    ExactDupeFilter,
    RFPDupeFilter,
    RollingDupeFilter,
    is_fused,
)
from redis_components.errors import ConfigError
from redis_components.filters import Bloom, Exact, Renew, Rolling, false_positive_rate
from redis_components.keys import CrawlKeys
from tests.support.crawl import crawl
from tests.support.dupefilters import of

KEYS = CrawlKeys.for_spider("s")
Trawl = Callable[..., tuple[int, str, str]]
ONE, TWO = Request("http://127.0.0.1/1"), Request("http://127.0.0.1/2")


class Books(Spider):
    name = "s"


def made(cls: type[RFPDupeFilter], url: str, **settings: object) -> RFPDupeFilter:
    crawler = get_crawler(Books, {"REDIS_URL": url, **settings})
    return cls.from_spider(Books.from_crawler(crawler))


@pytest.mark.parametrize("cls", [RFPDupeFilter, ExactDupeFilter, RollingDupeFilter, BloomDupeFilter])
def test_each_class_works_alone(cls: type[RFPDupeFilter], redis_url: str, redis_client: redis.Redis) -> None:
    df = made(cls, redis_url)
    assert df.key == "s:dupefilter"
    assert [df.request_seen(request) for request in (ONE, ONE, TWO)] == [False, True, False]
    df.close("finished")
    assert redis_client.keys(f"{df.key}*") == []


def test_the_key_of_a_filter_for_scrapys_own_scheduler_is_its_own(redis_url: str, redis_client: redis.Redis) -> None:
    df = ExactDupeFilter.from_crawler(get_crawler(Books, {"REDIS_URL": redis_url, "DUPEFILTER_BITS": 64}))
    assert df.key.startswith("dupefilter:")
    assert df.filter == Exact(bits=64)
    assert not df.request_seen(ONE)
    assert redis_client.hget(df.key, "form") == b"exact bits=64"


def test_settings_become_parameters(redis_url: str) -> None:
    rolling = {
        "DUPEFILTER_BITS": "80",
        "DUPEFILTER_MAX_ENTRIES": "5000",
        "DUPEFILTER_MAX_AGE": "86400",
        "DUPEFILTER_RENEW": "hits",
    }
    bloom = {"DUPEFILTER_FALSE_POSITIVES": "1e-6", "DUPEFILTER_CAPACITY": "10"}
    wanted = Rolling(bits=80, max_entries=5000, max_age_s=86400.0, renew=Renew.HITS)
    assert made(RollingDupeFilter, redis_url, **rolling).filter == wanted
    assert made(RollingDupeFilter, redis_url).filter == Rolling(max_entries=1_000_000)
    assert made(RollingDupeFilter, redis_url, DUPEFILTER_MAX_AGE=60).filter == Rolling(max_age_s=60)
    assert made(BloomDupeFilter, redis_url, **bloom).filter == Bloom(false_positives=1e-6, capacity=10)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"DUPEFILTER_BITS": 63}, "DUPEFILTER_BITS = 63 is out of range: from 64 to 80"),
        ({"DUPEFILTER_BITS": "many"}, "DUPEFILTER_BITS = 'many' is not a whole number"),
        ({"DUPEFILTER_MAX_ENTRIES": 10}, "DUPEFILTER_MAX_ENTRIES = 10 is out of range: from 1000"),
        (
            {"DUPEFILTER_MAX_ENTRIES": 0},
            "needs a bound: set DUPEFILTER_MAX_ENTRIES (number) or DUPEFILTER_MAX_AGE (s)",
        ),
        ({"DUPEFILTER_RENEW": "never"}, "DUPEFILTER_RENEW = 'never' is none of met, hits, written"),
        ({"DUPEFILTER_FALSE_POSITIVES": 0}, "DUPEFILTER_FALSE_POSITIVES = 0.0 is out of range"),
        ({"DUPEFILTER_CAPACITY": 0}, "DUPEFILTER_CAPACITY = 0 is out of range"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(settings: dict[str, object], message: str, redis_url: str) -> None:
    cls = BloomDupeFilter if {"DUPEFILTER_FALSE_POSITIVES", "DUPEFILTER_CAPACITY"} & settings.keys() else RollingDupeFilter
    with pytest.raises(ConfigError) as refused:
        made(cls, redis_url, **settings)
    assert message in str(refused.value)


class ByNumber(RFPDupeFilter):
    """As users of scrapy-redis write it."""

    def request_fingerprint(self, request: Request) -> str:
        return request.url.rpartition("/")[2]


class Decides(RFPDupeFilter):
    def request_seen(self, request: Request) -> bool:
        return False


def test_an_overridden_fingerprint_is_what_is_stored_and_stays_in_the_exchange(redis_url: str, redis_client: redis.Redis) -> None:
    df = made(ByNumber, redis_url)
    assert is_fused(ByNumber)
    assert df.fingerprint(Request("http://127.0.0.1/a/7")) == b"7"
    assert not df.request_seen(Request("http://127.0.0.1/a/7"))
    assert df.request_seen(Request("http://127.0.0.1/b/7"))
    assert redis_client.smembers(df.key) == {b"7"}


def test_an_overridden_fingerprint_that_calls_super_is_the_same_as_scrapys(redis_url: str) -> None:
    class Same(RFPDupeFilter):
        def request_fingerprint(self, request: Request) -> str:
            return super().request_fingerprint(request)

    assert made(Same, redis_url).fingerprint(ONE) == made(RFPDupeFilter, redis_url).fingerprint(ONE)


def test_a_filter_that_decides_by_itself_is_told_apart() -> None:
    assert [is_fused(cls) for cls in (RFPDupeFilter, ExactDupeFilter, Decides)] == [True, True, False]


def test_the_client_is_made_by_the_modules_global(monkeypatch: pytest.MonkeyPatch, redis_client: redis.Redis) -> None:
    monkeypatch.setattr(dupefilter, "get_redis_from_settings", lambda settings: redis_client)
    assert RFPDupeFilter.from_settings(Settings()).server is redis_client


# In a crawl


def test_a_crawl_whose_processes_remember_nothing_themselves_fetches_every_page_once(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with crawl(redis_url, tmp_path, pages=150) as run:
        run.seed()
        run.start(DUPEFILTER_CLASS="redis_components.dupefilter.RollingDupeFilter", DUPEFILTER_MAX_ENTRIES=10_000)
        run.finish()
        assert run.hits() == dict.fromkeys(range(1, 151), 1)
        assert redis_client.hget(run.keys.fingerprints(), "form").startswith(b"rolling ")
        found = snapshot(redis_client, "links", run.keys)
    assert found.fingerprints == 149, "all but the start page, which is not filtered"


def test_a_crawl_on_another_dupefilters_key_ends_with_one_clear_line(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    redis_client.sadd("links:dupefilter", "from before")
    exact = "redis_components.dupefilter.ExactDupeFilter"
    with crawl(redis_url, tmp_path, pages=9) as run:
        run.seed()
        run.start(DUPEFILTER_CLASS=exact).wait(60)
        assert run.hits() == {}
        log = run.log()
        assert log.count("links:dupefilter holds a dupefilter of the form 'set', this process is set to 'exact bits=72'") == 1
        assert "Traceback" not in log
        assert "Closing spider (refused)" in log
        run.start(DUPEFILTER_CLASS=exact, SCHEDULER_FLUSH_ON_START=True).wait(60)
        assert len(run.hits()) == 9, run.log()


# With RedisBloom


@pytest.fixture
def redisbloom() -> Iterator[tuple[redis.Redis, str]]:
    """A server with RedisBloom, named by the environment: no package that the tests may install brings one."""
    url = os.environ.get("TRAWL_TEST_REDISBLOOM_URL")
    if url is None:
        pytest.skip("TRAWL_TEST_REDISBLOOM_URL names no server with RedisBloom")
    key = f"trawl-test-{uuid.uuid4().hex}"
    with redis.Redis.from_url(url) as client:
        yield client, key
        filter_access.clear(client, key)


def test_redisblooms_own_commands_do_the_same(redisbloom: tuple[redis.Redis, str]) -> None:
    client, key = redisbloom
    kind = Bloom(capacity=1000, false_positives=0.01)
    entries = [kind.entry(one) for one in of("", 0, 20_000)]
    wrong = sum(sum(filter_access.seen(client, key, kind, entries[first : first + 500])) for first in range(0, 20_000, 500))
    assert wrong < 0.01 * 20_000
    assert all(filter_access.seen(client, key, kind, entries))
    layers = client.hget(key, "layers").decode()
    assert layers.split(":")[2] == "0", "no layer of our own"
    assert b"MBbloom--" in {client.type(one) for one in client.scan_iter(f"{key}:*:0")}
    estimate = false_positive_rate(kind.form, layers)
    assert 0 < estimate <= 0.01
    found = sum(filter_access.seen(client, key, kind, [kind.entry(one) for one in of("other", 0, 5000)])) / 5000
    assert found < 2 * estimate + 0.001
    filter_access.clear(client, key)
    assert not client.keys(f"{key}*")
