"""TRAWL_FLEET, TRAWL_NODE_CRAWLERS and scaling: what is accepted, and what is said about the rest."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
import redis

from redis_components.errors import ConfigError
from workers.environment import machine
from workers.environment.declaration import parse_fleet
from workers.environment.machine import CRAWLER_BYTES, MOST_SPARE, cores, memory_bytes, places
from workers.fleet.sizes import default_fleet, desired_fleet, largest_fleet, node_crawlers, scale
from workers.state.registry import CrawlerRecord, CrawlerState, Registry
from workers.state.services import Autoscaling, Policy


def test_a_fleet_is_written_as_spiders_with_numbers() -> None:
    assert parse_fleet(" forum_list=1, my-spider.v2=20 ,") == {"forum_list": 1, "my-spider.v2": 20}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("forum_list", "'forum_list' is not of the form spider=number"),
        ("forum_list=-1", "not of the form"),
        ("forum_list=many", "not of the form"),
        ("=1", "not of the form"),
        ("a b=1", "cannot be the name of a service"),
        ("a=1,a=2", "a is named twice"),
        ("a=1001", "from 0 to 1000"),
    ],
)
def test_a_wrong_fleet_is_refused_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_fleet(text)


def test_without_trawl_fleet_there_is_one_crawler_of_each_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAWL_FLEET", raising=False)
    assert default_fleet() == {"forum_list": 1, "forum_detail": 1}


def test_a_node_has_room_for_the_whole_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAWL_NODE_CRAWLERS", raising=False)
    monkeypatch.setenv("TRAWL_FLEET", "a=1")
    assert node_crawlers() == places(cores(), memory_bytes())
    monkeypatch.setenv("TRAWL_FLEET", "a=50,b=4")
    assert node_crawlers() == 54
    monkeypatch.setenv("TRAWL_NODE_CRAWLERS", "2")
    assert node_crawlers() == 2
    monkeypatch.setenv("TRAWL_NODE_CRAWLERS", "none")
    with pytest.raises(ConfigError, match="TRAWL_NODE_CRAWLERS='none'"):
        node_crawlers()


@pytest.fixture
def registry(redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> Registry:
    monkeypatch.setenv("TRAWL_FLEET", "a=1,b=2")
    return Registry(redis_client)


@pytest.fixture
def autoscaling(redis_client: redis.Redis) -> Autoscaling:
    return Autoscaling(redis_client)


def test_scaling_one_service_leaves_the_others_at_their_default(registry: Registry, autoscaling: Autoscaling) -> None:
    assert desired_fleet(registry) == {"a": 1, "b": 2}
    assert scale(registry, autoscaling, {"a": 3}) == {"a": 3, "b": 2}
    assert desired_fleet(registry) == {"a": 3, "b": 2}


@pytest.mark.parametrize("sizes", [{"a": 3, "c": 1}, {"a": 3, "b": -1}, {"a": 3, "b": "2"}, {"a": 3, "b": True}])
def test_scaling_with_one_wrong_size_changes_nothing(sizes: dict[str, int], registry: Registry, autoscaling: Autoscaling) -> None:
    with pytest.raises(ConfigError):
        scale(registry, autoscaling, sizes)
    assert desired_fleet(registry) == {"a": 1, "b": 2}


def test_scaling_gives_slots_that_were_given_up_another_chance(registry: Registry, autoscaling: Autoscaling) -> None:
    for spider, state in (("a", CrawlerState.CRASH_LOOPING), ("b", CrawlerState.REFUSED)):
        slot = registry.acquire(spider, 0, "node-a")
        assert slot is not None
        registry.release(slot, CrawlerRecord(spider=spider, number=0, state=state))
    scale(registry, autoscaling, {"a": 1})
    assert [(r.name, r.state) for r in registry.crawlers()] == [("b/0", CrawlerState.REFUSED)]


def test_a_service_that_sizes_itself_is_not_scaled_by_hand(registry: Registry, autoscaling: Autoscaling) -> None:
    autoscaling.set("a", Policy(min=1, max=4))
    with pytest.raises(ConfigError, match="trawl autoscale a --off"):
        scale(registry, autoscaling, {"b": 5, "a": 3})
    assert desired_fleet(registry) == {"a": 1, "b": 2}
    assert scale(registry, autoscaling, {"b": 5}) == {"a": 1, "b": 5}


@pytest.mark.parametrize(
    ("cores", "memory", "expected"),
    [
        (1, 2**30, 4),  # a small virtual machine
        (2, 8 * 2**30, 8),
        (4, 2**30, 5),  # memory is what lacks
        (0, 0, 1),
        (64, 2**40, MOST_SPARE),
    ],
)
def test_a_machine_has_places_by_its_cores_and_its_memory(cores: int, memory: int, expected: int) -> None:
    assert places(cores, memory) == expected


@pytest.mark.processes  # of the libraries that the settings look for
def test_what_a_crawler_takes_is_far_below_where_it_is_replaced() -> None:
    from workers.settings import CRAWLER_MEMORY_SOFT_MB

    assert CRAWLER_BYTES < CRAWLER_MEMORY_SOFT_MB * 2**20


def test_the_largest_fleet_counts_the_upper_bound_of_what_scales_itself(registry: Registry, redis_client: redis.Redis) -> None:
    autoscaling = Autoscaling(redis_client)
    autoscaling.set("a", Policy(min=1, max=8))
    assert largest_fleet(desired_fleet(registry), autoscaling) == {"a": 8, "b": 2}


def test_the_memory_of_a_machine_is_the_same_where_linux_says_it_and_where_psutil_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine, "_CGROUP_LIMITS", ())
    said = machine.memory_bytes()
    monkeypatch.setattr(machine, "_MEMORY", tmp_path / "meminfo")
    assert machine.memory_bytes() == said == psutil.virtual_memory().total
