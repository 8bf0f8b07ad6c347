"""What the writer's hook learns of stored items: states of forums, forums of an index page, what each site was sent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from forums.records.stored import Check, Forum, Scan
from forums.state.keys import KEEP_S, ForumFleetKeys, ForumState, ForumStates, Ledger, Purpose, Spending, Spent
from forums.writer.store import learn

NOW = datetime.now(UTC).replace(microsecond=0)


def scan(ago_s: float, **fields: Any) -> Scan:
    at = NOW - timedelta(seconds=ago_s)
    values: dict[str, Any] = {
        "site": "demo",
        "forum_id": "f1",
        "started_at": at,
        "finished_at": at,
        "pages": 2,
        "threads": 40,
        "outcome": "complete",
        "reason": None,
        "stopped": "overlap",
    }
    return Scan(**values | fields)


def check(number: int, mode: Any = "changed") -> Check:
    return Check(
        site="demo",
        id=f"p{number}",
        started_at=NOW,
        finished_at=NOW,
        mode=mode,
        first_page=1,
        last_page=3,
        requests=3,
        comments=9,
        whole=True,
        consistent=True,
    )


def test_scans_of_a_batch_are_learned_in_their_order_and_once(redis_client: redis.Redis) -> None:
    items = [scan(60, new=2, changed=3), scan(600), scan(30, forum_id="f2", new=1)]
    learn(redis_client, items)
    states = ForumStates(redis_client).all("demo")
    assert list(states) == ["demo/f1", "demo/f2"]
    assert states["demo/f1"].tried_at == NOW.timestamp() - 60
    assert states["demo/f1"].events == pytest.approx(5)
    learn(redis_client, items)
    assert ForumStates(redis_client).all() == states
    assert Ledger(redis_client).spent(["demo"])["demo"] == Spent(scan=6)


def test_a_client_that_decodes_replies_reads_the_same_states(redis_url: str, redis_client: redis.Redis) -> None:
    learn(redis_client, [scan(60, new=2)])
    states = ForumStates(redis_client)
    states.store_dues({"demo/f1": 5.0}, 10.0, whole=True)
    with redis.Redis.from_url(redis_url, decode_responses=True) as decoding:
        assert ForumStates(decoding).all() == states.all()
        assert ForumStates(decoding).raw_dues() == states.raw_dues() == {b"demo/f1": b"5.000"}


def test_requests_are_counted_once_by_what_they_were_for(redis_client: redis.Redis) -> None:
    items = [check(1), check(2, "check"), check(3, "backfill"), check(4, "new"), scan(5, mode="backfill", pages=7)]
    learn(redis_client, items)
    learn(redis_client, items)
    assert Ledger(redis_client).spent(["demo", "other"]) == {"demo": Spent(detail=6, check=3, backfill=10), "other": Spent()}


def test_forums_of_the_index_are_kept_and_what_is_known_of_them_stays(redis_client: redis.Redis) -> None:
    learn(redis_client, [scan(60, new=5)])
    before = ForumStates(redis_client).read(["demo/f1"])["demo/f1"]
    learn(redis_client, [Forum(site="demo", id=one, name=one.upper(), fetched_at=NOW) for one in ("f1", "f9")])
    states = ForumStates(redis_client).all()
    assert (states["demo/f1"].name, states["demo/f1"].events) == ("F1", before.events)
    assert states["demo/f9"] == ForumState(name="F9", found_at=NOW.timestamp())


def test_requests_leave_the_hour_and_old_ones_leave_redis(redis_client: redis.Redis) -> None:
    ledger, now = Ledger(redis_client), NOW.timestamp()
    ages = {"now": 0, "half": 1800, "gone": 4200}
    ledger.add(
        [Spending(site="demo", name=name, purpose=Purpose.SCAN, ended_at=now - ago, requests=10) for name, ago in ages.items()]
    )
    assert ledger.spent(["demo"])["demo"].scan == 20
    assert ledger.spent(["demo"], now + 2100)["demo"].scan < 20
    assert ledger.add([Spending(site="demo", name="older", purpose=Purpose.SCAN, ended_at=now - KEEP_S - 10, requests=10)]) == 0
    redis_client.hset(ForumFleetKeys().spent("demo"), f"scan|{int(now) - 3 * KEEP_S}", 5)
    ledger.add([])
    ledger.add([Spending(site="demo", name="new", purpose=Purpose.SCAN, ended_at=now, requests=1)])
    assert len(redis_client.hkeys(ForumFleetKeys().spent("demo"))) == 3


def test_a_clock_that_is_ahead_does_not_hide_requests(redis_client: redis.Redis) -> None:
    ledger = Ledger(redis_client)
    ledger.add([Spending(site="demo", name="x", purpose=Purpose.DETAIL, ended_at=NOW.timestamp() + 86_400, requests=4)])
    assert ledger.spent(["demo"])["demo"].detail == 4


def test_what_nobody_can_read_is_as_good_as_unknown(redis_client: redis.Redis) -> None:
    states = ForumStates(redis_client)
    states.write({"demo/f1": ForumState(events=3), "de*o/f1": ForumState(events=4)})
    redis_client.hset("forum_list:start_urls:forums", "demo/f2", "{")
    assert states.all("demo") == {"demo/f1": ForumState(events=3), "demo/f2": ForumState()}
    assert states.all("de*o") == {"de*o/f1": ForumState(events=4)}
