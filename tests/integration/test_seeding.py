"""Seeding: what is due and not pending, most overdue first, never above the threshold."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
import redis

from redis_components.errors import ConfigError
from redis_components.keys import CrawlKeys
from redis_components.seeds import Seed, seed
from workers.seeding import refresh
from workers.seeding import seed as seed_forums
from workers.sites import SiteError

LISTS = CrawlKeys.for_spider("forum_list")


@pytest.fixture(autouse=True)
def _sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    for site, forums in (("one", ["a", "b"]), ("two", ["b", "c"])):
        (tmp_path / f"{site}.toml").write_text(
            f'profile = "generic"\nbase_url = "http://127.0.0.1:1"\nforums = {json.dumps(forums)}\n'
        )


def waiting(client: redis.Redis) -> list[dict[str, str]]:
    return [json.loads(task) for task in client.lrange(LISTS.start_tasks(), 0, 99)]


def test_without_names_everything_that_is_due_is_seeded_once(redis_client: redis.Redis) -> None:
    first = seed_forums(redis_client)
    assert first == dict.fromkeys(("one/a", "one/b", "two/b", "two/c"), "seeded")
    assert all(outcome.startswith("pending since") for outcome in seed_forums(redis_client).values())
    assert waiting(redis_client) == [{"site": s, "forum": f} for s, f in (("one", "a"), ("one", "b"), ("two", "b"), ("two", "c"))]


def test_a_forum_whose_scan_has_ended_is_not_due_before_its_interval_is_over(redis_client: redis.Redis) -> None:
    seed_forums(redis_client, ["a"])
    redis_client.delete(LISTS.start_tasks())
    redis_client.hdel(LISTS.pending(), "one/a")
    assert seed_forums(redis_client, site="one")["one/a"].startswith("not due until")
    assert seed_forums(redis_client, ["a"]) == {"one/a": "seeded"}, "by name it is seeded all the same"


def test_a_pending_mark_of_a_lost_scan_is_forgotten_in_the_end(redis_client: redis.Redis) -> None:
    seed_forums(redis_client, ["a"])
    redis_client.hincrby(LISTS.pending(), "one/a", -3_600_001)
    assert seed_forums(redis_client, ["a"]) == {"one/a": "seeded"}


def test_the_most_overdue_are_seeded_first_and_never_more_than_the_threshold(redis_client: redis.Redis) -> None:
    seeds = [Seed(id=name, data=name.encode(), interval_s=60) for name in ("new", "old", "older")]
    redis_client.hset(LISTS.seeded(), mapping={"old": 2000, "older": 1000, "new": 3000})
    outcomes = seed(redis_client, LISTS, seeds, max_pending=2)
    assert [outcome.outcome for outcome in outcomes] == ["full", "seeded", "seeded"]
    assert redis_client.lrange(LISTS.start_tasks(), 0, 9) == [b"older", b"old"]


def test_the_threshold_comes_from_the_environment(redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_MAX_PENDING", "1")
    assert sorted(seed_forums(redis_client).values()) == ["over the limit of 1 pending forums"] * 3 + ["seeded"]
    monkeypatch.setenv("TRAWL_MAX_PENDING", "many")
    with pytest.raises(ConfigError, match="TRAWL_MAX_PENDING = 'many': must be a whole number"):
        seed_forums(redis_client)


def test_two_beats_at_once_seed_each_forum_once(redis_client: redis.Redis, redis_url: str) -> None:
    def beat() -> None:
        with redis.Redis.from_url(redis_url) as client:
            seed_forums(client)

    beats = [threading.Thread(target=beat) for _ in range(8)]
    for one in beats:
        one.start()
    for one in beats:
        one.join()
    assert len(waiting(redis_client)) == 4


def test_what_is_unknown_or_unclear_is_said_and_the_rest_is_seeded(redis_client: redis.Redis) -> None:
    assert seed_forums(redis_client, ["b", "nope", "c"]) == {
        "?/b": "several sites have it (one, two): name the site",
        "?/nope": "unknown forum: one has a, b; two has b, c",
        "two/c": "seeded",
    }
    assert waiting(redis_client) == [{"site": "two", "forum": "c"}]


def test_bad_arguments_are_refused_with_the_right_form(redis_client: redis.Redis) -> None:
    with pytest.raises(SiteError, match="unknown site 'three'"):
        seed_forums(redis_client, ["a"], "three")
    with pytest.raises(ConfigError, match="must be a list of names"):
        seed_forums(redis_client, "a")
    with pytest.raises(ConfigError, match="must be a list of post ids"):
        refresh(redis_client, [], "one")
    assert not redis_client.keys("*")


def test_single_posts_become_start_tasks_of_the_detail_service(redis_client: redis.Redis) -> None:
    assert refresh(redis_client, ["p1", "p2"], "one") == 2
    assert json.loads(redis_client.lpop("forum_detail:start_urls") or b"") == {"site": "one", "post": "p1"}
