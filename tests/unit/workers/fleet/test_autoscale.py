"""Services that size themselves, on a real Redis: what is looked at, what is set, and what operators are told."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import redis

from cli.main import main
from redis_components.frontier.holds import HoldKind
from redis_components.keys import CrawlKeys
from workers.fleet.autoscale import resize, room_for
from workers.fleet.holds import HoldTarget, hold, resume
from workers.state.nodes import NodeRecord, Nodes
from workers.state.registry import CrawlerRecord, CrawlerState, Registry, SlotView
from workers.state.services import Autoscaling, Policy

KEYS = CrawlKeys.for_spider("detail")


@pytest.fixture
def registry(redis_client: redis.Redis, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    monkeypatch.setenv("TRAWL_FLEET", "list=1,detail=1")
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    return Registry(redis_client)


def look(registry: Registry, client: redis.Redis) -> dict[str, int]:
    desired = {"list": 1, "detail": 1, **registry.desired()}
    views = registry.slots(desired, registry.crawlers())
    return resize(client, desired, views, Nodes(client).all(), registry.now())


def test_a_service_without_crawlers_is_woken_by_its_first_start_task_and_others_are_left_alone(
    registry: Registry, redis_client: redis.Redis
) -> None:
    Nodes(redis_client).beat(NodeRecord(name="a", services=("detail",), capacity=4))
    assert look(registry, redis_client) == {}
    Autoscaling(redis_client).set("detail", Policy(min=0, max=4))
    Autoscaling(redis_client).set("gone", Policy(min=3, max=4))
    registry.set_desired("detail", 0)
    assert look(registry, redis_client) == {}
    redis_client.rpush(KEYS.start_tasks(), "http://127.0.0.1/1")
    assert look(registry, redis_client) == {"detail": 1}
    assert registry.desired() == {"detail": 1}


def test_its_bounds_are_kept_and_slots_that_were_given_up_stay_so(registry: Registry, redis_client: redis.Redis) -> None:
    registry.note(CrawlerRecord(spider="detail", number=0, state=CrawlerState.REFUSED))
    Autoscaling(redis_client).set("detail", Policy(min=3, max=4))
    assert look(registry, redis_client) == {"detail": 3}
    assert [r.state for r in registry.crawlers()] == [CrawlerState.REFUSED]


@pytest.mark.parametrize("word", HoldKind)
def test_a_service_that_is_held_does_not_grow(word: HoldKind, registry: Registry, redis_client: redis.Redis) -> None:
    Autoscaling(redis_client).set("detail", Policy(min=0, max=4))
    Nodes(redis_client).beat(NodeRecord(name="a", services=("detail",), capacity=4))
    registry.set_desired("detail", 0)
    hold(redis_client, HoldTarget(services=("detail",)), word)
    redis_client.rpush(KEYS.start_tasks(), "http://127.0.0.1/1")
    assert look(registry, redis_client) == {}
    resume(redis_client, HoldTarget(services=("detail",)))
    assert look(registry, redis_client) == {"detail": 1}


def test_figures_that_cannot_be_read_change_nothing(registry: Registry, redis_client: redis.Redis) -> None:
    Autoscaling(redis_client).set("detail", Policy(min=1, max=4))
    redis_client.set(KEYS.ready(), "a text")
    assert look(registry, redis_client) == {}
    assert Autoscaling(redis_client).all()["detail"].memory.why == "its figures cannot be read"


def test_the_room_for_a_service_is_what_its_nodes_offer_beside_others() -> None:
    nodes = [
        NodeRecord(name="a", services=("detail", "list"), capacity=4, beat_at=100.0),
        NodeRecord(name="b", services=("detail",), capacity=2, beat_at=100.0),
        NodeRecord(name="c", services=("list",), capacity=9, beat_at=100.0),
        NodeRecord(name="d", services=("detail",), capacity=9, beat_at=100.0, draining=True),
        NodeRecord(name="e", services=("detail",), capacity=9, beat_at=10.0),
    ]
    slots = [
        SlotView(spider="list", number=0, token=1, owner="a"),
        SlotView(spider="list", number=1, launching_on="a"),
        SlotView(spider="detail", number=0, token=1, owner="a"),
    ]
    assert room_for("detail", slots, nodes, 101.0) == 4  # 4 - 2 on a, 2 on b


def test_the_command_sets_shows_and_ends_it(
    registry: Registry, redis_client: redis.Redis, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*words: str, code: int = 0) -> str:
        assert main(["autoscale", *words]) == code
        out, err = capsys.readouterr()
        return err if code else out

    assert "No service is autoscaled" in said()
    assert "--max is missing" in said("detail", "--min", "2", code=2)
    assert "unknown service 'nope': there are detail, list" in said("nope", "--max", "2", code=2)
    assert "--max 1 is below --min 2" in said("detail", "--min", "2", "--max", "1", code=2)
    assert "not between 1 s and a week" in said("detail", "--max", "2", "--target", "0", code=2)
    assert "the service is missing" in said("--max", "2", code=2)
    assert "--off cannot be combined with" in said("detail", "--max", "2", "--off", code=2)
    assert "is not autoscaled" in said("detail", "--off", code=2)
    assert said("detail", "--max", "8") == "detail: 1 of 1 to 8 crawlers: new\n"
    (shown,) = json.loads(said("detail", "--min", "2", "--target", "30", "--json"))  # what is not said stays
    assert shown == {
        "service": "detail",
        "min": 2,
        "max": 8,
        "target_s": 30.0,
        "desired": 1,
        "per_crawler": None,
        "inflow": None,
        "why": None,
    }
    assert main(["scale", "detail=3"]) == 2
    assert "detail is autoscaled: turn that off first with trawl autoscale detail --off" in capsys.readouterr().err
    assert "No service is autoscaled" in said("detail", "--off")
    assert main(["scale", "detail=3"]) == 0
