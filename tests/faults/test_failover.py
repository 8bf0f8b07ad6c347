"""Sentinel and Cluster: every operation works there, and a failover in the middle of a crawl loses nothing. Real servers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis
from scrapy import Request
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from redis_components.admin import dead_letters
from redis_components.admin.inspector import expire_owner, snapshot, wipe
from redis_components.connection import asyncio_client, from_settings, get_redis, is_cluster
from redis_components.errors import ConfigError
from redis_components.frontier.messages import DeadLetter
from redis_components.items.stream import ItemStream, Lock, Settled
from redis_components.keys import CrawlKeys
from redis_components.scheduler import Scheduler
from redis_components.server.names import prefixed
from redis_components.start_tasks import seeding as seeds
from tests.support import warm_start
from tests.support.celery_broker import works_with
from tests.support.crawl import crawl
from tests.support.dupefilters import KINDS
from tests.support.link_spiders import StartingSpider
from tests.support.owner import Owner
from tests.support.processes import wait_until
from tests.support.redis_groups import PASSWORD, TAG, ClusterGroup, Group, SentinelGroup
from workers.node.worker_setup import broker_of
from workers.state.keys import FleetKeys
from workers.state.registry import Registry

KEYS = CrawlKeys.for_spider("links", namespace=TAG)
WITHOUT_A_LOOP = {"TWISTED_REACTOR": "twisted.internet.epollreactor.EPollReactor"}  # its exchanges travel in a thread


@pytest.fixture(scope="module")
def sentinel() -> Iterator[Group]:
    with SentinelGroup(sentinels=1) as running:
        yield running


@pytest.fixture(scope="module")
def cluster() -> Iterator[Group]:
    with ClusterGroup() as running:
        yield running


@pytest.fixture(params=["sentinel", "cluster"])
def group(request: pytest.FixtureRequest) -> Group:
    running: Group = request.getfixturevalue(request.param)
    return running


@pytest.fixture
def client(group: Group) -> Iterator[redis.Redis]:
    with get_redis(url=group.url) as client:
        for key in list(client.scan_iter(f"{TAG}:*")):
            client.delete(key)
        yield client


def test_every_operation_of_frontier_fleet_and_tools_works(client: redis.Redis) -> None:
    one = Owner(client, "one", keys=KEYS).open()
    one.add("a")
    one.add("b")
    one.frontier.add_item(b'{"url": "a"}')
    leased = one.take()
    assert leased is not None
    one.frontier._add("burials", DeadLetter(leased[0], "for the test"))
    one.advance()
    assert (snapshot(client, "links", KEYS).dead, dead_letters.newest(client, KEYS, 9)[0][0].reason) == (1, "for the test")
    assert dead_letters.replay(client, KEYS).done == 1
    assert dead_letters.purge(client, KEYS).done == 0
    seeding = seeds.seed(client, KEYS, [seeds.Seed(id="t", data=b"t", wait_s=1)], max_pending=5)
    assert (seeding[0].outcome, client.rpush(KEYS.start_tasks(), b"u")) == ("seeded", 2)
    assert expire_owner(client, KEYS, "one")
    assert wipe(client, KEYS, but_not_for="two") is None

    stream = ItemStream(client, KEYS)
    assert stream.lock("writer") is Lock.ACQUIRED
    assert stream.peek(5) == [b'{"url": "a"}']
    assert stream.settle("writer", 1, [], ["t"]) is Settled.SETTLED
    stream.unlock("writer")
    assert len(stream) == 0

    registry = Registry(client, FleetKeys(prefix=prefixed("trawl:fleet", TAG)))
    registry.set_desired("links", 2)
    slot = registry.acquire("links", 0, "node")
    assert slot is not None
    assert registry.renew(slot).held
    assert registry.mark_launch("links", 1, "node")
    views = registry.slots(registry.desired(), registry.crawlers())
    assert [(view.owner, view.launching_on) for view in views] == [("node", None), (None, "node")]
    assert registry.release(slot)
    assert registry.now() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_every_dupefilter_works(kind: str, client: redis.Redis) -> None:
    one = Owner(client, "one", keys=KEYS, filter=KINDS[kind]).open()
    for _ in range(2):
        for number in range(50):
            one.add(f"request {number}")
        one.advance()
    assert len(one.duplicates) == snapshot(client, "links", KEYS).fingerprints == 50
    one.close()
    assert wipe(client, KEYS, but_not_for="one") is None
    assert snapshot(client, "links", KEYS).fingerprints == 0


def test_who_leaves_stays_until_the_replica_has_its_last_word(client: redis.Redis) -> None:
    one, left = Owner(client, "one", keys=KEYS).open(), []
    one.frontier.add_item(b"item")
    one.frontier.close(lambda: None)
    one.advance(0.1)
    one.frontier.leave(lambda: left.append("left"))
    one.advance(1)
    assert left == []
    one.advance(1)
    assert left == ["left"]


OWN = {
    "SCHEDULER_QUEUE_CLASS": "tests.support.custom_classes.ListQueue",
    "DUPEFILTER_CLASS": "tests.support.custom_classes.SeenByPath",
}


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("classes", [{}, OWN], ids=["ours", "own"])
def test_a_scheduler_that_is_used_alone_works(group: Group, classes: dict[str, str]) -> None:
    crawler = get_crawler(StartingSpider, {"REDIS_URL": group.url, "REDIS_NAMESPACE": TAG, **classes})
    scheduler, spider = Scheduler.from_crawler(crawler), crawler._create_spider()
    scheduler.open(spider)
    assert [scheduler.enqueue_request(Request(f"http://127.0.0.1/{page}")) for page in (1, 2, 1)] == [True, True, False]
    assert scheduler.next_request() is not None
    scheduler.close("finished")
    assert len(scheduler) == 0


def test_threads_may_send_the_first_commands_of_a_client_at_once(cluster: Group) -> None:
    with get_redis(url=cluster.url) as client, ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda n: client.set(f"{TAG}:{n}", n), range(40))) == [True] * 40


def test_the_cluster_class_in_redis_params_works_as_scrapy_redis_users_write_it(cluster: Group) -> None:
    params = {
        "redis_cls": "redis.cluster.RedisCluster",
        "host": "127.0.0.1",
        "port": cluster.primary().port,
        "password": PASSWORD,
    }
    settings = Settings({"REDIS_PARAMS": params})
    assert is_cluster(settings)
    with from_settings(settings) as client:
        client.set(f"{TAG}:a", "b")

    async def on_the_loop() -> bytes | None:
        client = asyncio_client(settings)
        assert client is not None
        try:
            return await client.get(f"{TAG}:a")
        finally:
            await client.aclose()

    assert asyncio.run(on_the_loop()) == b"b"


@pytest.mark.parametrize(("of_cluster", "fix"), [(True, "set REDIS_NAMESPACE to a hash tag"), (False, "write redis+cluster://")])
def test_a_crawl_whose_keys_are_in_several_slots_fails_with_the_fix(
    cluster: Group, tmp_path: Path, of_cluster: bool, fix: str
) -> None:
    url = cluster.url if of_cluster else f"redis://:{PASSWORD}@127.0.0.1:{cluster.servers[0].port}/0"
    (tmp_path / "one.py").write_text(
        "import scrapy\n\n\nclass One(scrapy.Spider):\n    name = 'one'\n    start_urls = ['data:,x']\n"
    )
    settings = {
        "SCHEDULER": "redis_components.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "redis_components.dupefilter.RFPDupeFilter",
        "REDIS_URL": url,
        "LOG_LEVEL": "ERROR",
    }
    options = [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]
    done = warm_start.run(
        [sys.executable, "-m", "scrapy.cmdline", "runspider", str(tmp_path / "one.py"), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert fix in line, line


def test_celery_works_on_sentinel(sentinel: Group) -> None:
    works_with(broker_of(sentinel.url))


def test_celery_refuses_a_cluster_in_one_line() -> None:
    with pytest.raises(ConfigError, match=r"is a Redis Cluster, which Celery cannot use .*: set TRAWL_BROKER_URL") as said:
        broker_of("redis+cluster://:s3cret@h:1")
    assert "s3cret" not in str(said.value)


@pytest.mark.usefixtures("client")
def test_a_failover_to_a_replica_that_is_behind_loses_no_page_and_no_item(group: Group, tmp_path: Path) -> None:
    with crawl(group.url, tmp_path, pages=150, latency_s=0.2, namespace=TAG) as run:
        slow = {"CONCURRENT_REQUESTS_PER_DOMAIN": 4}  # it has to go on for longer than the failover takes
        run.start(**slow, **WITHOUT_A_LOOP if isinstance(group, SentinelGroup) else {})
        run.seed()

        def reach(share: float) -> None:
            wait_until(lambda: len(run.hits()) > share * 150, lambda: f"{share:.0%} of the pages\n{run.log()}", 60)

        reach(0.2)
        group.fail_over(lambda: reach(0.4))
        run.finish()
        assert run.missing() == ([], []), run.log()
        with run.client() as afterwards:
            shot = snapshot(afterwards, "links", run.keys)
    assert (shot.ready, shot.leased, shot.leased_tasks, shot.owners) == (0, 0, 0, 0)
    assert "Redis answers again after" in run.log()
    assert "fenced: " in run.log(), "the replica did lack something"
