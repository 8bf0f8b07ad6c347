"""What the exporter reads from a real Redis."""

from __future__ import annotations

import pytest
import redis

from forums.overview import forum_sites
from forums.state.keys import ForumCrawlKeys, ForumState, ForumStates
from monitoring.metrics.exposition import text_of
from monitoring.source import ANSWER_S, Source
from redis_components.errors import ConfigError
from redis_components.frontier.messages import StatChange
from redis_components.keys import CrawlKeys, CrawlRecord, CrawlRecords
from tests.support.owner import Owner
from tests.support.redis_server import RedisServer
from workers.state.keys import FleetKeys
from workers.state.registry import CrawlerRecord, CrawlerState, Registry

LIST = CrawlKeys.for_spider("forum_list")


def test_it_reads_a_crawl_as_the_frontier_left_it(redis_client: redis.Redis, redis_url: str) -> None:
    owner = Owner(redis_client, "crawler-1", keys=LIST).open()
    owner.frontier.listeners.stats = lambda final: [StatChange("max", "downloader/response_count", "41")]
    for payload in ("one", "two", "three"):
        owner.add(payload)
    owner.advance()
    assert owner.take() is not None

    reading = Source(redis_url, {"forum_list": None, "forum_detail": None}).look()

    assert (reading.failure, reading.unreadable) == (None, {})
    assert [service.name for service in reading.services] == ["forum_list", "forum_detail"]
    crawl = reading.services[0].crawl
    assert (crawl.ready + crawl.leased, crawl.fingerprints, crawl.owners) == (3, 3, 1)
    assert crawl.stats["downloader/response_count"] == "41"
    assert abs(reading.now - redis_client.time()[0]) < 60


def test_items_of_a_stream_that_a_service_and_its_jobs_share_are_counted_once(redis_client: redis.Redis, redis_url: str) -> None:
    for name in ("books", "books.one", "books.two"):
        keys = CrawlKeys.for_spider(name, items="books:items")
        CrawlRecords(redis_client).write(CrawlRecord(spider=name, keys=keys, max_items=7))
    redis_client.rpush("books:items", *range(7))
    redis_client.rpush("pages:items", "one")

    view = Source(redis_url, {"books": 1, "books.one": 1, "pages": 1}).look()

    assert [(one.name, one.items_of, one.items_waiting) for one in view.services] == [
        ("books", "", 7),
        ("books.one", "books", 0),
        ("pages", "", 1),
    ], "and the job that is over has nothing left behind"
    text = text_of(view).decode()
    for name in ("trawl_items_waiting", "trawl_bad_items", "trawl_item_bytes"):
        found = [line for line in text.splitlines() if line.startswith(f"{name}{{")]
        assert len([line for line in found if 'service="books' in line]) == 1, found
    assert len([line for line in text.splitlines() if line.startswith("trawl_items_backed_up{") and float(line.split()[-1])]) == 2


def test_it_reads_the_fleet_and_a_size_that_was_set_wins_over_the_default(redis_client: redis.Redis, redis_url: str) -> None:
    registry = Registry(redis_client)
    registry.note(CrawlerRecord(spider="forum_list", number=0, state=CrawlerState.RUNNING, pages=7))
    registry.set_desired("forum_list", 3)
    registry.report_error("here", "something happened")

    reading = Source(redis_url, {"forum_list": 1, "forum_detail": 2, "other": None}).look()

    assert {one.name: one.desired for one in reading.services} == {"forum_list": 3, "forum_detail": 2, "other": None}
    assert [(r.name, r.pages, r.alive(reading.now)) for r in reading.crawlers] == [("forum_list/0", 7, True)]
    assert [error.what for error in reading.errors] == ["something happened"]


def test_a_key_of_another_type_hides_its_own_service_only(redis_client: redis.Redis, redis_url: str) -> None:
    redis_client.set(LIST.ready(), "not a zset")
    reading = Source(redis_url, {"forum_list": None, "forum_detail": None}).look()
    assert reading.failure is None
    assert [(service.name, service.is_known) for service in reading.services] == [("forum_list", False), ("forum_detail", True)]
    assert "WRONGTYPE" in reading.unreadable["forum_list"]


def test_a_foreign_value_in_the_fleets_keys_is_named_and_hides_nothing_else(redis_client: redis.Redis, redis_url: str) -> None:
    redis_client.hset(FleetKeys().desired(), "forum_list", "many")
    reading = Source(redis_url, {"forum_list": 1}).look()
    assert reading.failure is None
    assert len(reading.services) == 1
    assert reading.unreadable == {}
    assert [str(one) for one in reading.foreign] == [
        f"{FleetKeys().desired()}, field forum_list: 'many' is not a whole number from 0 to 1000"
    ]
    assert reading.size_of("forum_list") == 1, "as the reconciler takes it: the default"


def test_a_redis_that_is_away_is_one_line_and_no_numbers() -> None:
    with RedisServer() as server:
        source = Source(server.url, {"forum_list": 1})
        server.stop()
        reading = source.look()
        assert reading.failure is not None
        assert "is not running" in reading.failure
        assert server.password not in reading.failure
        assert (reading.services, reading.crawlers) == ((), ())
        server.start()
        assert source.look().failure is None, "the first look after its return works again"


