"""What is remembered of pages, to ask whether they have changed: bounded, the pages that are asked for longest."""

from __future__ import annotations

import redis

from redis_components.scrapy_glue.conditional import LONGEST, Validators, ValidatorStore, name_of
from tests.support.owner import KEYS

FOUND = Validators.of('"7"', "Mon, 23 Nov 2026 00:00:00 GMT", b"a page")


def test_what_is_stored_is_found_again_by_url_and_tag(redis_client: redis.Redis) -> None:
    store = ValidatorStore(redis_client, KEYS, 100)
    store.store({name_of("http://a/1", "x"): FOUND})
    assert store.look_up(name_of("http://a/1", "x")) == FOUND
    assert store.look_up(name_of("http://a/1", "y")) is None
    assert store.look_up(name_of("http://a/2", "x")) is None
    redis_client.hset(KEYS.validators(), name_of("http://a/3", ""), "none of this")
    assert store.look_up(name_of("http://a/3", "")) is None


def _size(client: redis.Redis) -> int:
    return sum(int(client.hlen(key)) for key in (KEYS.validators(), KEYS.older_validators()))


def test_the_number_of_pages_is_bounded_and_those_that_are_asked_for_stay(redis_client: redis.Redis) -> None:
    store, kept = ValidatorStore(redis_client, KEYS, 20), name_of("http://a/kept", "")
    for n in range(200):
        store.store({name_of(f"http://a/{n}", ""): FOUND, kept: FOUND})
        assert _size(redis_client) <= 20
    assert store.look_up(kept) == store.look_up(name_of("http://a/199", "")) == FOUND
    assert store.look_up(name_of("http://a/0", "")) is None


def test_one_call_with_many_pages_keeps_the_bound(redis_client: redis.Redis) -> None:
    store = ValidatorStore(redis_client, KEYS, 20)
    store.store({name_of(f"http://a/{n}", ""): FOUND for n in range(100)})
    assert _size(redis_client) <= 20


def test_what_a_header_cannot_be_is_left_out() -> None:
    odd = Validators.of("x" * (LONGEST + 1), "a\r\nHost: b", b"")
    assert (odd.etag, odd.modified) == ("", "")
    assert odd.digest
