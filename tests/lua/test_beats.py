"""Beats and rounds in Redis: one leads, a leader that was replaced can note nothing, and a round is begun once."""

from __future__ import annotations

import pytest
import redis

from workers.state.beats import Beats, Round, RoundState, Schedules, StoredEntry, Unreadable
from workers.state.keys import FleetKeys, script

KEYS = FleetKeys()


@pytest.fixture
def beats(redis_client: redis.Redis) -> Beats:
    return Beats(redis_client)


@pytest.fixture
def schedules(redis_client: redis.Redis) -> Schedules:
    return Schedules(redis_client)


def test_one_leads_the_other_hears_who_and_for_how_long(beats: Beats, redis_client: redis.Redis) -> None:
    first, second = beats.lead("a:1#x"), beats.lead("b:2#y")
    assert (first.leads, first.leader) == (True, "a:1")
    assert (second.leads, second.leader, second.token) == (False, "a:1", first.token)
    assert 5 < second.left_s <= 6
    redis_client.pexpire(KEYS.beat_leader(), 100)
    assert beats.lead("a:1#x").token == first.token  # renewed, also when the call is repeated
    assert redis_client.pttl(KEYS.beat_leader()) > 5000


@pytest.mark.parametrize("how", ["resigned", "run out", "stolen and gone", "flushed"])
def test_a_lock_that_is_free_goes_to_whoever_asks_with_a_higher_token(beats: Beats, redis_client: redis.Redis, how: str) -> None:
    first = beats.lead("a:1#x")
    match how:
        case "resigned":
            assert beats.resign("a:1#x")
            assert not beats.resign("a:1#x")
        case "flushed":
            redis_client.flushall()
        case _:
            redis_client.delete(KEYS.beat_leader())
    second = beats.lead("b:2#y")
    assert second.leads
    assert second.token > first.token
    assert not beats.lead("a:1#x").leads


def test_who_does_not_lead_cannot_give_the_lead_away(beats: Beats) -> None:
    beats.lead("a:1#x")
    beats.lead("b:2#y")
    assert not beats.resign("b:2#y")
    assert beats.lead("a:1#x").leads


def test_only_the_leader_notes_a_round(beats: Beats, schedules: Schedules, redis_client: redis.Redis) -> None:
    old = beats.lead("a:1#x").token
    assert schedules.note(old, "seed", 1000.25, RoundState.DUE)
    assert schedules.rounds() == {"seed": Round(due=1000.25, sent_at=None, state=RoundState.DUE)}
    assert schedules.note(old, "seed", 1000.25, RoundState.SENT)
    sent_at = schedules.rounds()["seed"].sent_at
    assert sent_at is not None
    redis_client.delete(KEYS.beat_leader())
    assert not schedules.note(old, "seed", 1005.0, RoundState.DUE)  # nobody leads: not this one either
    new = beats.lead("b:2#y").token
    assert not schedules.note(old, "seed", 1005.0, RoundState.DUE)
    assert schedules.note(new, "seed", 1005.0, RoundState.DUE)
    assert schedules.rounds() == {"seed": Round(due=1005.0, sent_at=sent_at, state=RoundState.DUE)}  # the last sending is kept


def test_a_round_is_begun_once_and_never_behind_a_newer_leaders(schedules: Schedules) -> None:
    assert schedules.begin("seed", 7, 1000.0)
    assert not schedules.begin("seed", 7, 1000.0)  # delivered twice
    assert not schedules.begin("seed", 8, 1000.0)  # sent once more by the next leader, who did not know
    assert schedules.begin("other", 7, 1000.0)
    assert schedules.begin("seed", 8, 1005.0)
    assert not schedules.begin("seed", 7, 1003.0)  # by a leader that was paused between its note and its sending
    assert schedules.begin("seed", 8, 900.0)  # Redis's clock was set back


def test_beats_lead_and_begin_while_redis_is_out_of_memory(beats: Beats, schedules: Schedules, redis_client: redis.Redis) -> None:
    redis_client.set("ballast", "x" * 100_000)
    redis_client.config_set("maxmemory", 1)
    try:
        token = beats.lead("a:1#x").token
        assert schedules.note(token, "store_items", 1000.0, RoundState.DUE)
        assert schedules.begin("store_items", token, 1000.0)
    finally:
        redis_client.config_set("maxmemory", 0)


def test_who_looks_sees_the_leader_those_that_wait_and_the_silence(
    beats: Beats, schedules: Schedules, redis_client: redis.Redis
) -> None:
    now = redis_client.time()[0]
    assert "none leads, nothing was ever sent" in beats.look(now).sentence()
    token = beats.lead("a:1#x").token
    assert "a:1 leads, but nothing was ever sent" in beats.look(now).sentence()
    schedules.note(token, "seed", now, RoundState.SENT)
    beats.lead("b:2#y")
    assert beats.look(now).sentence() == "a:1 leads, one more waits"
    assert not beats.look(now).stalled
    assert beats.look(redis_client.time()[0] + 61).stalled
    beats.resign("a:1#x")
    assert beats.look(now).stalled
    assert beats.look(now).waiting == ("b:2",)


def test_what_is_stored_comes_back_and_what_cannot_be_read_is_named(schedules: Schedules, redis_client: redis.Redis) -> None:
    schedules.set("nightly", StoredEntry(task="trawl.seed_forums", cron="0 3 * * *", kwargs={"site": "demo"}))
    others = {"bad": b"\xff", "list": b"[]", "types": b'{"every_s": "often"}', "new": b'{"x": 1}'}
    redis_client.hset(KEYS.schedule(), mapping=others)
    stored = schedules.stored()
    nightly = stored.pop("nightly")
    assert isinstance(nightly, StoredEntry)
    assert (nightly.cron, nightly.kwargs, nightly.every_s) == ("0 3 * * *", {"site": "demo"}, None)
    assert abs(nightly.changed_at - redis_client.time()[0]) < 5
    assert stored.pop("new") == StoredEntry()  # a field of a newer version
    assert all(isinstance(entry, Unreadable) for entry in stored.values())
    assert schedules.remove("bad")
    assert not schedules.remove("bad")


def test_a_lead_that_is_asked_for_again_after_a_lost_answer_is_the_same(redis_client: redis.Redis) -> None:
    keys = {"leader": KEYS.beat_leader(), "fences": KEYS.fences(), "beats": KEYS.beats()}
    args = {"owner": "a:1#x", "ttl_ms": 6000}
    first, again = (script("beat_lead")(redis_client, keys, args) for _ in range(2))
    assert first[:3] == again[:3]


def test_runs_that_nobody_can_read_count_as_none(schedules: Schedules, redis_client: redis.Redis) -> None:
    redis_client.hset(KEYS.beat_runs(), mapping={"a": "x", "b": "1|2|nix", "c": "1000|2000|sent"})
    assert schedules.rounds() == {"c": Round(due=1.0, sent_at=2.0, state=RoundState.SENT)}
    schedules.forget_rounds(["a", "b", "c"])
    assert redis_client.exists(KEYS.beat_runs()) == 0
