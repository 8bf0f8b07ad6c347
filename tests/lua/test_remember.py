"""Records of threads, as the writer keeps them and a scan looks them up."""

from __future__ import annotations

import pytest
import redis

from forums.records.tasks_and_items import forget_marks
from forums.state.database_state import ThreadRecord, forget, keep, look_up, short_token
from forums.state.keys import ForumCrawlKeys
from redis_components.errors import ConfigError
from redis_components.keys import CrawlKeys

KEYS, LISTS = CrawlKeys.for_spider("details"), CrawlKeys.for_spider("lists")


def test_a_record_comes_back_as_it_was_and_an_unknown_thread_has_none(redis_client: redis.Redis) -> None:
    long = "x" * 300
    records = {
        "s/1": ThreadRecord("7@noon", comments=7, last_page=2, last_comment="c7", cursor="http://s/1?after=c", hour=9),
        "s/2": ThreadRecord(long, last_page=0),
    }
    keep(redis_client, KEYS, records)
    found = look_up(redis_client, KEYS, ["s/1", "s/2", "s/3"])
    assert found["s/1"] == records["s/1"]
    assert found["s/3"] is None
    gone = found["s/2"]
    assert gone is not None
    assert (gone.is_gone, gone.has_token(long), gone.has_token("x" * 299), len(gone.token)) == (True, True, False, 32)
    assert look_up(redis_client, KEYS, []) == {}


def test_a_record_forgets_the_token_of_its_task_but_no_later_one(redis_client: redis.Redis) -> None:
    long = "x" * 300
    redis_client.hset(KEYS.start_tokens(), mapping={"s/1": "a", "s/2": "b", "s/3": long})
    keep(redis_client, KEYS, {"s/1": ThreadRecord("a"), "s/2": ThreadRecord("a"), "s/3": ThreadRecord(long)})
    assert redis_client.hgetall(KEYS.start_tokens()) == {b"s/2": b"b"}


def test_a_reading_to_which_no_list_row_led_keeps_the_token_and_how_the_list_counts(redis_client: redis.Redis) -> None:
    keep(redis_client, KEYS, {"s/1": ThreadRecord("a")})
    keep(redis_client, KEYS, {"s/1": ThreadRecord("", comments=3), "s/2": ThreadRecord("")})
    assert look_up(redis_client, KEYS, ["s/1"]) == {"s/1": ThreadRecord("a", comments=3)}
    keep(redis_client, KEYS, {"s/1": ThreadRecord("b", comments=9, listed=10)})
    for _ in range(2):
        keep(redis_client, KEYS, {"s/1": ThreadRecord("", comments=7)})
    assert look_up(redis_client, KEYS, ["s/1"]) == {"s/1": ThreadRecord("b", comments=7, listed=8)}


def test_only_a_reading_that_found_something_new_covers_a_list_s_next_row(redis_client: redis.Redis) -> None:
    """Else a title that was edited after a check would pass for what the check had seen."""
    keep(redis_client, KEYS, {"s/1": ThreadRecord("a", comments=3, listed=3)})
    keep(redis_client, KEYS, {"s/1": ThreadRecord("", comments=3, told_at=60)})
    assert look_up(redis_client, KEYS, ["s/1"]) == {"s/1": ThreadRecord("a", comments=3, listed=3)}
    for _ in range(2):  # the same report again changes nothing more
        keep(redis_client, KEYS, {"s/1": ThreadRecord("", comments=4, told_at=70)})
    assert look_up(redis_client, KEYS, ["s/1"]) == {"s/1": ThreadRecord("a", comments=4, listed=4, told_at=70)}


def test_above_the_bound_old_records_go(redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(redis_client, KEYS, {f"s/{n}": ThreadRecord("a", hour=n) for n in range(2000)})
    monkeypatch.setenv("TRAWL_THREAD_RECORDS", "1500")
    keep(redis_client, KEYS, {f"s/{n}": ThreadRecord("a", hour=n) for n in range(2000, 2010)})
    assert redis_client.hlen(KEYS.threads()) < 2000  # a bound that was lowered is reached in steps
    keep(redis_client, KEYS, {f"s/{n}": ThreadRecord("a", hour=n) for n in range(2010, 2500)})
    assert redis_client.hlen(KEYS.threads()) == 1500
    kept = [int(one.split(b"/")[1]) for one in redis_client.hkeys(KEYS.threads())]
    assert sum(one >= 2000 for one in kept) > 400  # of 500
    redis_client.hset(KEYS.threads(), "s/foreign", "no record")
    assert look_up(redis_client, KEYS, ["s/foreign"]) == {"s/foreign": None}
    keep(redis_client, KEYS, {"s/3000": ThreadRecord("a", hour=3000)})


def test_what_is_stored_can_be_forgotten_of_single_threads_of_a_site_and_of_all(redis_client: redis.Redis) -> None:
    marks = {f"{site}/f": b"{}" for site in ("s", "s*", "t")}
    redis_client.hset(ForumCrawlKeys(LISTS).marks(), mapping=marks)
    keep(redis_client, KEYS, {f"{site}/{n}": ThreadRecord("a") for site in ("s", "s*", "t") for n in range(300)})
    redis_client.hset(KEYS.start_tokens(), mapping={"s/1": "b", "s/301": "b", "t/1": "b"})
    assert forget(redis_client, KEYS, "s", ["1", "2", "999"]) == 2
    assert redis_client.hkeys(KEYS.start_tokens()) == [b"s/301", b"t/1"]
    assert forget(redis_client, KEYS, "s*") == 300
    forget_marks(redis_client, LISTS, "s*")
    assert redis_client.hlen(KEYS.threads()) == 598
    assert forget(redis_client, KEYS, "s") == 298
    assert redis_client.hkeys(KEYS.start_tokens()) == [b"t/1"]
    assert set(redis_client.hkeys(ForumCrawlKeys(LISTS).marks())) == {b"s/f", b"t/f"}
    assert forget(redis_client, KEYS) == 300
    forget_marks(redis_client, LISTS)
    assert redis_client.exists(KEYS.threads(), KEYS.start_tokens(), ForumCrawlKeys(LISTS).marks()) == 0


def test_a_bound_that_is_no_number_is_named(redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_THREAD_RECORDS", "many")
    with pytest.raises(ConfigError, match="TRAWL_THREAD_RECORDS='many'"):
        keep(redis_client, KEYS, {"s/1": ThreadRecord("a")})


def test_short_tokens_stay_legible() -> None:
    assert short_token("12@2026-01-01T00:00:00+00:00") == "12@2026-01-01T00:00:00+00:00"
    assert short_token("\ud800" * 50) != short_token("\ud801" * 50)


def test_while_redis_is_out_of_memory_records_are_written_all_the_same(redis_client: redis.Redis) -> None:
    redis_client.hset(KEYS.start_tokens(), "s/1", "a")
    before = redis_client.config_get("maxmemory")["maxmemory"]
    redis_client.config_set("maxmemory", 1)
    try:
        keep(redis_client, KEYS, {"s/1": ThreadRecord("a")})
    finally:
        redis_client.config_set("maxmemory", before)
    assert redis_client.hlen(KEYS.threads()) == 1
