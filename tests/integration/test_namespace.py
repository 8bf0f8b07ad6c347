"""Several jobs of one spider side by side in one Redis: neither sees the other, from the start key to the stats."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import redis
from scrapy.utils.test import get_crawler

from cli.main import main
from redis_components.admin.inspector import snapshot
from redis_components.errors import ConfigError
from redis_components.keys import CrawlKeys
from redis_components.scrapy_glue.engine import frontier_of, keys_of
from redis_components.server.names import check_one_slot, fleet_namespace, namespace_of
from tests.support.crawl import ROOT, crawl
from tests.support.link_spiders import LinksSpider
from workers.state.keys import FleetKeys
from workers.state.registry import Registry


def test_two_jobs_of_one_spider_crawl_the_same_site_and_do_not_see_each_other(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    others = CrawlKeys.for_spider("links")
    redis_client.sadd(others.fingerprints(), b"a crawl without a namespace")
    with crawl(redis_url, tmp_path, pages=60, namespace="monday") as one:
        other = replace(one, namespace="links", processes=one.processes)  # the spider's own name is a name like any other
        for job in (one, other):
            job.start(SCHEDULER_PERSIST=job is one)
            job.seed()
        one.finish()
        assert one.hits() == dict.fromkeys(range(1, 61), 2)
        assert one.items() == other.items() == list(range(1, 61))
    for job in (one, other):
        shot = snapshot(redis_client, "links", job.keys)
        assert (shot.stats["downloader/response_count"], shot.ready, shot.leased, shot.owners) == ("60", 0, 0, 0)
    assert redis_client.scard(one.keys.fingerprints()) == 59  # the start task itself is not filtered
    assert not redis_client.exists(other.keys.fingerprints()), "its own end has removed it"
    assert redis_client.smembers(others.fingerprints()) == {b"a crawl without a namespace"}
    assert {key.partition(b":")[0] for key in redis_client.scan_iter("*:*")} == {b"monday", b"links"}
    assert {key for key in redis_client.scan_iter("links:*") if key.count(b":") == 1} == {others.fingerprints().encode()}


def test_the_namespace_comes_before_the_users_own_patterns_too() -> None:
    patterns = {"SCHEDULER_QUEUE_KEY": "q:%(spider)s", "REDIS_START_URLS_KEY": "mine", "STATS_KEY": "%(spider)s-stats"}
    crawler = get_crawler(LinksSpider, {"REDIS_NAMESPACE": "{job}", **patterns})
    crawler.spider = LinksSpider.from_crawler(crawler)
    keys = keys_of(crawler)
    assert (keys.ready(), keys.fingerprints(), keys.dead()) == ("{job}:q:links", "{job}:links:dupefilter", "{job}:q:links:dead")
    assert keys.start_tasks() == crawler.spider.redis_key == "{job}:mine"
    assert keys.stats_hash() == "{job}:links-stats"


def test_several_start_keys_may_be_named_in_the_settings() -> None:
    crawler = get_crawler(LinksSpider, {"REDIS_NAMESPACE": "job", "REDIS_START_URLS_KEY": ["%(name)s:urgent", "%(name)s:later"]})
    before = keys_of(crawler)
    crawler.spider = LinksSpider.from_crawler(crawler)
    assert keys_of(crawler) == before
    assert (before.start_urls, before.more_start_urls) == ("job:links:urgent", ("job:links:later",))


def test_the_tools_look_at_the_job_that_is_named(
    redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Registry(redis_client, FleetKeys(prefix="monday:trawl:fleet")).set_desired("forum_list", 3)
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)

    def desired(namespace: str) -> int:
        monkeypatch.setenv("TRAWL_NAMESPACE", namespace)
        assert main(["status", "--json"]) == 1, "no crawler is alive"
        services = json.loads(capsys.readouterr().out)["services"]
        return next(int(one["desired"]) for one in services if one["service"] == "forum_list")

    assert desired("monday") == 3
    assert desired("") == 1


def test_the_fleets_crawlers_and_celerys_queues_are_in_the_namespace() -> None:
    environment = {**os.environ, "TRAWL_REDIS_URL": "redis://127.0.0.1:1", "TRAWL_NAMESPACE": "{job}"}
    code = (
        "import celeryconfig, workers.settings as crawlers;"
        "print(crawlers.REDIS_NAMESPACE, celeryconfig.broker_transport_options['global_keyprefix'])"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["{job}", "{job}:"], done.stderr


@pytest.mark.parametrize("name", ["two words", "%(spider)s"])
def test_what_cannot_be_a_part_of_keys_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"REDIS_NAMESPACE = '.*': must be without spaces and %"):
        namespace_of({"REDIS_NAMESPACE": name})
    monkeypatch.setenv("TRAWL_NAMESPACE", name)
    with pytest.raises(ConfigError, match=r"TRAWL_NAMESPACE = '.*': must be without spaces and %"):
        fleet_namespace()


@pytest.mark.parametrize("name", ["team:blue", ":", "trawl"])
def test_a_fleet_does_not_lie_within_the_keys_of_another(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_NAMESPACE", name)
    with pytest.raises(ConfigError, match=r"TRAWL_NAMESPACE = .*; choose another one"):
        fleet_namespace()
    assert namespace_of({"REDIS_NAMESPACE": name}) == name, "a separate crawl is in no backup and has no users"


def test_a_number_is_a_namespace_and_nothing_is_none() -> None:
    assert [namespace_of(settings) for settings in ({"REDIS_NAMESPACE": 42}, {"REDIS_NAMESPACE": None}, {})] == ["42", "", ""]


def test_a_crawl_on_a_cluster_without_a_hash_tag_is_refused_at_its_start() -> None:
    crawler = get_crawler(LinksSpider, {"REDIS_URL": "redis+cluster://127.0.0.1:1"})
    with pytest.raises(ConfigError, match=r"links:\S+ is in \d+ and links:\S+ in \d+: set REDIS_NAMESPACE to .* '\{links\}'"):
        frontier_of(crawler)


def test_keys_in_several_slots_are_named_with_the_fix() -> None:
    check_one_slot(["{a}:b", "{a}:c"], "REDIS_NAMESPACE", "'{s}'")
    with pytest.raises(ConfigError, match=r"s:\w+ is in \d+ and s:\w+ in \d+: set REDIS_NAMESPACE to .*, such as '\{s\}'"):
        check_one_slot(["s:requests", "s:items"], "REDIS_NAMESPACE", "'{s}'")
