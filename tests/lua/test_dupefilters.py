"""One suite over every kind of dupefilter, asked in the exchange and alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redis_components import filters as filter_access
from redis_components.admin.inspector import snapshot, wipe
from redis_components.errors import ConfigError, TrawlError
from redis_components.filters import Bloom, Exact, Filter, PlainSet, Renew, Rolling
from tests.support.contents import contents
from tests.support.dupefilters import KEY, KINDS, WAYS, WINDOW, Alone, Asked, InExchange, is_bloom, made_older, of
from tests.support.examples import examples
from tests.support.owner import KEYS, Owner

COMPACT = {name: kind for name, kind in KINDS.items() if not isinstance(kind, PlainSet)}

FORMS = {kind.form: kind for kind in KINDS.values()}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> type[Alone] | type[InExchange]:
    return WAYS[request.param]


@pytest.fixture(params=KINDS)
def asked(request: pytest.FixtureRequest, way: type[Alone], redis_client: redis.Redis) -> Asked:
    return way(redis_client, KINDS[request.param])


def size(client: redis.Redis) -> int:
    return snapshot(client, "s").fingerprints


def test_a_request_is_new_once(asked: Asked, redis_client: redis.Redis) -> None:
    assert asked.ask([b"a", b"b", b"a"]) == [False, False, True]
    assert asked.ask([b"b", b"c"]) == [True, False]
    assert size(redis_client) == 3


def test_a_thousand_requests_are_told_apart(asked: Asked, redis_client: redis.Redis) -> None:
    assert asked.ask(of("", 0, 1000)) == [False] * 1000
    assert asked.ask(of("", 500, 1500)) == [True] * 500 + [False] * 500
    assert size(redis_client) == 1500


def test_two_processes_have_one_filter(asked: Asked, redis_client: redis.Redis) -> None:
    other = Owner(redis_client, "other", filter=asked.filter)
    asked.ask([b"a"])
    other.add("a")
    other.add("b")
    other.advance()
    assert other.duplicates == [b"a"]
    assert asked.ask([b"b"]) == [True]


def test_a_filter_is_empty_with_the_first_step_of_clearing_it_and_nothing_is_left_with_the_last(
    asked: Asked, redis_client: redis.Redis
) -> None:
    asked.ask(of("", 0, 3000))
    with redis_client.pipeline() as pipe:
        filter_access.begin_to_clear(pipe, KEY)
        pipe.execute()
    assert asked.ask([b"0", b"2999"]) == [False, False]
    filter_access.clear(redis_client, KEY)
    assert size(redis_client) == 0
    assert not [key for key in redis_client.keys("*") if key.startswith(KEY.encode())]
    assert asked.ask([b"0"]) == [False]


def test_wiping_a_crawl_removes_every_key_of_its_filter(asked: Asked, redis_client: redis.Redis) -> None:
    asked.ask(of("", 0, 3000))
    assert wipe(redis_client, KEYS, but_not_for="asker") is None
    assert redis_client.keys("*") == []


@pytest.mark.parametrize("kind", COMPACT.values(), ids=COMPACT)
def test_a_repeated_exchange_gives_the_same_answer(kind: Filter, redis_client: redis.Redis) -> None:
    one = Owner(redis_client, "one", filter=kind)
    one.add("a")
    one.advance()
    one.add("a")
    one.add("b")
    one.exchanger.lose_replies = 3
    one.advance(5)
    assert one.duplicates == [b"a"]
    assert (size(redis_client), snapshot(redis_client, "s").ready) == (2, 2)


@pytest.mark.parametrize("there", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("wanted", FORMS.values(), ids=FORMS)
def test_another_form_is_refused_by_name_and_nothing_is_applied(there: Filter, wanted: Filter, redis_client: redis.Redis) -> None:
    Alone(redis_client, there).ask([b"a"])
    before = contents(redis_client, [KEY])
    errors: list[TrawlError] = []
    one = Owner(redis_client, "one", filter=wanted)
    one.frontier.listeners.refused = errors.append
    one.add("a")
    one.advance()
    if there.form == wanted.form:
        assert (errors, one.duplicates) == ([], [b"a"])
        return
    assert [type(error) for error in errors] == [ConfigError]
    assert f"{KEY} holds a dupefilter of the form {there.form!r}, this process is set to {wanted.form!r}" in str(errors[0])
    assert redis_client.keys(f"{KEYS.ready()}*") == []
    assert contents(redis_client, [KEY]) == before
    if not isinstance(wanted, PlainSet):
        with pytest.raises(ConfigError, match="holds a dupefilter of the form"):
            Alone(redis_client, wanted).ask([b"a"])


SPOILS: dict[str, Callable[[redis.Redis, str], object]] = {
    "their hash": lambda client, form: client.hset(KEY, "theirs", 1),
    "their list": lambda client, form: client.rpush(KEY, 1),
    "a foreign value": lambda client, form: client.hset(KEY, mapping={"form": form, "generations": "1:x:256:1"}),
}


@pytest.mark.parametrize("kind", COMPACT.values(), ids=COMPACT)
@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS)
def test_what_is_not_ours_is_named_and_all_is_applied_when_it_is_gone(
    kind: Filter, spoil: Callable[[redis.Redis, str], object], redis_client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    spoil(redis_client, kind.form)
    one = Owner(redis_client, "one", filter=kind)
    one.add("a")
    one.advance()
    assert f"WRONGTYPE {KEY}" in caplog.text
    assert redis_client.keys(f"{KEYS.ready()}*") == []
    redis_client.delete(KEY)
    one.advance(10)
    assert snapshot(redis_client, "s").ready == 1


def test_a_foreign_bucket_filters_nothing_and_loses_nothing(redis_client: redis.Redis) -> None:
    asked = InExchange(redis_client, Exact(bits=64))
    asked.ask([b"a"])
    for key in redis_client.keys(f"{KEY}:*"):
        redis_client.delete(key)
        redis_client.rpush(key, "theirs")
    assert asked.ask([b"a", b"a"]) == [False, False]
    assert asked.ask(of("", 0, 3000)) == [False] * 3000


@pytest.mark.parametrize("bits", [64, 72])
def test_buckets_stay_so_small_that_redis_keeps_them_as_arrays(bits: int, redis_client: redis.Redis) -> None:
    asked = Alone(redis_client, Exact(bits=bits))
    for first in range(0, 60_000, 2000):
        asked.ask(of("", first, first + 2000))
    buckets = redis_client.keys(f"{KEY}:*")
    assert {redis_client.object("encoding", key) for key in buckets} == {b"intset"}
    assert max(redis_client.scard(key) for key in buckets) < 512
    assert sum(redis_client.memory_usage(key) for key in buckets) / 60_000 < 12
    assert all(asked.ask(of("", 0, 60_000))), "also those whose bucket was split since"
    assert size(redis_client) == 60_000


# Entries that expire


@pytest.mark.parametrize("renew", Renew)
def test_the_number_of_entries_stays_within_its_bound_and_the_newest_are_known(
    renew: Renew, way: type[Alone], redis_client: redis.Redis
) -> None:
    kind = Rolling(max_entries=WINDOW, renew=renew)
    asked = way(redis_client, kind)
    for first in range(0, 3 * WINDOW, 1000):
        assert not any(asked.ask(of("", first, first + 1000)))
        assert size(redis_client) <= WINDOW
    newest = of("", 3 * WINDOW - WINDOW + WINDOW // kind.generations, 3 * WINDOW)
    assert all(asked.ask(newest))
    assert not any(asked.ask(of("", 0, 100))), "the oldest are forgotten"


def survivors(asked: Asked, scans: int, *, hot: list[bytes]) -> list[bool]:
    """Which of `hot` are known after `scans` list pages of 200 entries each, all new but `hot`."""
    for scan in range(scans):
        asked.ask([*hot, *of(f"scan {scan} ", 0, 200)])
    return asked.ask(hot)


def test_an_entry_that_scans_still_meet_stays_and_one_that_rolled_off_goes(way: type[Alone], redis_client: redis.Redis) -> None:
    met = way(redis_client, Rolling(max_entries=WINDOW))
    met.ask([b"rolled off"])
    assert survivors(met, 50, hot=[b"pinned"]) == [True]
    assert met.ask([b"rolled off"]) == [False]
    filter_access.clear(redis_client, KEY)
    written = way(redis_client, Rolling(max_entries=WINDOW, renew=Renew.WRITTEN))
    written.ask([b"pinned"])
    assert sum(written.ask([b"pinned"])[0] for _ in range(100) if written.ask(of(str(_), 0, 200))) < 98, "it expires all the same"


def test_by_hits_what_was_met_more_often_stays_longer(way: type[Alone], redis_client: redis.Redis) -> None:
    asked = way(redis_client, Rolling(max_entries=WINDOW, renew=Renew.HITS))
    asked.ask([b"twice", b"once", b"never"])
    asked.ask(of("a", 0, 3 * WINDOW // 4))  # three generations on: these three are in the oldest
    assert asked.ask([b"twice", b"once", b"twice"]) == [True] * 3
    asked.ask(of("b", 0, WINDOW // 4))
    assert asked.ask([b"never"]) == [False]
    asked.ask(of("c", 0, WINDOW // 4))
    assert asked.ask([b"once", b"twice"]) == [False, True]


def test_entries_expire_by_age_not_before_three_quarters_of_it(way: type[Alone], redis_client: redis.Redis) -> None:
    asked = way(redis_client, Rolling(max_age_s=400, renew=Renew.WRITTEN))
    asked.ask([b"a"])
    for passed in (100, 100, 99):
        made_older(redis_client, passed)
        assert asked.ask([b"a"]) == [True]
    made_older(redis_client, 101)
    assert asked.ask([b"a"]) == [False]


def test_what_is_met_again_does_not_age(way: type[Alone], redis_client: redis.Redis) -> None:
    asked = way(redis_client, Rolling(max_age_s=400))
    asked.ask([b"met", b"not met"])
    for _ in range(12):
        made_older(redis_client, 101)
        assert asked.ask([b"met"]) == [True]
    assert asked.ask([b"not met"]) == [False]


def test_after_a_long_silence_everything_is_forgotten(way: type[Alone], redis_client: redis.Redis) -> None:
    asked = way(redis_client, Rolling(max_age_s=400))
    asked.ask([b"a"])
    made_older(redis_client, 100_000)
    assert asked.ask([b"a", b"a"]) == [False, True]


def test_a_long_incremental_crawl_takes_constant_memory(redis_client: redis.Redis) -> None:
    """Scans of a list page on which 50 of 200 entries are new: after 2 windows and after 5 it costs the same."""
    asked, rolled, figures = Alone(redis_client, Rolling(max_entries=WINDOW)), 0, []
    for scans in (200, 200):
        for _ in range(scans):
            rolled += 50
            asked.ask(of("thread", rolled, rolled + 200))
        figures.append((len(redis_client.keys(f"{KEY}*")), size(redis_client), redis_client.info("memory")["used_memory"]))
    (keys, entries, memory), (keys_later, entries_later, memory_later) = figures
    assert max(entries, entries_later) <= WINDOW
    assert keys_later < keys * 1.3
    assert memory_later < memory * 1.1


# Bloom


def test_many_buckets_of_a_small_filter_do_not_pile_up(redis_client: redis.Redis) -> None:
    filter = Alone(redis_client, Rolling(bits=80, max_entries=1000))
    for first in range(0, 8000, 100):
        filter.ask(of("", first, first + 100))
    parts = [len(value.split(b",")) for value in redis_client.hmget(KEY, "garbage") if value]
    assert sum(parts) < 20  # of 16 or 32 that were dropped, each with 65,536 keys
    assert redis_client.dbsize() < 5000


def test_a_clock_that_was_put_back_does_not_keep_entries_for_ever(redis_client: redis.Redis) -> None:
    filter = Alone(redis_client, Rolling(max_age_s=3600))
    filter.ask([b"a"])
    made_older(redis_client, -86_400)
    filter.ask([b"b"])
    made_older(redis_client, 4000)
    filter.ask([b"c"])
    assert filter.ask([b"a"]) == [False]


def test_the_false_positives_stay_below_the_promise_over_several_layers(way: type[Alone], redis_client: redis.Redis) -> None:
    asked = way(redis_client, Bloom(capacity=1000, false_positives=0.01))
    wrong = sum(sum(asked.ask(of("", first, first + 1000))) for first in range(0, 10_000, 1000))
    assert wrong < 0.01 * 10_000
    assert all(asked.ask(of("", 0, 10_000))), "what was seen is always known"
    estimate = snapshot(redis_client, "s").false_positive_rate
    probes = 10_000
    found = sum(Alone(redis_client, replace(asked.filter)).ask(of("other", 0, probes))) / probes
    assert 0.001 < estimate <= 0.01
    assert found == pytest.approx(estimate, rel=0.5)


def test_no_key_of_a_bloom_filter_is_large(redis_client: redis.Redis) -> None:
    asked = Alone(redis_client, Bloom(capacity=100_000))
    asked.ask(of("", 0, 5000))
    keys = redis_client.keys(f"{KEY}:*")
    assert len(keys) > 5
    assert max(redis_client.strlen(key) for key in keys) <= 32 * 1024
    assert max(redis_client.memory_usage(key) for key in keys) <= 33 * 1024


def test_the_estimate_of_an_exact_filter_is_zero(redis_client: redis.Redis) -> None:
    Alone(redis_client, Exact()).ask([b"a"])
    assert snapshot(redis_client, "s").false_positive_rate == 0


# Against a model


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("ask"), st.integers(0, 3000), st.integers(1, 1500)),
            st.tuples(st.just("clear"), st.just(0), st.just(0)),
        ),
        max_size=12,
    )
)
def test_it_does_what_a_set_does(kind: Filter, steps: list[tuple[str, int, int]], redis_client: redis.Redis) -> None:
    """At most WINDOW * 3 / 4 distinct requests, so that nothing expires: then all kinds are sets, but for the false positives."""
    redis_client.flushall()
    asked, model = InExchange(redis_client, kind), set[bytes]()
    for step, first, count in steps:
        fingerprints = of("", first % 3000, min(first % 3000 + count, 3000))
        if step == "ask":
            for one, seen in zip(fingerprints, asked.ask(fingerprints), strict=True):
                assert seen == (one in model) or (seen and is_bloom(kind))
                model.add(one)
        else:
            filter_access.clear(redis_client, KEY)
            model.clear()
        assert size(redis_client) == pytest.approx(len(model), abs=3 if is_bloom(kind) else 0)