def test_a_redis_that_hangs_holds_up_a_look_for_a_bounded_time() -> None:
    with RedisServer() as server:
        source = Source(server.url, {"forum_list": 1})
        assert source.look().failure is None
        client = server.client()
        before = client.info("stats")["total_connections_received"]
        server.pause()
        failure = source.look().failure
        server.resume()
        assert failure is not None
        assert "does not answer in time" in failure
        assert source.client.connection_pool.connection_kwargs["socket_timeout"] <= ANSWER_S
        assert client.info("stats")["total_connections_received"] <= before + 1, "it tries once more at most"


def test_a_wrong_password_is_said_without_the_password(redis_server: RedisServer) -> None:
    url = redis_server.url.replace(redis_server.password, "wr0ng-one")
    failure = Source(url, {"forum_list": 1}).look().failure
    assert failure is not None
    assert "does not accept the password" in failure
    assert "wr0ng-one" not in failure


def test_a_url_of_another_form_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="is not a Redis URL"):
        Source("http://127.0.0.1:6379", {"forum_list": 1})


def test_it_needs_a_fixed_number_of_commands_whatever_there_is(redis_client: redis.Redis, redis_url: str) -> None:
    """No KEYS, no SCAN, and not one command per request, item or crawler."""
    source = Source(redis_url, {"forum_list": 1})
    source.look()  # connect

    def commands() -> tuple[int, set[str]]:
        redis_client.config_resetstat()
        source.look()
        stats = redis_client.info("commandstats")
        names = {name.removeprefix("cmdstat_") for name in stats}
        return sum(int(value["calls"]) for value in stats.values()), names

    empty, _ = commands()
    redis_client.zadd(LIST.ready(), {f"member-{n}": n for n in range(5000)})
    redis_client.rpush(LIST.item_stream(), *(f"item-{n}" for n in range(5000)))
    for n in range(20):
        Registry(redis_client).note(CrawlerRecord(spider="forum_list", number=n, state=CrawlerState.RUNNING))
    full, names = commands()
    assert full <= empty + 1  # the type of a key decides between two commands
    # HSCAN reads the states of the forums, hundreds at a time: there are as many as boards are watched.
    # ZRANGE reads the names of the sites with limits, of which there are few.
    assert names.isdisjoint({"keys", "scan", "smembers", "sscan", "zscan"})


def test_a_later_look_has_every_board_that_was_scanned_added_or_removed_since(redis_client: redis.Redis, redis_url: str) -> None:
    states, now = ForumStates(redis_client), redis_client.time()[0]
    states.write({f"demo/f{n}": ForumState(scanned_at=1.0 + n) for n in range(3)})
    states.store_dues({f"demo/f{n}": now + n for n in range(3)}, now, whole=True)
    source = Source(redis_url, {"forum_list": 1})
    first = forum_sites(source.look()).boards
    states.write({"demo/f0": ForumState(scanned_at=9.0), "demo/a": ForumState(gap_at=5.0)})
    states.store_dues({"demo/f0": now, "demo/f1": now + 7, "demo/a": now}, now, whole=True)
    redis_client.hset(ForumCrawlKeys(LIST).forum_dues(), "demo/x", "soon")

    boards = forum_sites(source.look()).boards

    assert [one.name for one in first] == ["demo/f0", "demo/f1", "demo/f2"]
    assert [(one.name, one.state.scanned_at, one.watched.due_at - now) for one in boards] == [
        ("demo/a", None, 0),
        ("demo/f0", 9.0, 0),
        ("demo/f1", 2.0, 7),
    ]
    states.write({"demo/f1": ForumState(scanned_at=11.0)})
    redis_client.hdel(ForumCrawlKeys(LIST).forum_states(), "demo/f0")
    again = forum_sites(source.look()).boards
    assert [(one.name, one.state.scanned_at) for one in again] == [("demo/a", None), ("demo/f0", None), ("demo/f1", 11.0)]

    # the same names with other values: a state alone, a due time alone, one that can be read now, one that cannot any more
    states.write({"demo/f1": ForumState(scanned_at=12.0, errors=2)})
    redis_client.hset(ForumCrawlKeys(LIST).forum_dues(), mapping={"demo/f0": str(now + 3), "demo/x": str(now), "demo/a": "?"})
    last = forum_sites(source.look()).boards
    assert [(one.name, one.state.scanned_at, one.watched.due_at - now) for one in last] == [
        ("demo/f0", None, 3),
        ("demo/f1", 12.0, 7),
        ("demo/x", None, 0),
    ]
    assert [one.forum for one in last.ill] == ["f1"]


def test_it_reads_the_crawls_of_a_server_that_was_restarted_and_has_lost_its_scripts(
    redis_client: redis.Redis, redis_url: str
) -> None:
    redis_client.rpush(LIST.start_tasks(), "one")
    source = Source(redis_url, {"forum_list": 1, "forum_detail": 1})
    source.look()
    redis_client.script_flush()
    reading = source.look()
    assert (reading.unreadable, [one.crawl.start_tasks for one in reading.services]) == ({}, [1, 0])
