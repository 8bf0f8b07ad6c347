"""What a process sets among its stats lives as long as it crawls; the last one that leaves hands it to the shared stats."""

from __future__ import annotations

import pytest
import redis

from redis_components.admin.inspector import expire_owner, snapshot
from redis_components.frontier.messages import StatChange
from tests.support.owner import KEYS, Owner


def crawler(client: redis.Redis, name: str, start_time: str, **own: str) -> Owner:
    """A process that sets its `start_time`, and when it leaves its `finish_reason` and what else it has."""
    owner = Owner(client, name)
    told: set[str] = set()

    def stats(final: bool) -> list[StatChange]:
        fields = {"start_time": start_time, **({"finish_reason": f"end of {name}", **own} if final else {})}
        changes = [StatChange("set", field, value) for field, value in fields.items() if field not in told]
        told.update(fields)
        return changes

    owner.frontier.listeners.stats = stats
    owner.open()
    owner.advance()
    return owner


def leave(owner: Owner) -> None:
    owner.close()
    owner.advance(5)


def shared(client: redis.Redis) -> dict[str, str]:
    return snapshot(client, "s").stats


def own(client: redis.Redis) -> list[bytes]:
    return sorted(client.keys(f"{KEYS.stats}:*"))


def test_a_finished_crawl_has_its_first_start_and_the_last_reason(redis_client: redis.Redis) -> None:
    two = crawler(redis_client, "two", "2026-01-02T00:00:00.500000+00:00", mine="2")
    one = crawler(redis_client, "one", "2026-01-02T00:00:00+00:00", mine="1")
    assert shared(redis_client) == {"start_time": "2026-01-02T00:00:00+00:00"}
    assert own(redis_client) == [b"s:stats:one", b"s:stats:two"]
    leave(one)
    assert shared(redis_client) == {"start_time": "2026-01-02T00:00:00+00:00"}, "another one crawls"
    assert own(redis_client) == [b"s:stats:two"]
    leave(two)
    finished = {"start_time": "2026-01-02T00:00:00+00:00", "finish_reason": "end of two", "mine": "2"}
    assert shared(redis_client) == finished
    assert own(redis_client) == []
    crawler(redis_client, "three", "2026-01-03T00:00:00+00:00")
    assert shared(redis_client) == {"start_time": "2026-01-02T00:00:00+00:00", "mine": "2"}, "it goes on"


@pytest.mark.parametrize("found_by", ["supervisor", "another crawler"])
def test_what_a_killed_process_had_set_goes_with_it(redis_client: redis.Redis, found_by: str) -> None:
    crawler(redis_client, "killed", "2026-01-02T00:00:00+00:00")
    crawler(redis_client, "killed~1", "2026-01-02T00:00:00+00:00")
    crawler(redis_client, "killed~other", "2026-01-02T00:00:00+00:00")
    if found_by == "supervisor":
        assert expire_owner(redis_client, KEYS, "killed")
    else:
        redis_client.zadd(KEYS.owners(), {"killed": 1, "killed~1": 1})
        Owner(redis_client, "other").open().advance(10)
    assert own(redis_client) == [b"s:stats:killed~other"]


def test_a_process_that_was_fenced_leaves_nothing_under_its_old_name(redis_client: redis.Redis) -> None:
    paused = crawler(redis_client, "paused", "2026-01-02T00:00:00+00:00")
    redis_client.zadd(KEYS.owners(), {"paused": 1})
    Owner(redis_client, "other").open().advance(10)
    paused.add("a")
    paused.advance(10)
    assert paused.fenced == 1
    leave(paused)
    assert own(redis_client) == []


def test_a_process_with_very_many_values_of_its_own_hands_over_how_it_ended(redis_client: redis.Redis) -> None:
    leave(crawler(redis_client, "one", "2026-01-02T00:00:00+00:00", **{f"value/{number}": "x" for number in range(2000)}))
    assert shared(redis_client) == {"start_time": "2026-01-02T00:00:00+00:00", "finish_reason": "end of one"}
