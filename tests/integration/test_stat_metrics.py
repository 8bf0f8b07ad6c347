"""A service's own stats in /metrics: summed over processes of a real frontier, bounded in number."""

from __future__ import annotations

from pathlib import Path

import redis

from monitoring.metrics.exposition import text_of
from monitoring.source import Source
from redis_components.frontier.messages import StatChange
from redis_components.keys import CrawlKeys, CrawlRecord, CrawlRecords
from tests.support.owner import Owner
from tests.support.plain_project import plain_fleet
from tests.support.processes import wait_until
from workers.process.stat_metrics import MOST_SERIES
from workers.state.registry import CrawlerState


def stats_in(redis_url: str, *services: str) -> list[str]:
    """The lines of the services' own metrics."""
    shown = text_of(Source(redis_url, dict.fromkeys(services)).look()).decode()
    return [line for line in shown.splitlines() if line.startswith("trawl_stat")]


def recorded(client: redis.Redis, service: str, **metrics: str) -> CrawlKeys:
    keys = CrawlKeys.for_spider(service)
    CrawlRecords(client).write(CrawlRecord(spider=service, keys=keys, metrics=metrics))
    return keys


def process(client: redis.Redis, name: str, keys: CrawlKeys, *changes: StatChange) -> Owner:
    """A process of the crawl that has said these stats."""
    owner = Owner(client, name, keys=keys).open()
    left = [list(changes)]
    owner.frontier.listeners.stats = lambda final: left.pop() if left else []
    owner.advance()
    return owner


def test_what_is_counted_and_what_is_set_is_summed_over_processes(redis_client: redis.Redis, redis_url: str) -> None:
    keys = recorded(redis_client, "books", **{"bbs/posts_seen": "counter", "bbs/{forum}/depth": "gauge"})
    process(redis_client, "one", keys, StatChange("add", "bbs/posts_seen", "3"), StatChange("set", "bbs/news/depth", "5"))
    process(
        redis_client,
        "two",
        keys,
        StatChange("add", "bbs/posts_seen", "4"),
        StatChange("set", "bbs/news/depth", "7"),
        StatChange("set", "bbs/help/depth", "many"),
        StatChange("add", "bbs/other", "9"),
    )
    assert stats_in(redis_url, "books") == [
        'trawl_stat{service="books",spider="books",stat="bbs/news/depth"} 12.0',
        'trawl_stat{service="books",spider="books",stat="bbs/posts_seen"} 7.0',
    ]


def test_what_a_process_had_set_goes_with_it(redis_client: redis.Redis, redis_url: str) -> None:
    keys = recorded(redis_client, "books", **{"bbs/depth": "gauge"})
    process(redis_client, "one", keys, StatChange("set", "bbs/depth", "5"))
    process(redis_client, "two", keys, StatChange("set", "bbs/depth", "7"))
    redis_client.zadd(keys.owners(), {"one": 1})  # it died, and its time has run out
    assert stats_in(redis_url, "books") == ['trawl_stat{service="books",spider="books",stat="bbs/depth"} 7.0']


def test_the_number_of_series_is_bounded(redis_client: redis.Redis, redis_url: str) -> None:
    keys = recorded(redis_client, "books", **{"bbs/{forum}/posts": "counter"})
    redis_client.hset(keys.stats_hash(), mapping={f"bbs/{n:04}/posts": str(n) for n in range(MOST_SERIES + 50)})
    assert len(stats_in(redis_url, "books")) == MOST_SERIES


def test_a_service_that_names_none_costs_no_command(redis_client: redis.Redis, redis_url: str) -> None:
    recorded(redis_client, "books")
    source = Source(redis_url, {"books": 1})
    source.look()
    redis_client.config_resetstat()
    source.look()
    assert "cmdstat_zrangebyscore" not in redis_client.info("commandstats") or not stats_in(redis_url, "books")


def test_a_wrong_setting_of_a_project_is_shown_by_status(tmp_path: Path) -> None:
    with plain_fleet(tmp_path, "books=1", settings="STATS_METRICS = 7\n", pages=1) as fleet:
        fleet.beat()
        fleet.node()
        said = "STATS_METRICS = 7 is not a list of stats"
        refused = lambda: [one for one in fleet.registry.crawlers() if one.state is CrawlerState.REFUSED]  # noqa: E731
        wait_until(refused, fleet.said)
        shown = " ".join(fleet.trawl("status").split())
        assert said in shown
        assert "is refused" in shown
