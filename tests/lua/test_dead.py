"""The DEAD list: each test states the whole situation before and after."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis

from redis_components.admin import dead_letters
from redis_components.admin.dead_letters import BATCH, Cleared, DeadKind
from redis_components.errors import LayoutError
from redis_components.server.scripts import Script
from tests.support.owner import KEYS, Owner

BINARY = b"\x01\x81\xff\n\x00not UTF-8\n"


def bury(
    client: redis.Redis, payload: bytes, *, kind: str = "r", reason: str = "HTTP 503", score: str = "0", at_s: int = 1000
) -> None:
    head = json.dumps({"at_ms": at_s * 1000, "kind": kind, "reason": reason, "score": score}).encode()
    client.rpush(KEYS.dead(), head + b"\n" + payload)


def payloads(client: redis.Redis) -> list[bytes]:
    """Of what is dead, oldest first."""
    return [raw.partition(b"\n")[2] for raw in client.lrange(KEYS.dead(), 0, 9999)]


def test_what_a_crawler_buried_is_shown_newest_first(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one").open()
    for name in ("a", "b", "c"):
        one.add(name, priority=7)
        lease = one.take()
        assert lease is not None
        one.frontier.bury(lease[0], f"reason of {name}")
        one.advance()
    entries, foreign = dead_letters.newest(redis_client, KEYS, 2)
    assert [(entry.payload, entry.reason, entry.kind, entry.score, entry.place) for entry in entries] == [
        (b"c", "reason of c", DeadKind.REQUEST, "-7", 2),
        (b"b", "reason of b", DeadKind.REQUEST, "-7", 1),
    ]
    assert foreign == 0


def test_a_replayed_request_keeps_its_score_and_comes_behind_its_equals_without_attempts(redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one").open()
    one.add("first")
    one.add("later", priority=-1)
    one.advance()
    one.close()
    bury(redis_client, BINARY)
    bury(redis_client, b"urgent", score="-5")
    assert dead_letters.replay(redis_client, KEYS) == Cleared(done=2)
    members = redis_client.zrange(KEYS.ready(), 0, 9, withscores=True)
    assert [(member[9:], score) for member, score in members] == [(b"urgent", -5), (b"first", 0), (BINARY, 0), (b"later", 1)]
    assert {member[8] for member, _ in members} == {0}
    assert redis_client.exists(KEYS.dead()) == 0
    assert dead_letters.replay(redis_client, KEYS) == Cleared()


def test_a_replayed_request_is_leased_byte_for_byte(redis_client: redis.Redis) -> None:
    bury(redis_client, BINARY)
    dead_letters.replay(redis_client, KEYS)
    one = Owner(redis_client, "one").open()
    lease = one.frontier.take()
    assert lease is not None
    assert lease.data == BINARY


@pytest.mark.parametrize("kind", ["l", "s", "z"])
def test_a_replayed_start_task_goes_back_to_its_key(redis_client: redis.Redis, kind: str) -> None:
    bury(redis_client, b"task \xff", kind=kind, score="3" if kind == "z" else "")
    assert dead_letters.replay(redis_client, KEYS) == Cleared(done=1)
    match kind:
        case "l":
            assert redis_client.lrange(KEYS.start_tasks(), 0, 9) == [b"task \xff"]
        case "s":
            assert redis_client.smembers(KEYS.start_tasks()) == {b"task \xff"}
        case _:
            assert redis_client.zrange(KEYS.start_tasks(), 0, 9, withscores=True) == [(b"task \xff", 3.0)]


def test_a_replay_takes_only_what_was_asked_for_oldest_first(redis_client: redis.Redis) -> None:
    for number in range(6):
        bury(redis_client, f"p{number}".encode(), reason=f"HTTP {500 + number % 2}")
    assert dead_letters.replay(redis_client, KEYS, reason="http 501", limit=2) == Cleared(done=2)
    assert payloads(redis_client) == [b"p0", b"p2", b"p4", b"p5"]


def test_foreign_entries_are_counted_and_kept_by_replay_and_purge(redis_client: redis.Redis) -> None:
    before = [b"", b"junk", b"{}\nx"]
    after = [b'{"at_ms":"x","kind":"r","score":"0"}\nx', b'{"at_ms":1,"kind":"r","score":"nan"}\nx', b"[1]\n", b"\xff\xfe\n"]
    redis_client.rpush(KEYS.dead(), *before)
    bury(redis_client, b"ours")
    redis_client.rpush(KEYS.dead(), *after)
    assert [entry.payload for entry in dead_letters.newest(redis_client, KEYS, 99)[0]] == [b"ours"]
    assert dead_letters.replay(redis_client, KEYS) == Cleared(done=1, foreign=7)
    assert dead_letters.purge(redis_client, KEYS) == Cleared(foreign=7)
    assert redis_client.lrange(KEYS.dead(), 0, 99) == before + after


def test_what_was_no_request_in_the_queue_stays_when_the_rest_is_replayed_and_can_be_purged(redis_client: redis.Redis) -> None:
    bury(redis_client, b"short", kind="f")
    bury(redis_client, b"a")
    assert dead_letters.replay(redis_client, KEYS) == Cleared(done=1, stuck=1)
    assert payloads(redis_client) == [b"short"]
    assert dead_letters.purge(redis_client, KEYS) == Cleared(done=1)


def test_a_purge_forgets_only_what_is_old_enough(redis_client: redis.Redis) -> None:
    for at_s in (100, 300, 200):
        bury(redis_client, str(at_s).encode(), at_s=at_s)
    assert dead_letters.purge(redis_client, KEYS, before_s=250) == Cleared(done=2)
    assert payloads(redis_client) == [b"300"]


def test_more_than_one_batch_is_replayed_and_each_entry_once(redis_client: redis.Redis) -> None:
    number = 2 * BATCH + 7
    for place in range(number):
        bury(redis_client, str(place).encode(), reason="odd" if place % 2 else "even")
    assert dead_letters.replay(redis_client, KEYS, reason="odd").done == number // 2
    assert payloads(redis_client) == [str(place).encode() for place in range(0, number, 2)]
    replayed = [member[9:] for member in redis_client.zrange(KEYS.ready(), 0, number)]
    assert replayed == [str(place).encode() for place in range(1, number, 2)]
    assert dead_letters.purge(redis_client, KEYS).done == number - number // 2


class Meanwhile:
    """The real script; before its first call something else happens."""

    def __init__(self, script: Script, happens: Any) -> None:
        self._script = script
        self._happens = happens

    def __call__(self, *operands: Any) -> Any:
        happens, self._happens = self._happens, lambda: None
        happens()
        return self._script(*operands)


def test_what_is_buried_while_a_replay_runs_is_left_for_the_next_one(
    redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    bury(redis_client, b"a")
    slow = Meanwhile(dead_letters.script("dead_replay"), lambda: bury(redis_client, b"again"))
    monkeypatch.setattr(dead_letters, "script", lambda name: slow)
    assert dead_letters.replay(redis_client, KEYS) == Cleared(done=1)
    assert payloads(redis_client) == [b"again"]


def test_two_replays_at_once_take_each_entry_once(redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in range(2 * BATCH):
        bury(redis_client, str(place).encode(), reason="odd" if place % 2 else "even")
    others: list[Cleared] = []
    slow = Meanwhile(
        dead_letters.script("dead_replay"),
        lambda: others.append(dead_letters.replay(redis_client, KEYS, reason="even", limit=BATCH // 2)),
    )
    monkeypatch.setattr(dead_letters, "script", lambda name: slow)
    assert dead_letters.replay(redis_client, KEYS).done + others[0].done == 2 * BATCH
    assert others[0].done == BATCH // 2
    assert redis_client.zcard(KEYS.ready()) == 2 * BATCH
    assert redis_client.exists(KEYS.dead()) == 0


def test_a_call_that_is_sent_again_takes_nothing_twice(redis_client: redis.Redis) -> None:
    for name in ("a", "b"):
        bury(redis_client, name.encode())
    oldest = dead_letters.newest(redis_client, KEYS, 2)[0][1]
    for _ in range(2):
        dead_letters.script("dead_purge")(redis_client, {"dead": KEYS.dead()}, {"chosen": [oldest.place, oldest.sha]})
        assert payloads(redis_client) == [b"b"]


def test_another_layout_is_refused_and_nothing_changes(redis_client: redis.Redis) -> None:
    redis_client.hset(KEYS.counters(), "layout", 99)
    bury(redis_client, b"a")
    with pytest.raises(LayoutError):
        dead_letters.replay(redis_client, KEYS)
    assert payloads(redis_client) == [b"a"]


def test_a_start_key_of_a_foreign_type_stops_nothing_half_way(redis_client: redis.Redis) -> None:
    redis_client.set(KEYS.start_tasks(), "foreign")
    bury(redis_client, b"a")
    bury(redis_client, b"task", kind="l", score="")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        dead_letters.replay(redis_client, KEYS)
    assert payloads(redis_client) == [b"a", b"task"]
    assert redis_client.exists(KEYS.ready()) == 0


def test_what_redis_does_not_take_back_is_not_lost(redis_client: redis.Redis) -> None:
    redis_client.hset(KEYS.counters(), "order", "foreign")
    bury(redis_client, b"a")
    with pytest.raises(redis.ResponseError):
        dead_letters.replay(redis_client, KEYS)
    assert payloads(redis_client) == [b"a"]
    assert redis_client.exists(KEYS.ready()) == 0


def test_a_purge_makes_room_while_redis_is_out_of_memory(redis_client: redis.Redis) -> None:
    bury(redis_client, b"a")
    redis_client.config_set("maxmemory", 1)
    try:
        assert dead_letters.purge(redis_client, KEYS) == Cleared(done=1)
    finally:
        redis_client.config_set("maxmemory", 0)


@pytest.mark.parametrize(
    ("payload", "url"),
    [
        (b"\x01\x81\xa1u\xb1http://a.example/", "http://a.example/"),
        (b"http://a.example/ task", "http://a.example/ task"),
        (b'{"url": "http://a.example/"}', "http://a.example/"),
        (b'{"url": 3}', '{"url": 3}'),
        (b"\x01\xc1", r"b'\x01\xc1'"),
        (b"\x80\x04pickle", r"b'\x80\x04pickle'"),
    ],
)
def test_an_entry_shows_its_url_or_what_it_begins_with(redis_client: redis.Redis, payload: bytes, url: str) -> None:
    bury(redis_client, payload)
    assert dead_letters.newest(redis_client, KEYS, 1)[0][0].url == url
